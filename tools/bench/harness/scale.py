# SPDX-License-Identifier: MIT
"""The cost of an event while very many coroutines live, or requests are in flight, beside a thousand of them."""
import os
import shutil

from . import table
from .rounds import Estimate

FEW, MANY, REQUESTS, THREADS = 1000, 1000000, 100000, 10000
FEW_MODULES, MANY_MODULES, WORK_US = 8, 1000, 100000
SWITCHES, PAIRS, SLEEP_MS = 20000, 2000, 500
WARM_UP = 20000000  # switches: what does not grow with the coroutines is there then
MEMORY = 6  # of register_many's kinds
BOUND = (1.5, "<= 1.5")


def run(bench):
    table.heading("scale: an event beside a thousand others, and beside very many")
    for sampling in (0, 1000):
        coroutines(bench, sampling)
    requests(bench)
    modules(bench)


def coroutines(bench, sampling):
    arguments = ["--sample", sampling] if sampling else []
    how = f", sampling at {sampling} Hz" if sampling else ", resting"
    few, many = (bench.plain("register_many", *arguments) for _ in range(2))
    for worker in (few, many):
        worker.block(FEW)
        worker.block(WARM_UP, 3)
    before = many.block(0, MEMORY).figures[1]
    many.block(MANY - FEW)
    created = many.block(0, MEMORY).figures[1]
    for label, amount, which, per in (("a switch", SWITCHES, 3, "ns"), ("created and destroyed", PAIRS, 4, "ns")):
        both(bench, label + how, few, many, amount, which, per)
    if sampling:
        few.block(SLEEP_MS, 5)  # destroyed coroutines are still being put away
        sleeping = [idle(worker) for worker in (few, many)]
        table.figure(f"idle, {FEW} coroutines", sleeping[0], "us of CPU a second", digits=0)
        table.figure(f"idle, {MANY} coroutines", sleeping[1], "us of CPU a second", digits=0)
    table.figure("memory of a live coroutine" + how, Estimate.of_values([(created - before) / (MANY - FEW)]), "bytes",
                 digits=0, bound=(200, "<= 200"))
    few.close()
    many.close()


def both(bench, label, few, many, amount, which, unit):
    """In turns."""
    costs = ([], [])
    for _ in range(bench.rounds(60)):
        for worker, found in zip((few, many), costs):
            found.append(worker.block(amount, which).cpu / amount)
    small, large = (Estimate.of_values(found) for found in costs)
    table.figure(f"{label}, {FEW}", small, unit, digits=1)
    table.figure(f"{label}, {MANY}", large, unit, digits=1, ratio=large.value / small.value,
                 bound=(small.value * BOUND[0], "<= 1.5 times"))


def idle(worker):
    """CPU of all of greenprof's threads while the program sleeps."""
    start = worker.block(1, 5).process
    return Estimate.of_values([(worker.block(SLEEP_MS, 5).process - start) / 1e3 * 1000 / SLEEP_MS])


def requests(bench):
    beside(bench, "requests in flight", "--others", FEW, REQUESTS)
    beside(bench, "threads that sleep", "--threads", FEW, THREADS)


def beside(bench, what, option, few, many):
    workers = [bench.plain("request_cost", "--sample", 1000, option, count) for count in (few, many)]
    for worker in workers:
        worker.block(50)
    blocks = [[], []]
    for _ in range(bench.rounds(20)):
        for worker, found in zip(workers, blocks):
            found.append(worker.block(100, 0))
    small, large = (Estimate.of_values([block.cpu / 100e3 for block in found]) for found in blocks)
    table.figure(f"start + stop + free, {few} {what}", small, "us of CPU", digits=1)
    table.figure(f"start + stop + free, {many} {what}", large, "us of CPU", digits=1, ratio=large.value / small.value,
                 bound=(small.value * BOUND[0], "<= 1.5 times"))
    for worker in workers:
        worker.close()


def modules(bench):
    """The same work in the same eight modules, beside others that are loaded; and work in all of them."""
    directory = os.path.join(bench.scratch, "modules")
    os.mkdir(directory)
    for number in range(MANY_MODULES):
        shutil.copyfile(bench.program("small_module"), os.path.join(directory, f"{number}.so"))
    few, many = (bench.plain("many_modules", "--sample", 1000, "--modules", count, preload=[bench.probe()],
                             env={"BENCH_MODULES": directory}) for count in (FEW_MODULES, MANY_MODULES))
    samples(bench, "a sample, inside the handler", few, many, 0, 10)
    samples(bench, "a sample, work in all modules", few, many, 1, 100)  # a thousand are met by 7,000 samples
    for label, amount, which, index in (("a switch, sampling at 1000 Hz", SWITCHES, 2, None),
                                        ("start + stop + free", 100, 3, (0, 1, 3)), ("start", 100, 3, (0,)),
                                        ("a dump", 10, 4, (2,))):
        beside_modules(bench, label, few, many, amount, which, index)
    few.close()
    many.close()
    shutil.rmtree(directory)


def samples(bench, label, few, many, which, warm_up):
    costs = ([], [])
    for worker in (few, many):
        worker.block(warm_up * WORK_US, which)  # the first sample of a module, and of new code in it, costs more
        worker.gathered()
    for _ in range(bench.rounds(20)):
        for worker, found in zip((few, many), costs):
            worker.block(WORK_US, which)
            found.append(worker.gathered()[0])
    of_modules(label, costs, "ns")


def beside_modules(bench, label, few, many, amount, which, index):
    """index: of the figures whose sum counts; None: the thread's CPU time."""
    costs = ([], [])
    for worker in (few, many):
        worker.block(amount, which)
    for _ in range(bench.rounds(20)):
        for worker, found in zip((few, many), costs):
            block = worker.block(amount, which)
            found.append(block.cpu / amount if index is None else sum(block.figures[i] for i in index))
    of_modules(label, costs, "ns" if index is None else "us of CPU")


def of_modules(label, costs, unit):
    small, large = (Estimate.of_values(found) for found in costs)
    table.figure(f"{label}, {FEW_MODULES} modules", small, unit, digits=1)
    table.figure(f"{label}, {MANY_MODULES} modules", large, unit, digits=1, ratio=large.value / small.value,
                 bound=(small.value * BOUND[0], "<= 1.5 times"))
