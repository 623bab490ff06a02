"""Let variants work in turns, and compare them round by round."""
import random
import statistics


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


def take_turns(variants, amounts, rounds):
    """Run each variant once per round, in an order drawn anew. variants: name -> (worker, which);
    amounts: the work of a block, or name -> work. Returns name -> [Block]."""
    blocks = {name: [] for name in variants}
    order = list(variants)
    shuffle = random.Random(1).shuffle
    for _ in range(rounds):
        shuffle(order)
        for name in order:
            worker, which = variants[name]
            amount = amounts[name] if isinstance(amounts, dict) else amounts
            blocks[name].append(worker.block(amount, which))
    return blocks


class Estimate:
    """A median and its standard error (that of the median of a normal distribution, from the median deviation)."""

    def __init__(self, values):
        self.value = statistics.median(values)
        deviation = statistics.median(abs(value - self.value) for value in values)
        self.error = 1.2533 * 1.4826 * deviation / len(values) ** 0.5

    @classmethod
    def of(cls, value, error=0.0):
        made = cls([value])
        made.error = error
        return made

    def scaled(self, factor):
        return Estimate.of(self.value * factor, abs(self.error * factor))

    def minus(self, other):
        return Estimate.of(self.value - other.value, (self.error**2 + other.error**2) ** 0.5)


def per_unit(blocks, amount):
    """CPU ns per unit of work."""
    return Estimate([block.cpu / amount for block in blocks])


def extra_share(blocks, base):
    """How much more CPU time than `base` in the same round, as a share of it."""
    return Estimate([block.cpu / other.cpu - 1 for block, other in zip(blocks, base)])


def extra_ns(blocks, base):
    """How much more CPU time than `base` in the same round, ns per block."""
    return Estimate([block.cpu - other.cpu for block, other in zip(blocks, base)])


def signals_per_second(blocks):
    """What the probe counted, per second of the thread's CPU time."""
    return (blocks[-1].signals - blocks[0].signals) / (sum(block.cpu for block in blocks[1:]) / 1e9)
