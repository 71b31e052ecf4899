"""An own algorithm: the (1+1)-ES with the one-fifth rule (Rechenberg 1973), for a genome with one part of real numbers."""
import evoxo

GROW, SHRINK = 1.5, 0.9036020036098448  # the step stays as long as one child of five is better: SHRINK is GROW to the power -1/4


@evoxo.algorithm("one-plus-one")
class OnePlusOne:
    def __init__(self, genome, settings):
        self.genome, self.sigma, self.parent, self.value = genome, settings.get("sigma", 0.3), None, None

    def ask(self, rng):
        if self.parent is None:
            return [self.genome.draw(rng)]
        return [[self.gene(gene, rng) for gene in self.parent]]

    def gene(self, gene, rng):
        normal = -6.0
        for _ in range(12):  # nearly normal, with the same bits everywhere: rng.gauss uses the C library's log and cos
            normal += rng.random()
        low, high = self.genome.low, self.genome.high
        return min(max(gene + self.sigma * (high - low) * normal, low), high)

    def tell(self, candidates, values):
        better = self.parent is None or values[0] <= self.value
        if self.parent is not None:
            self.sigma *= GROW if better else SHRINK
        if better:
            self.parent, self.value = candidates[0], values[0]

    def save(self):
        return [self.sigma, self.parent, self.value]

    def restore(self, saved):
        self.sigma, self.parent, self.value = saved


evoxo.main(OnePlusOne)
