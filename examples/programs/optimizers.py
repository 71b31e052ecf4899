"""Which optimiser, with which settings of its own? The loss is a stand-in for training; it is least, 0.1, for sgd with nesterov."""
import evoxo


@evoxo.problem(
    genome={
        "optimizer": evoxo.choices(1, ["adam", "sgd"]),
        "rate": evoxo.reals(1, 1e-5, 1, log=True),
        "beta": evoxo.reals(1, 0.5, 0.999, when={"optimizer": "adam"}),
        "momentum": evoxo.reals(1, 0, 1, when={"optimizer": "sgd"}),
        "nesterov": evoxo.bits(1, when={"optimizer": "sgd"}),
        "damping": evoxo.reals(3, 0, 1, when={"nesterov": 1}),
    },
    objectives=["min loss"],
)
def optimizers(optimizer, rate, beta, momentum, nesterov, damping):
    loss = (rate[0] - 0.01) * (rate[0] - 0.01)
    if optimizer == ["adam"]:  # momentum, nesterov and damping are None
        return 0.5 + loss + (beta[0] - 0.9) * (beta[0] - 0.9)
    loss += 0.3 + (momentum[0] - 0.8) * (momentum[0] - 0.8)
    if nesterov == [1]:  # otherwise damping is None
        loss -= 0.2
        for one in damping:
            loss += (one - 0.25) * (one - 0.25)
    return loss


evoxo.main(optimizers)
