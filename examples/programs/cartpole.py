"""CartPole of Gymnasium: a small network learns to balance a pole (Barto, Sutton and Anderson 1983).

The objective is the mean number of steps, at most 500, of five episodes. Their initial states are derived from the
candidate's seed, so luck affects a measurement, but in the same way on every machine.
"""

import sys

import evoxo

try:
    import gymnasium
except ImportError:
    sys.exit("cartpole.py needs the package gymnasium: pip install gymnasium")

EPISODES = 5
INPUTS, HIDDEN = 4, 4
WEIGHTS = HIDDEN * (INPUTS + 1) + HIDDEN

environment = gymnasium.make("CartPole-v1")


def pushes_right(weights, observation):
    """The action of the network: rectified hidden units with a bias each, and one output unit."""
    output = 0.0
    for unit in range(HIDDEN):
        incoming = weights[unit * (INPUTS + 1) : (unit + 1) * (INPUTS + 1)]
        activation = incoming[INPUTS]
        for weight, value in zip(incoming, observation):
            activation += weight * float(value)
        output += weights[HIDDEN * (INPUTS + 1) + unit] * max(0.0, activation)
    return output > 0


@evoxo.problem(genome=evoxo.reals(WEIGHTS, -3, 3), objectives=["max steps"])
def cartpole(x, seed):
    steps = 0
    for episode in range(EPISODES):
        observation, _ = environment.reset(seed=(seed + episode) % 2**63)
        ended = False
        while not ended:
            observation, _, fell, late, _ = environment.step(int(pushes_right(x, observation)))
            steps += 1
            ended = fell or late
    return steps / EPISODES


evoxo.main(cartpole)
