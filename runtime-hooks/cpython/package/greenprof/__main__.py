# SPDX-License-Identifier: MIT
"""python3 -m greenprof [-o FILE] [-F HZ] [--clock cpu|wall] [--exact] [--native] [-s KEY] script.py [ARGUMENT...] | -m MODULE [ARGUMENT...]"""
import argparse
import io
import os
import sys
import traceback

import greenprof


def parse():
    parser = argparse.ArgumentParser(prog="python3 -m greenprof", description="Run a program under greenprof.",
                                     usage="%(prog)s [-o FILE] [-F HZ] [--clock cpu|wall] [--exact] [--native] "
                                           "[-s KEY] script.py [ARGUMENT...] | -m MODULE [ARGUMENT...]")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the profile there, in the format of its suffix "
                        "(.prof, .html, .svg, .folded, .pb.gz, .speedscope.json, .callgrind, .json); else it is printed")
    parser.add_argument("-F", "--frequency", metavar="HZ", type=int, default=1000)
    parser.add_argument("--clock", choices=["cpu", "wall"], default="cpu")
    parser.add_argument("--exact", action="store_true", help="count every call")
    parser.add_argument("--native", action="store_true", help="native frames between those of Python")
    parser.add_argument("-s", "--sort", metavar="KEY", default="tottime", help="of what is printed: a key of pstats")
    parser.add_argument("-m", dest="module", action="store_true", help="what follows is a module")
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.program:
        parser.error("missing program")
    if not 1 <= options.frequency <= 20000:
        parser.error(f"-F {options.frequency}: the frequency is a whole number from 1 to 20000 Hz")
    check_output(parser, options)
    return options


def check_output(parser, options):
    """Errors that would be found out only when the program has run, and its profile is lost."""
    import pstats
    if options.sort not in pstats.Stats().get_sort_arg_defs():
        parser.error(f"-s {options.sort}: the keys are {', '.join(sorted(pstats.Stats.sort_arg_dict_default, key=str))}")
    if options.output is None:
        return
    try:
        greenprof.format_of(options.output)
    except ValueError as error:
        parser.error(f"-o {error}")
    directory = os.path.dirname(options.output) or "."
    if not os.access(directory, os.W_OK | os.X_OK):
        sys.exit(f"greenprof: {options.output}: {os.strerror(13 if os.path.isdir(directory) else 2)}")


def load(options):
    """Code to run, and the globals to run it in: a __main__ of its own."""
    import importlib.util
    import runpy
    name = options.program[0]
    if options.module:
        # As `python3 -m` does before it runs the code.
        sys.argv[:] = options.program
        sys.path.insert(0, "")
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name}")
        return "run_module(name, run_name='__main__', alter_sys=True)", {"run_module": runpy.run_module, "name": name}
    sys.argv[:] = options.program
    path = os.path.abspath(name)
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec")
    main = type(sys)("__main__")
    main.__file__ = path
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main
    return code, main.__dict__


def main():
    options = parse()
    try:
        code, scope = load(options)
    except OSError as error:
        sys.exit(f"greenprof: {options.program[0]}: {error.strerror}")
    except (SyntaxError, ValueError) as error:  # of the program; no line of ours has a part in it
        sys.exit("".join(traceback.format_exception_only(error)).rstrip())
    except ImportError as error:
        sys.exit(f"greenprof: {options.program[0]}: {error}")
    profile = greenprof.Profile(scope="process", clock=options.clock, frequency=options.frequency, native=options.native,
                                mode="exact" if options.exact else "sample", name=os.path.basename(options.program[0]))
    try:
        with profile:
            exec(code, scope)
    except BaseException:
        finish(profile, options)
        raise
    if not finish(profile, options):
        sys.exit(1)


def finish(profile, options):
    """Returns whether the profile is where it was asked for; how the program ended matters more."""
    try:
        sys.stdout.flush()
        if options.output is None:
            profile.print_stats(options.sort)
        else:
            profile.dump(options.output)
    except OSError as error:
        print(f"greenprof: {options.output or 'standard output'}: {error.strerror}", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    main()
