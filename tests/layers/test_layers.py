# SPDX-License-Identifier: MIT
"""Dependencies point downwards only: the rooms of the source tree, and what each may name.

The graph is drawn from the sources (#include "...") and from the objects that were built of them (symbols that one room
defines and another one needs). An arrow that ALLOWED does not have is a failure; `python3 test_layers.py --draw BUILD`
prints the graph.
"""
import collections
import glob
import os
import re
import subprocess
import sys
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.environ.get("GREENPROF_BUILD", os.path.join(ROOT, "build", "release"))

# Room: the rooms right below it. The room may name these, and all below them.
ALLOWED = {
    "include": [],                                          # the public headers
    "base": [],
    "static": [],                                           # stands for the dynamic loader in libgreenprof.a
    "musl": [],                                             # names of glibc's, where the C library is musl
    "model": ["include", "base"],
    "live": ["model"],                                      # how the command and a running process meet
    "capture": ["model"],                                   # the file's layout
    "capture/write": ["capture"],
    "capture/read": ["capture"],
    "capture/several": ["capture/read"],
    "capture/killed": ["capture/read", "capture/write"],
    # Runs in the host; none of it names what reads.
    "core/unwind": ["base"],
    "core/signal": ["core/unwind", "model"],
    "otel": ["include"],                                    # a library of its own, which the core loads where it is asked for
    "core": ["core/signal"],                                # settings, and interface.h: what the core offers to others
    "core/coro": ["core"],
    "core/trace": ["core/coro"],
    "core/collect": ["core/coro"],
    "core/exact": ["core/collect"],
    "core/profile": ["core/collect", "core/exact", "core/trace"],
    "core/record": ["core/profile", "capture/write", "live", "otel"],
    "core/control": ["core/record"],
    "core/process": ["core/control"],
    "runtime-hooks": ["core/process"],
    "runtime-hooks/cpython/interpreter": ["runtime-hooks"],
    "runtime-hooks/cpython/greenlet": ["runtime-hooks/cpython/interpreter"],
    "runtime-hooks/cpython/asyncio": ["runtime-hooks/cpython/greenlet"],
    "runtime-hooks/cpython/exact_calls": ["runtime-hooks/cpython/greenlet"],
    "runtime-hooks/cpython/pools": ["runtime-hooks/cpython/exact_calls"],
    "runtime-hooks/cpython/package": ["core/process", "library/finish.c", "library/consume.c", "library/context.c"],  # it is linked with the library
    "runtime-hooks/cpython": ["runtime-hooks/cpython/asyncio", "runtime-hooks/cpython/pools"],
    # Reads captures and snapshots; none of it names src/core.
    "symbol": ["base"],
    "facts": ["symbol", "capture/several"],                 # a capture in memory, and names of its locations
    "report": ["facts"],
    "export/write": ["report"],                             # JSON, XML, protobuf, text: what formats are written with
    "page": ["export/write"],                               # one HTML file: its data in C, and web/
    "export": ["page"],
    "traces": ["export", "consumer", "include"],            # the command's; the library has none of it; of consumer the URLs
    "ship/rows": ["export", "include"],                     # the command's, too: captures into stores of many hosts
    "ship/send": ["ship/rows"],
    "watch": ["ship/send", "capture/killed"],                               # the destination that is a folder: slow requests, held threads
    "ship/destinations.c": ["watch"],
    "ship/follow": ["ship/destinations.c"],
    "ship/ask": ["ship/send", "capture/write"],
    "consumer": ["model", "base"],                          # backends of spans; neither names the other two
    "wire": ["model", "base"],                              # headers of requests; nor does this
    # The library's files that know both halves, or the core and one of the rooms above; and the programs.
    "library/request_files.c": ["consumer", "wire", "export", "library/dump.c"],
    "library/request_profiles.c": ["library/request_files.c", "core/process"],
    "library/shipping.c": ["consumer", "ship/follow", "core/process"],  # of ship only what its library has to say (here.h)
    "library/consume.c": ["library/request_profiles.c", "library/shipping.c", "consumer", "wire", "core/process"],
    "library/context.c": ["wire", "core/process"],
    "library/symbolizer_cache.c": ["symbol", "core"],
    "library/dump.c": ["export", "library/symbolizer_cache.c", "core/process"],
    "library/finish.c": ["library/dump.c"],
    "tools/greenprof": ["traces", "ship/follow", "ship/ask", "capture/killed", "live"],
    "tools/demo-service": ["include"],
}

# Files of runtime-hooks that say what can be hooked, without the hooks themselves: the command lists them.
HOOK_TABLES = (("runtime-hooks", "tools/greenprof"), ("runtime-hooks/cpython/interpreter", "tools/greenprof"))

SEARCHED = ("src", "src/core", "include", "runtime-hooks", "runtime-hooks/cpython", "tools/greenprof")
CIRCLE_MOST = 4  # modules of a room that include each other
SOURCE = re.compile(r"\.(c|h|S|inc)$")
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def room_of(path):
    """The room of a file of the tree, the longest that contains it; None where no room does (tests, benchmarks)."""
    path = path[len("src/"):] if path.startswith("src/") else path
    while path and path not in ALLOWED:
        path = os.path.dirname(path)
    return path or None


def below(room):
    """All that a room may name."""
    seen, todo = {room}, [room]
    while todo:
        for lower in ALLOWED[todo.pop()]:
            if lower not in seen:
                seen.add(lower)
                todo.append(lower)
    return seen


def sources():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "src", "include", "runtime-hooks", "runtime-hooks/cpython", "tools"],
                            cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        paths = listed.stdout.splitlines()
    else:  # no checkout: an unpacked archive
        paths = [os.path.relpath(os.path.join(folder, name), ROOT)
                 for top in ("src", "include", "runtime-hooks", "runtime-hooks/cpython", "tools")
                 for folder, _, names in os.walk(os.path.join(ROOT, top)) for name in names]
    return [path for path in paths if SOURCE.search(path) and os.path.exists(os.path.join(ROOT, path))]


def included_file(path, name):
    """The file of the tree that `path` includes as `name`; None for a header of the system, or a generated one."""
    for folder in (os.path.dirname(path),) + SEARCHED:
        candidate = os.path.normpath(os.path.join(folder, name))
        if os.path.isfile(os.path.join(ROOT, candidate)):
            return candidate
    return None


def include_edges():
    """{(room, room): {"file includes file", ...}}"""
    edges = collections.defaultdict(set)
    for path in sources():
        with open(os.path.join(ROOT, path), encoding="utf-8") as source:
            names = INCLUDE.findall(source.read())
        for name in names:
            target = included_file(path, name)
            if target and room_of(path) and room_of(target):
                edges[room_of(path), room_of(target)].add(f"{path} includes {name}")
    return edges


def objects():
    """(room, object file) of all that was built of a room's sources; a build of another target keeps its own."""
    for folder, _, names in os.walk(BUILD):
        match = re.search(r"(?:^|/)((?:src|runtime-hooks|tools)(?:/[^/]+)*)/CMakeFiles/[^/]+\.dir", folder)
        for name in names:
            if match and name.endswith(".o") and "__" not in folder:
                source = os.path.join(match[1], name[:-len(".o")])
                if os.path.exists(os.path.join(ROOT, source)) and room_of(source):
                    yield room_of(source), os.path.join(folder, name)


def symbol_edges():
    """{(room, room): {"object needs symbol", ...}}"""
    found = list(objects())
    listing = subprocess.run(["nm", "-A", "-P"] + [path for _, path in found], capture_output=True, text=True, check=True)
    rooms = {path: room for room, path in found}
    defined, needed = collections.defaultdict(set), []
    for line in listing.stdout.splitlines():
        path, symbol, kind = line.split()[:3]
        room = rooms[path.rstrip(":")]
        if kind in "Uw":
            needed.append((room, path.rstrip(":"), symbol))
        elif kind.isupper() and symbol.startswith(("gp_", "prof_")):
            defined[symbol].add(room)
    edges = collections.defaultdict(set)
    for room, path, symbol in needed:
        owners = defined.get(symbol, set())
        if symbol.startswith("prof_") and not room.startswith("core"):
            continue  # the public interface, which the headers of include/ declare
        if not owners & below(room):  # a symbol of two rooms is taken from an allowed one
            for owner in owners:
                edges[room, owner].add(f"{os.path.basename(path)} needs {symbol}")
    return edges


def includes_within(room):
    """{module: modules of the same room that it includes}; a module is a .c and its .h."""
    edges = collections.defaultdict(set)
    for path in sources():
        if room_of(path) == room:
            with open(os.path.join(ROOT, path), encoding="utf-8") as source:
                targets = {included_file(path, name) for name in INCLUDE.findall(source.read())}
            module = os.path.splitext(path)[0]
            edges[module] |= {os.path.splitext(target)[0] for target in targets if target and room_of(target) == room} - {module}
    return edges


def reached(edges, module):
    seen, todo = set(), [module]
    while todo:
        new = edges.get(todo.pop(), set()) - seen
        seen |= new
        todo += new
    return seen


def circles(edges):
    """Sets of modules that include each other, by whatever way."""
    ways = {module: reached(edges, module) for module in edges}
    return {frozenset(other for other in ways[module] if module in ways[other]) for module in ways if module in ways[module]}


def upward(edges):
    return sorted(f"{room} -> {target}: {what}" for (room, target), whats in edges.items() for what in whats
                  if target not in below(room) and (target, room) not in HOOK_TABLES)


class Layers(unittest.TestCase):
    maxDiff = None

    def test_includes(self):
        edges = include_edges()
        self.assertGreater(len(edges), 40, "the graph of the sources")
        self.assertEqual(upward(edges), [])

    def test_symbols(self):
        self.assertGreater(len(list(objects())), 200, "objects of the build")
        self.assertEqual(upward(symbol_edges()), [])

    def test_table_has_no_circle(self):
        for room in ALLOWED:
            for lower in ALLOWED[room]:
                self.assertNotIn(room, below(lower))

    def test_circles_within_rooms_are_small(self):
        for room in ALLOWED:
            for circle in circles(includes_within(room)):
                self.assertLessEqual(len(circle), CIRCLE_MOST, sorted(circle))

    def test_circle_is_found(self):
        edges = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}
        self.assertEqual(circles(edges), {frozenset("abc")})

    def test_halves(self):
        """Core never names read, read never names core."""
        for room in ALLOWED:
            if room.startswith("core"):
                self.assertFalse([lower for lower in below(room) if lower.startswith("read")])
            if room.startswith("read"):
                self.assertFalse([lower for lower in below(room) if lower.startswith("core")])

    def test_what_registers_itself_is_named_nowhere_else(self):
        """A destination and a backend are a folder: nothing outside of it has its symbol, or its name in a table."""
        lists = glob.glob(os.path.join(ROOT, "src", "**", "CMakeLists.txt"), recursive=True)
        texts = {path: read(os.path.join(ROOT, path)) for path in sources()}
        for call, symbol, known in (("greenprof_destination", "gp_destination_", ()), ("greenprof_backend", "gp_consumer_", ("file", "null"))):
            names = {match[1]: os.path.dirname(path) for path in lists for match in re.finditer(rf"^{call}\((\w+)", read(path), re.MULTILINE)}
            self.assertGreaterEqual(len(names), 3)
            for name, folder in names.items():
                users = [path for path, text in texts.items() if re.search(rf"\b{symbol}{name}\b", text)
                         and not os.path.join(ROOT, path).startswith(folder + os.sep)]
                self.assertTrue(users == [] or name in known, (name, users))

    def test_upward_include_is_found(self):
        self.assertEqual(len(upward({("core/signal", "core/record"): {"a.c includes record/session.h"},
                                     ("core/record", "core/signal"): {"b.c includes signal/ring.h"}})), 1)


def draw():
    edges = include_edges()
    order = list(ALLOWED)
    print("includes, row names column:")
    for room in order:
        row = [f"{target} {len(edges[room, target])}" for target in order if target != room and edges.get((room, target))]
        print(f"  {room:20} {', '.join(row)}")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--draw":
        BUILD = sys.argv[2]
        draw()
    else:
        unittest.main()
