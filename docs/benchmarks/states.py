"""The number of boards of 4x4x4 with gravity: all are counted; the share without a finished line is estimated by a sample.

    python3 states.py

A board is 16 columns of 0 to 4 stones. X begins, so X has as many stones as O or one more.
"""

import itertools
import random
from math import comb

COLUMNS, HEIGHT, SAMPLE = 16, 4, 40_000


def columns() -> dict[tuple[int, int], int]:
    """The number of different columns with x stones of X and y stones of O, by (x, y)."""
    return {(x, h - x): comb(h, x) for h in range(HEIGHT + 1) for x in range(h + 1)}


def boards() -> list[dict[tuple[int, int], int]]:
    """For 0 to 16 columns: the number of boards with that many columns, by the stones of X and of O."""
    found: list[dict[tuple[int, int], int]] = [{(0, 0): 1}]
    for _ in range(COLUMNS):
        more: dict[tuple[int, int], int] = {}
        for (x, o), count in found[-1].items():
            for (dx, do), ways in columns().items():
                more[x + dx, o + do] = more.get((x + dx, o + do), 0) + count * ways
        found.append(more)
    return found


def lines() -> list[int]:
    """The 76 lines, as bits: cell 16 z + 4 y + x."""
    found = []
    directions = [step for step in itertools.product((-1, 0, 1), repeat=3) if step > (0, 0, 0)]
    for start, step in itertools.product(itertools.product(range(4), repeat=3), directions):
        cells = [[place + n * by for place, by in zip(start, step)] for n in range(4)]
        if all(0 <= place < 4 for place in cells[3]):
            found.append(sum(1 << (x + 4 * y + 16 * z) for x, y, z in cells))
    return found


def drawn(rng: random.Random, stones: tuple[int, int], of: list[dict[tuple[int, int], int]]) -> tuple[int, int]:
    """A board with these stones, each as likely as any other."""
    masks, (left_x, left_o) = [0, 0], stones
    for column in range(COLUMNS, 0, -1):
        ways = {
            (x, o): count * of[column - 1].get((left_x - x, left_o - o), 0) for (x, o), count in columns().items()
        }
        x, o = rng.choices(list(ways), list(ways.values()))[0]
        own = set(rng.sample(range(x + o), x))
        for z in range(x + o):
            masks[z not in own] |= 1 << (column - 1 + 16 * z)
        left_x, left_o = left_x - x, left_o - o
    return masks[0], masks[1]


def main() -> None:
    of, all_lines, rng = boards(), lines(), random.Random(1)
    wanted = {stones: count for stones, count in of[COLUMNS].items() if stones[0] - stones[1] in (0, 1)}
    everything, free = sum(wanted.values()), 0
    for stones in rng.choices(list(wanted), list(wanted.values()), k=SAMPLE):
        masks = drawn(rng, stones, of)
        free += not any(mask & line == line for mask in masks for line in all_lines)
    share = free / SAMPLE
    error = 1.96 * (share * (1 - share) / SAMPLE) ** 0.5
    print(f"{everything:,} boards; without a finished line {100 * share:.2f} ± {100 * error:.2f} %,")
    print(f"so about {share * everything:.1e}")


if __name__ == "__main__":
    main()
