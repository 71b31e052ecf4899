"""Ratings of fixed games by evalica (Newman's algorithm, the model of Davidson) and by scipy's optimiser (with the first move).

Prints a line of numbers for each: the values that tests/tests/ratings.rs and the unit tests of experiments/src/league/rating expect.
Needs `pip install evalica scipy`.
"""

import math

import evalica
from scipy.optimize import minimize

PLAYERS = 5
VIRTUAL = 0.1


def results(i, j):
    """Wins, draws and losses of player i, who moves first."""
    return (3 + (7 * i + 5 * j) % 11, 1 + (3 * i + j) % 5, 2 + (i + 2 * j) % 4)


def by_evalica():
    """The same results with both colours, so that the first move gives no advantage."""
    xs, ys, winners, weights = [], [], [], []
    games = [(i, j, results(i, j)) for i in range(PLAYERS) for j in range(i + 1, PLAYERS)]
    games += [(i, PLAYERS, (VIRTUAL / 6,) * 3) for i in range(PLAYERS)]
    for i, j, counts in games:
        for winner, count in zip((evalica.Winner.X, evalica.Winner.Draw, evalica.Winner.Y), counts):
            xs.append(i)
            ys.append(j)
            winners.append(winner)
            weights.append(2.0 * count)
    found = evalica.newman(xs, ys, winners, weights=weights, tolerance=1e-15, limit=1_000_000)
    strengths = [math.log(found.scores[i] / found.scores[PLAYERS]) for i in range(PLAYERS)]
    # Newman's draw parameter counts a draw twice.
    return [*strengths, 0.0, math.log(2 * found.v)]


def by_scipy():
    """Every ordered pair once, because it matters which player moves first."""
    games = [(i, j, results(i, j)) for i in range(PLAYERS) for j in range(PLAYERS) if i != j]
    for i in range(PLAYERS):
        games += [(i, PLAYERS, (VIRTUAL / 6,) * 3), (PLAYERS, i, (VIRTUAL / 6,) * 3)]

    def loss(terms):
        *strengths, first, draw = terms
        strengths = [*strengths, 0.0]
        total = 0.0
        for i, j, counts in games:
            s = strengths[i] - strengths[j] + first
            logs = (s / 2, draw, -s / 2)
            top = max(logs)
            norm = top + math.log(sum(math.exp(log - top) for log in logs))
            total -= sum(count * (log - norm) for count, log in zip(counts, logs))
        return total

    best = [0.0] * (PLAYERS + 2)
    for method in ("BFGS", "Nelder-Mead", "BFGS"):
        options = {"maxiter": 200_000, "gtol": 1e-12} if method == "BFGS" else {"maxiter": 200_000, "fatol": 1e-14, "xatol": 1e-9}
        best = minimize(loss, best, method=method, options=options).x
    return best


if __name__ == "__main__":
    for found in (by_evalica(), by_scipy()):
        print(" ".join(f"{number:.7f}" for number in found))
