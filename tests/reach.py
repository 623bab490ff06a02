# SPDX-License-Identifier: MIT
"""Which tests a run of tools/test is to run: prints a regular expression for ctest -R, nothing where it is none of them,
and on standard error why.

usage: reach.py PRESET all | since COMMIT | share COMMIT

all      all tests
since    the tests that the changes since COMMIT reach, uncommitted ones included
share    all quick tests, the slow ones that the changes reach, and one of SHARES shares of the other slow ones: which one,
         the commit's hash decides, so that a series of commits runs all of them; with a sanitizer all are slow

A change reaches a test by the graph of tests/layers: whatever may name the changed room is reached, and so are the tests
of what is reached. A change in tests/AREA reaches that area's tests; one in what builds or is shared reaches all.
"""
import hashlib
import json
import os
import re
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "layers"))
import test_layers  # noqa: E402

SHARES = 4
# Storms, faults, rounds of attach, clusters, kills, the suites of others, packages, Nova, other distributions; and what
# takes longer than half a minute.
SLOW = re.compile(r"stress\.|aarch64\.|musl\.|python\.(storms|nova|greenlets$)|foreign\.(?!harness)|package|install\.sub|suites\.|growth|waits$|"
                  r"control\.rounds|fleet\.ship|page\.(limits|page|requests_view|timeline)$|runtimes\.churn$|"
                  r"integration\.(rests|qemu|hosts|accuracy|parts)$|unwind_(oracle|stress)")
CORE = ["runtime-hooks", "runtime-hooks/cpython"]
HOST = CORE + ["library/dump.c", "=library/finish.c", "=library/consume.c", "consumer", "library/context.c", "=library/request_files.c",
               "=library/request_profiles.c", "=library/shipping.c"]
RUN = CORE + ["=tools/greenprof"]
REPORT = HOST + ["=tools/greenprof"]
PYTHON = REPORT + ["runtime-hooks/cpython/package"]
# By the beginning of a test's name (the longest such word): the rooms it runs, each with all that it may name; the
# room alone where a "=" precedes it. All of the sources where no word fits (install, package, production, docs).
AREAS = {
    "unwind": ["core/unwind"], "core": HOST, "symbol": ["symbol", "library/dump.c", "=tools/greenprof"], "wire": ["wire", "library/context.c"],
    "capture": ["capture", "capture/killed", "report"], "tree": ["traces", "=tools/greenprof"], "command": ["tools/greenprof"],
    "formats": REPORT, "export": REPORT, "page": REPORT, "otel": HOST, "exact": REPORT, "ledger": REPORT, "explain": REPORT, "waits": REPORT,
    "census": REPORT, "control": REPORT, "control.rounds": RUN, "integration": REPORT, "runtimes": REPORT, "growth": RUN,
    "libraries": REPORT, "python": PYTHON, "consumer": HOST, "demo": PYTHON + ["tools/demo-service"],
    "stress": RUN, "foreign": RUN, "suites": RUN, "fleet": RUN + ["ship/follow", "ship/ask"], "fleet.ship": ["ship/follow", "ship/ask", "=tools/greenprof"],
    "layers": [], "style": [], "measured": [], "bench": [],
}
EVERYWHERE = re.compile(r"(.*/)?CMakeLists\.txt$|cmake/|CMakePresets\.json|tools/(test|setup)$|tests/[^/]*$|tests/fuzz/|\.ci/|.*\.in$|.*\.map")
# Files of no room: the areas whose tests read them.
READERS = [(re.compile(r"doc/|.*\.md$"), ["docs", "install", "production"]), (re.compile(r"tools/(demo|fleet-demo)"), ["demo", "docs"]),
           (re.compile(r"tools/foreign-tests"), ["foreign"]), (re.compile(r"tools/(package|wheel/)|pyproject"), ["package"]),
           (re.compile(r"tests/runtimes/(shape|shares|ucontext)"), ["integration", "ledger", "stress"]),
           (re.compile(r"tests/integration/truth"), ["growth", "ledger", "runtimes"]),
           (re.compile(r"tests/page/"), ["command", "tree", "fleet"]), (re.compile(r"tests/consumer/redis"), ["tree"]),
           (re.compile(r"tools/clean-room"), ["suites"]), (re.compile(r"tools/bench"), ["bench"])]
OF_ALL_SOURCES = ["style", "layers"]  # tests that read every source


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=True).stdout


def area_of(test):
    """The folder below tests/, as far as a name tells."""
    return re.split(r"[._]", test)[0]


def rooms_of(test):
    words = [word for word in AREAS if test.startswith(word)]
    if not words:
        return set(test_layers.ALLOWED)
    rooms = set()
    for room in AREAS[max(words, key=len)]:
        rooms |= {room[1:]} if room.startswith("=") else test_layers.below(room)
    return rooms


def tests_of(preset):
    listed = subprocess.run(["ctest", "--preset", preset, "--show-only=json-v1"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [test["name"] for test in json.loads(listed.stdout)["tests"]]


def changed_since(commit):
    return sorted(set(git("diff", "--name-only", commit).split() + git("ls-files", "--others", "--exclude-standard").split()))


class Reach:
    """Rooms and areas that changed files reach."""

    def __init__(self, paths):
        self.rooms, self.areas, self.everywhere = set(), set(), None
        for path in paths:
            self.add(path)

    def add(self, path):
        readers = [area for pattern, areas in READERS if pattern.match(path) for area in areas]
        folder = re.match(r"tests/([^/]+)/", path)
        room = test_layers.room_of(path)
        self.areas.update(readers, OF_ALL_SOURCES)
        if EVERYWHERE.match(path):
            self.everywhere = path
        elif folder:
            self.areas.add(folder[1])
        elif room:
            self.rooms.add(room)
        elif not readers:
            self.everywhere = path  # a file that this table does not know

    def has(self, test):
        return bool(self.everywhere or area_of(test) in self.areas or self.rooms & rooms_of(test))

    def __str__(self):
        return f"all, by {self.everywhere}" if self.everywhere else ", ".join(sorted(self.rooms | self.areas)) or "nothing"


def share_of(name):
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % SHARES


def main():
    preset, mode = sys.argv[1:3]
    tests = tests_of(preset)
    slow = [test for test in tests if preset != "release" or SLOW.match(test)]
    if mode == "all":
        chosen, why = tests, "all"
    else:
        reach = Reach(changed_since(sys.argv[3]))
        share = int(git("rev-parse", "HEAD"), 16) % SHARES
        chosen = [test for test in tests if reach.has(test) or
                  mode == "share" and (test not in slow or share_of(test) == share)]
        why = f"changes since {sys.argv[3][:12]} reach {reach}" + (f"; share {share + 1} of {SHARES}" if mode == "share" else "")
    left_out = [test for test in slow if test not in chosen]
    print(f"{len(chosen)} of {len(tests)} tests, {len(slow) - len(left_out)} of {len(slow)} slow ones: {why}", file=sys.stderr)
    if left_out:
        print("left out: " + " ".join(left_out), file=sys.stderr)
    if chosen:
        print("^(" + "|".join(map(re.escape, chosen)) + ")$")


if __name__ == "__main__":
    main()
