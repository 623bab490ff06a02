# SPDX-License-Identifier: MIT
"""7. The cost of a hooked runtime's switch, beside the bare runtime."""
import collections
import os
import shutil

from . import table
from .rounds import Comparison

BOUNDS = {"resting": (1.0, "must hold <= 1 ns"), "1000": (12.0, "must hold <= 12 ns")}
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# switches: what is told as such, of one unit of a program's work.
Runtime = collections.namedtuple("Runtime", "name program switches")
RUNTIMES = [
    Runtime("GNU Pth, pth_yield()", "hooks_pth", 4),  # to the scheduler, to the other, and back
    Runtime("PCL, co_call() and co_resume()", "hooks_pcl", 2),
    Runtime("State Threads, st_cond_wait()", "hooks_st", 2),
    Runtime("Lua, lua_resume()", "hooks_lua", 2),
    Runtime("Ruby, Fiber#resume", "hooks.rb", 2),
    Runtime("PHP, Fiber::resume()", "hooks.php", 2),
]
INTERPRETERS = {".rb": ["ruby"], ".php": ["php", "-d", "opcache.enable_cli=0"]}


def run(bench):
    table.heading("7. hooks: ns of CPU per switch of a hooked runtime")
    if bench.has("hooks_boost"):
        run_boost(bench)
    else:
        table.line("  Boost.Context is not installed (Debian: libboost-context-dev)")
    for runtime in RUNTIMES:
        command = command_of(bench, runtime.program)
        if command is None:
            table.line(f"  {runtime.name}: not installed")
        else:
            run_other(bench, runtime, command)


def command_of(bench, program):
    """The program's command line, or None where its runtime is not there."""
    stem, extension = os.path.splitext(program)
    if not extension:
        return [bench.program(program), "--pin", bench.cpu] if bench.has(stem) else None
    interpreter = INTERPRETERS[extension]
    path = shutil.which(interpreter[0])
    return [path, *interpreter[1:], os.path.join(HERE, program)] if path else None


def run_other(bench, runtime, command):
    absent, resting, sampling = (f"{runtime.name}, {what}" for what in
                                 ("greenprof absent", "preloaded, resting", "greenprof run -F 1000"))
    comparison = Comparison(lambda: {
        absent: (bench.bare(command), 0),
        resting: (bench.bare(command, preload=[bench.core()]), 0),
        sampling: (bench.run_command(command, 1000), 0),
    }, 1, bench.rounds(100), warm_up_ms=20)
    first = comparison.cpu_ns(absent).value
    for name in comparison.names:
        cost = comparison.cpu_ns(name)
        table.figure(name, cost.scaled(1 / runtime.switches), "ns", ratio=cost.value / first)
        if name != absent:
            table.figure("    beyond the bare runtime", comparison.extra_ns(name, absent).scaled(1 / runtime.switches), "ns")


BASES = {
    "jump_fcontext, preloaded, resting": "jump_fcontext, preloaded, Boost's own",
    "jump_fcontext, greenprof run -F 1000": "jump_fcontext, greenprof run, Boost's own",
}
SWITCHES = 2  # there and back


def run_boost(bench):
    comparison = Comparison(lambda: boost(bench), 1, bench.rounds(400), warm_up_ms=5)
    first = comparison.cpu_ns(comparison.names[0]).value
    for name in comparison.names:
        cost = comparison.cpu_ns(name)
        table.figure(name, cost.scaled(1 / SWITCHES), "ns", ratio=cost.value / first)
        if name in BASES:
            extra = comparison.extra_ns(name, BASES[name]).scaled(1 / SWITCHES)
            table.figure("    beyond Boost's own in the same process", extra, "ns", bound=BOUNDS[name.split()[-1]])


def boost(bench):
    preloaded = bench.plain("hooks_boost", preload=[bench.core()])
    sampled = bench.run("hooks_boost", 1000)
    return {
        "jump_fcontext, greenprof absent": (bench.plain("hooks_boost"), 0),
        "jump_fcontext, preloaded, Boost's own": (preloaded, 1),
        "jump_fcontext, preloaded, resting": (preloaded, 0),
        "jump_fcontext, greenprof run, Boost's own": (sampled, 1),
        "jump_fcontext, greenprof run -F 1000": (sampled, 0),
    }
