"""python3 -m greenprof [-o FILE] [-F HZ] [-s KEY] script.py [ARGUMENT...] | -m MODULE [ARGUMENT...]"""
import argparse
import io
import os
import sys

import greenprof


def parse():
    parser = argparse.ArgumentParser(prog="python3 -m greenprof", description="Run a program under greenprof.",
                                     usage="%(prog)s [-o FILE] [-F HZ] [--clock cpu|wall] [-s KEY] "
                                           "script.py [ARGUMENT...] | -m MODULE [ARGUMENT...]")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the profile there, in the format of its suffix "
                        "(.prof, .svg, .folded, .pb.gz, .speedscope.json, .callgrind, .json); else it is printed")
    parser.add_argument("-F", "--frequency", metavar="HZ", type=int, default=1000)
    parser.add_argument("--clock", choices=["cpu", "wall"], default="cpu")
    parser.add_argument("-s", "--sort", metavar="KEY", default="tottime", help="of what is printed: a key of pstats")
    parser.add_argument("-m", dest="module", action="store_true", help="what follows is a module")
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.program:
        parser.error("which program?")
    if not 1 <= options.frequency <= 20000:
        parser.error(f"-F {options.frequency}: the frequency is a whole number from 1 to 20000 Hz")
    return options


def load(options):
    """Code to run, and the globals to run it in: a __main__ of its own."""
    import runpy
    name = options.program[0]
    if options.module:
        # What `python3 -m` does before it runs the code.
        sys.argv[:] = options.program
        sys.path.insert(0, "")
        return "run_module(name, run_name='__main__', alter_sys=True)", {"run_module": runpy.run_module, "name": name}
    sys.argv[:] = options.program
    sys.path[0] = os.path.dirname(os.path.abspath(name))
    with io.open_code(os.path.abspath(name)) as file:
        code = compile(file.read(), name, "exec")
    main = type(sys)("__main__")
    main.__file__ = name
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main
    return code, main.__dict__


def main():
    options = parse()
    try:
        code, scope = load(options)
    except OSError as error:
        sys.exit(f"greenprof: {options.program[0]}: {error.strerror}")
    profile = greenprof.Profile(scope="process", clock=options.clock, frequency=options.frequency,
                                name=os.path.basename(options.program[0]))
    try:
        with profile:
            exec(code, scope)
    finally:
        if options.output:
            profile.dump(options.output)
        else:
            profile.print_stats(options.sort)


if __name__ == "__main__":
    main()
