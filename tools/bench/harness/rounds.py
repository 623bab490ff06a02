# SPDX-License-Identifier: MIT
"""Let variants work in turns, and compare them round by round.

Two processes of one program differ by a few percent for as long as they live (where their memory happens to lie), so
each comparison is done with several generations of processes; the spread between generations is the error shown. Each
process first works for a while unmeasured: page faults and unwind rows that are looked up for the first time are costs
of the first second.
"""
import random
import statistics

GENERATIONS = 5
WARM_UP_MS = 500


class Estimate:
    """A value and its standard error."""

    def __init__(self, value, error=0.0):
        self.value, self.error = value, error

    @classmethod
    def of_values(cls, values):
        """The median of many short measurements."""
        middle = statistics.median(values)
        deviation = statistics.median(abs(value - middle) for value in values)
        return cls(middle, 1.2533 * 1.4826 * deviation / len(values) ** 0.5)

    @classmethod
    def of_generations(cls, generations):
        """The mean over generations of the median of each: [[value]]."""
        medians = [cls.of_values(values) for values in generations]
        mean = statistics.fmean(each.value for each in medians)
        if len(medians) == 1:
            return cls(mean, medians[0].error)
        return cls(mean, statistics.stdev(each.value for each in medians) / len(medians) ** 0.5)

    def minus(self, other):
        return Estimate(self.value - other.value, (self.error**2 + other.error**2) ** 0.5)

    def scaled(self, factor):
        return Estimate(self.value * factor, abs(self.error * factor))


def amount_for(worker, milliseconds, which=0):
    """How much work takes about so much CPU time."""
    amount = 1
    while True:
        block = worker.block(amount, which)
        if block.cpu > 2e6:
            # Once more: what it cost for the first time is no measure.
            block = worker.block(amount, which)
            return max(1, int(amount * milliseconds * 1e6 / max(block.cpu, 1)))
        amount *= 4


def take_turns(variants, amount, rounds, shuffle, tell=None):
    """Run each variant once per round, in an order drawn anew. variants: name -> (worker, which).
    tell: called after each round with {name: Block} of it; None = not needed.
    Returns name -> [Block]."""
    blocks = {name: [] for name in variants}
    order = list(variants)
    for _ in range(rounds):
        shuffle(order)
        for name in order:
            worker, which = variants[name]
            blocks[name].append(worker.block(amount, which))
        if tell is not None:
            tell({name: of_one[-1] for name, of_one in blocks.items()})
    return blocks


class Comparison:
    """Variants compared over several generations of processes.

    make: a function that starts them: name -> (worker, which). The first name is what the others are compared with.
    amount: of a turn's work; None = what takes about so many milliseconds
    progress: told of each variant that is warm, and of each round of all generations; None = not needed
    blocks[name]: [[Block]], by generation and round; gathered[name]: [figures], by generation.
    """

    def __init__(self, make, milliseconds, rounds, warm_up_ms=WARM_UP_MS, generations=GENERATIONS, amount=None,
                 progress=None):
        self.warm_up_ms, self.progress = warm_up_ms, progress
        self.blocks, self.gathered, self.amount = {}, {}, amount
        shuffle = random.Random(1).shuffle
        for _ in range(generations):
            variants = make()
            self._generation(variants, milliseconds, max(3, rounds // generations), shuffle)
            for worker in {worker for worker, _ in variants.values()}:
                worker.close()
        self.names = list(self.blocks)

    def _generation(self, variants, milliseconds, rounds, shuffle):
        if self.amount is None:
            worker, which = next(iter(variants.values()))
            self.amount = amount_for(worker, milliseconds, which)
        for name, (worker, which) in variants.items():
            for _ in range(max(1, int(self.warm_up_ms / milliseconds))):
                worker.block(self.amount, which)
            worker.gathered()
            if self.progress is not None:
                self.progress.warm(name)
        tell = self.progress.round if self.progress is not None else None
        for name, blocks in take_turns(variants, self.amount, rounds, shuffle, tell).items():
            self.blocks.setdefault(name, []).append(blocks)
            self.gathered.setdefault(name, []).append(variants[name][0].gathered())

    def _paired(self, name, base, combine):
        return Estimate.of_generations(
            [[combine(block.cpu, other.cpu) for block, other in zip(blocks, others)]
             for blocks, others in zip(self.blocks[name], self.blocks[base])])

    def cpu_ns(self, name):
        """CPU ns per unit of work."""
        return Estimate.of_generations([[block.cpu / self.amount for block in blocks] for blocks in self.blocks[name]])

    def extra_ns(self, name, base):
        """CPU ns per unit of work beyond what `base` took in the same round."""
        return self._paired(name, base, lambda cpu, other: (cpu - other) / self.amount)

    def extra_beyond_ns(self, name, base, floor, floor_base):
        """The same beyond what `floor` took, in the same round, beyond a base of its own."""
        return Estimate.of_generations(
            [[(block.cpu - other.cpu - low.cpu + low_other.cpu) / self.amount for block, other, low, low_other in zip(*four)]
             for four in zip(*(self.blocks[each] for each in (name, base, floor, floor_base)))])

    def extra_percent(self, name, base):
        """The same as a share of what `base` took."""
        return self._paired(name, base, lambda cpu, other: 100 * (cpu / other - 1))

    def signals_per_second(self, name):
        """Signals that the probe counted, per second of the thread's CPU time."""
        blocks = [block for generation in self.blocks[name] for block in generation]
        signals = sum(block.signals for block in blocks)
        if signals == 0:
            raise RuntimeError(f"{name}: the probe saw no signal")
        return signals / (sum(block.cpu for block in blocks) / 1e9)

    def figure(self, name, index):
        """A gathered mean; its standard error within a generation is the next figure."""
        return self._over_generations(self.gathered[name], index)

    def figure_beyond(self, name, base, index):
        """How much larger it is than that of `base` in the same generation."""
        differences = [
            [mine - other if at % 2 == 0 else (mine**2 + other**2) ** 0.5
             for at, (mine, other) in enumerate(zip(figures, base_figures))]
            for figures, base_figures in zip(self.gathered[name], self.gathered[base])]
        return self._over_generations(differences, index)

    @staticmethod
    def _over_generations(gathered, index):
        means = [figures[index] for figures in gathered]
        within = sum(figures[index + 1] ** 2 for figures in gathered) ** 0.5 / len(means)
        between = statistics.stdev(means) / len(means) ** 0.5 if len(means) > 1 else 0
        return Estimate(statistics.fmean(means), max(within, between))
