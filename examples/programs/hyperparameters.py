"""Hyperparameters of a scikit-learn model: a support vector machine that distinguishes three cultivars of wine.

The objectives are its accuracy in five-fold cross-validation, and the number of principal components that it needs. The
data come with scikit-learn, and the folds have a fixed seed. If a candidate cannot be fitted, only that candidate fails.
"""

import os
import sys
import warnings

# Set before numpy is imported: with one thread, sums have a fixed order. The worker's slots use all cores anyway.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import evoxo

try:
    from sklearn.datasets import load_wine
    from sklearn.decomposition import PCA
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC
except ImportError:
    sys.exit("hyperparameters.py needs the package scikit-learn: pip install scikit-learn")

warnings.simplefilter("error", ConvergenceWarning)
ITERATIONS_MAX = 500

features, labels = load_wine(return_X_y=True)
folds = StratifiedKFold(n_splits=5, shuffle=True, random_state=1)

genome = {
    "log10_c": evoxo.reals(1, -3, 3),
    "log10_gamma": evoxo.reals(1, -5, 1),
    "components": evoxo.integers(1, 1, features.shape[1]),
}


@evoxo.problem(genome=genome, objectives=["max accuracy", "min components"])
def hyperparameters(log10_c, log10_gamma, components):
    model = make_pipeline(
        StandardScaler(),
        PCA(n_components=components[0], svd_solver="full"),
        SVC(C=10 ** log10_c[0], gamma=10 ** log10_gamma[0], max_iter=ITERATIONS_MAX),
    )
    try:
        accuracies = cross_val_score(model, features, labels, cv=folds, error_score="raise")
    except ConvergenceWarning:
        raise evoxo.Failed(f"no convergence within {ITERATIONS_MAX} iterations") from None
    return accuracies.mean(), components[0]


evoxo.main(hyperparameters)
