# SPDX-License-Identifier: MIT
"""What must hold of every runtime, one row each: the shares of its coroutines, how many there are, how often they were
switched to, nothing below their entry functions, the program's output and status; at 1000 Hz with slices of milliseconds,
and at 10,000 Hz with slices as short as the period.

    test_shares.py GROUP
"""
import dataclasses
import sys

from shares import check
import shares

ROUNDS = 200
ROUNDS_IN_STEP = 5000
SPARE = 3  # switches to start, to end, to unwind

ENTRIES = {name: f"entry_{name}" for name in shares.WORKERS}
# At its end a coroutine may throw: the last call of its entry function, which the walker takes for a forged bottom.
BOOST = (r"void boost::context::detail::fiber_entry<", r"__cxa_throw$")
# In the parameters of the entry function; elsewhere the first of the program's own on the stack.
LAMBDA = {name: r"main::\{lambda\(boost::.*\)#1\}" for name in shares.WORKERS}
SWAP = r"swapcontext$"  # a few of its instructions have no caller: the stack pointer is already the next one's
SHAPE = (r"entry_",)


@dataclasses.dataclass
class Row:
    program: str          # and its first arguments
    bottoms: tuple        # regular expressions of what may stand outermost on a coroutine's stack: one frame, or two by ";"
    names: dict = None    # of the coroutines
    extra: tuple = (0,)   # how many more there may be: the runtime's own
    switches: bool = True # are they told? else the stack pointer at samples decides, and their number is not known
    in_step_too: bool = True # is their number exact at the high rate as well?
    options: tuple = ()   # of `greenprof run`


SHARED = {
    "ucontext": Row("ucontext", SHAPE + (SWAP,), ENTRIES),
    "boost_context": Row("boost_context", BOOST, LAMBDA),
    "boost_names": Row("boost_names", BOOST, LAMBDA),  # those of later versions, which C++ mangles
    "boost_coroutine2": Row("boost_coroutine2", BOOST, LAMBDA),
    # The dispatcher is a coroutine as well, and runs as often as it likes.
    "boost_fiber": Row("boost_fiber", BOOST + (r"libboost_fiber\.so",),
                       {name: r"run_worker(\(int\))?" for name in shares.WORKERS}, extra=(1,), in_step_too=False),
    # The entry function jumps into run().
    "boost_asio": Row("boost_asio", (r"void boost::coroutines::detail::trampoline_push_void<",
                                     r"boost::coroutines::detail::(push|pull)_coroutine_object<"), LAMBDA),
    # The scheduler is a coroutine as well; Pth's own trampoline calls the entry function.
    "pth": Row("pth", (r"libpth\.so", r"run$", SWAP), {name: f"the {name} one" for name in shares.WORKERS}, extra=(1,)),
    # co_exit_to() is the last that its runner calls.
    "pcl": Row("pcl", SHAPE + (r"libpcl\.so", r"co_exit", SWAP), ENTRIES, extra=(1,)),
    # The idle thread is entered when nothing else can run.
    "st": Row("st", SHAPE + (r"libst\.so",), ENTRIES, extra=(0, 1)),
    # Its functions in C are called by Lua's.
    "lua": Row("lua", (r"lua_resume$", r"alpha|beta|gamma|idle"),
               {name: rf"shares\.lua:{line}" for line, name in enumerate(shares.WORKERS, 2)}, options=("--native",)),
}

LINKED = {
    "boost_static": Row("boost_static", BOOST, LAMBDA),
    "boost_names_linked": Row("boost_names_linked", BOOST, LAMBDA),
    "boost_names_patched": Row("boost_names_patched", BOOST, LAMBDA),
    "folly": Row("folly", (r"\(anonymous namespace\)::Fiber::fiber_func",)),
    # The caller of the entry function has been compiled into st_thread_create(), and ends the coroutine after it.
    "st_static": Row("st_static", SHAPE + (r"_st_idle_thread_start", r"st_thread_create;st_thread_exit$"), ENTRIES, extra=(0, 1)),
    "lua_static": Row("lua_static", (r"lua_resume$", r"run$"), SHARED["lua"].names), # the hook itself, as a leaf
    "libtask": Row("shapes --shape libtask", SHAPE + (r"taskstart$",), ENTRIES),
    "brpc": Row("shapes --shape brpc", SHAPE, ENTRIES),
    "libaco": Row("shapes --shape libaco", SHAPE, ENTRIES),
}

LINKED_TOO = {
    "libco_tencent": Row("shapes --shape libco_tencent", SHAPE, ENTRIES),
    "libco_higan": Row("shapes --shape libco_higan", SHAPE, ENTRIES),
    "minicoro": Row("shapes --shape minicoro", SHAPE, ENTRIES),
    # Named by the place of go().
    "libdill": Row("shapes --shape libdill", SHAPE, {name: rf"shape_use\.c:{100 + i}" for i, name in enumerate(shares.WORKERS)},
                   switches=False),
    "photon": Row("shapes --shape photon", SHAPE, ENTRIES, switches=False),
    "photon_with_flags": Row("shapes --shape photon_flags", SHAPE, ENTRIES, switches=False),
    "nameless_switch": Row("shapes --shape nameless", SHAPE, ENTRIES),
    "shared_stack_libaco": Row("shapes --shape shared_libaco", SHAPE, ENTRIES),
    "shared_stack_libco": Row("shapes --shape shared_libco", SHAPE, ENTRIES),
}

GROUPS = {"shared": SHARED, "linked": LINKED, "linked_too": LINKED_TOO}


class Runtimes(shares.Shares):
    def hold(self, row, seconds, rounds, **options):
        known = row.switches and (not options.get("in_step") or row.in_step_too)
        self.check_shares([*row.program.split(), seconds, rounds], row.bottoms, names=row.names, extra=row.extra,
                          switches=(rounds, rounds + SPARE) if known else None, **{"options": row.options, **options})


def add(name, row):
    setattr(Runtimes, f"test_{name}", lambda self: self.hold(row, 0.8, ROUNDS))
    setattr(Runtimes, f"test_{name}_at_a_high_rate", lambda self: self.hold(row, 0.4, ROUNDS_IN_STEP, hz=10000, in_step=True))


if __name__ == "__main__":
    for name, row in GROUPS[sys.argv.pop(1)].items():
        add(name, row)
    check.main()
