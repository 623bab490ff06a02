# SPDX-License-Identifier: MIT
"""Work that a request hands to other threads, in whatever way, is the request's: its CPU time, its spans, and its critical path."""
import re

import support
import measured

support.require_package()

WAYS = ("thread", "class", "timer", "nested", "executor", "apply", "map", "imap", "starmap", "queue", "lifo", "priority", "simple")


class Followed(measured.Case):
    def run_program(self, how, what):
        """Returns the run, and {request: (seconds at work, latency)}."""
        run = support.Run("followed.py", how, what, options=("--clock", "wall"))
        rows = [line.split() for line in run.output.splitlines()]
        self.assertEqual(len(rows), 4, run.output)
        return run, {f"{verb} {path}": (float(worked), float(latency)) for _, verb, path, worked, latency in rows}

    def check_cpu(self, how):
        run, truth = self.run_program(how, "burn")
        lines = run.report("--by", "request").splitlines()
        rows = {line[-6:]: line.split() for line in lines if re.match(r" +\d.* ok .* GET /\d$", line)}
        for name, (burnt, _) in truth.items():
            self.at_least(f"CPU time of {name}", float(rows[name][1]) / 1e3, 0.97 * burnt, 0.001)
            self.at_most(f"CPU time of {name}", float(rows[name][1]) / 1e3, 1.03 * burnt, 0.01)  # and what it does itself
        self.assertFalse([line for line in lines if "task work" in line])  # spans of the work are within the request

    @staticmethod
    def is_nap(stack):
        """On a busy machine the stack of a nap may lack; a request, and a thread that waits for another one, take no naps."""
        return "nap" in stack or (stack[-2:] == ["[not sampled]", "[blocked]"] and not {"request", "by_thread"}.intersection(stack))

    def check_path(self, how):
        run, truth = self.run_program(how, "nap")
        stacks = run.folded("--by", "critical-path").stacks
        for name, (napped, latency) in truth.items():
            path = [(stack, weight) for stack, weight in stacks if name in stack[0]]
            self.near(f"path of {name}", sum(weight for _, weight in path), latency, 0.02, 0.001)
            # Calls of a map are beside one another: the last one alone is waited for.
            napping = sum(weight for stack, weight in path if self.is_nap(stack))
            self.at_least(f"work on the path of {name}", napping, (0.2 if "map" in how else 0.95) * napped, 0.001)


class Edges(measured.Case):
    def test_requests_keep_apart(self):
        """Of each the CPU time of its own part and of the part that another thread did for it; nothing of what came between."""
        run = support.Run("queue_edges.py")
        rows = [line.split() for line in run.report("--by", "request").splitlines() if re.match(r" +\d.* ok .* [A-Z]+ /", line)]
        self.assertEqual(sorted(row[-2] for row in rows), 6 * ["ASK"] + ["MIXED", "PUT", "SINGLE"])
        for row in rows:
            burnt = {"ASK": 0.02, "MIXED": 0.01, "PUT": 0, "SINGLE": 0.01}[row[-2]]
            self.at_least(f"CPU time of {row[-1]}", float(row[1]) / 1e3, 0.97 * burnt, 0.001)
            self.at_most(f"CPU time of {row[-1]}", float(row[1]) / 1e3, 1.03 * burnt, 0.004)


def test_of(check, how):
    return lambda self: check(self, how)


for way in WAYS:
    setattr(Followed, f"test_cpu_of_{way}", test_of(Followed.check_cpu, way))
    setattr(Followed, f"test_path_of_{way}", test_of(Followed.check_path, way))

if __name__ == "__main__":
    support.helpers.main(at_once=2)
