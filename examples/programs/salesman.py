"""A travelling salesman: berlin52 of TSPLIB (Reinelt 1991), whose shortest tour has a length of 7542."""

import math

import evoxo

CITIES = [
    (565, 575), (25, 185), (345, 750), (945, 685), (845, 655), (880, 660), (25, 230), (525, 1000), (580, 1175),
    (650, 1130), (1605, 620), (1220, 580), (1465, 200), (1530, 5), (845, 680), (725, 370), (145, 665), (415, 635),
    (510, 875), (560, 365), (300, 465), (520, 585), (480, 415), (835, 625), (975, 580), (1215, 245), (1320, 315),
    (1250, 400), (660, 180), (410, 250), (420, 555), (575, 665), (1150, 1160), (700, 580), (685, 595), (685, 610),
    (770, 610), (795, 645), (720, 635), (760, 650), (475, 960), (95, 260), (875, 920), (700, 500), (555, 815),
    (830, 485), (1170, 65), (830, 610), (605, 625), (595, 360), (1340, 725), (1740, 245),
]


def distance(a, b):
    """TSPLIB's EUC_2D: the distance rounded to the nearest whole number."""
    return int(math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2) + 0.5)


DISTANCES = [[distance(a, b) for b in CITIES] for a in CITIES]


@evoxo.problem(genome={"tour": evoxo.permutation(len(CITIES))}, objectives=["min length"])
def salesman(tour):
    return sum(DISTANCES[a][b] for a, b in zip(tour, tour[1:] + tour[:1]))


evoxo.main(salesman)
