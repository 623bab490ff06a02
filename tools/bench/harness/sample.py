"""2. What a sample costs beyond an empty SIGPROF handler driven by the same timer."""
from . import table
from .rounds import Estimate, amount_for, extra_share, signals_per_second, take_turns
from .switch import close

OVERHEAD_BOUND = (1.0, "must hold <= 1 %")
BLOCK_MS = 20
SHAPES = ((10, 0, "10 frames"), (50, 0, "50 frames"), (50, 1, "50 frames, another path each 50 us"))


def run(bench):
    table.heading("2. sample: us per sample, delivery and lost caches included")
    for depth, changing, text in SHAPES:
        for hz in (1000, 10000):
            one(bench, hz, f"{text}, {hz} Hz", "--depth", depth, "--changing", changing)


def one(bench, hz, label, *arguments):
    variants = {
        "nothing": (bench.plain("sample_work", *arguments), 0),
        "empty": (bench.empty("sample_work", hz, *arguments), 0),
        "greenprof": (bench.run("sample_work", hz, *arguments, probed=True), 0),
    }
    amount = amount_for(variants["nothing"][0], BLOCK_MS)
    blocks = take_turns(variants, amount, bench.rounds(150 if hz == 1000 else 60))
    inside, whole = {}, {}
    for name in ("empty", "greenprof"):
        figures = variants[name][0].block(0).figures
        inside[name], whole[name] = Estimate.of(*figures[0:2]), Estimate.of(*figures[2:4])
    close(variants)
    show(label, hz, inside, whole)
    total = extra_share(blocks["greenprof"], blocks["empty"]).scaled(100)
    table.figure("    the program's CPU, beyond the empty handler's", total, "%",
                 note=f"({signals_per_second(blocks['greenprof']):.0f} signals/s,"
                      f" empty handler {signals_per_second(blocks['empty']):.0f})")
    collector(bench, hz, *arguments)


def show(label, hz, inside, whole):
    table.figure(f"{label}: empty handler", whole["empty"].scaled(1e-3), "us")
    table.figure("    greenprof", whole["greenprof"].scaled(1e-3), "us",
                 ratio=whole["greenprof"].value / whole["empty"].value)
    beyond = whole["greenprof"].minus(whole["empty"])
    table.figure("    greenprof beyond the empty handler", beyond.scaled(1e-3), "us",
                 note=f"= {beyond.value * hz / 1e7:.2f} % at {hz} Hz")
    if hz == 1000:
        table.figure("    1000 Hz beyond the empty handler", beyond.scaled(hz / 1e7), "%", bound=OVERHEAD_BOUND)
    handler = inside["greenprof"].minus(inside["empty"])
    table.figure("    of that, inside the handler", handler.scaled(1e-3), "us")


def collector(bench, hz, *arguments):
    """The collector's CPU, from one long block: its rounds go on while others work."""
    worker = bench.run("sample_work", hz, *arguments)
    amount = amount_for(worker, 1000 * min(1.0, bench.effort))
    before, block = worker.block(1), worker.block(amount)
    worker.close()
    own = block.process - before.process - block.cpu
    table.figure("    collector thread, per sample", Estimate.of(own / 1e3 / (block.cpu / 1e9 * hz)), "us",
                 note=f"({100 * own / block.cpu:.2f} % of the program's CPU)")
