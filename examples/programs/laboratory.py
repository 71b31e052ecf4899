"""Ask and tell: a laboratory mixes three dyes until the colour is right. It measures four samples at a time, which
become ready in any order.

Here a sample is a thread that sleeps for a moment. In your laboratory it may be a job in a queue, or a person with a
pipette. The journal keeps all measurements, so that nothing is measured twice after a crash.
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

import evoxo

DYES = ((0.9, 0.2, 0.1), (0.2, 0.7, 0.3), (0.1, 0.1, 0.8))
"""How much each dye at full strength adds to red, green and blue."""
WANTED = (0.41, 0.49, 0.53)


def measure(recipe):
    """The distance between the colour of a recipe and the wanted colour."""
    time.sleep(0.002 * (1 + recipe[0]))
    distance = 0.0
    for part, wanted in enumerate(WANTED):
        colour = 0.0
        for share, dye in zip(recipe, DYES):
            colour += share * dye[part]
        distance += (colour - wanted) * (colour - wanted)
    return distance


out = sys.argv[1] if len(sys.argv) > 1 else "out/dye"
run = evoxo.ask(
    "dye", genome=evoxo.reals(3, 0, 1), objectives=["min distance"], evaluations=350, out=out, journal=f"{out}.journal"
)
with run, ThreadPoolExecutor(4) as laboratory:
    for batch in run:
        samples = {laboratory.submit(measure, candidate.genes): candidate for candidate in batch}
        for sample in as_completed(samples):
            samples[sample].tell(sample.result())

best = run.results().champions[0]
print(f"distance {best['objectives']['min distance']:.1e}: {[round(share, 2) for share in best['genes']['x']]}")
