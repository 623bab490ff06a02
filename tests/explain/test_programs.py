# SPDX-License-Identifier: MIT
"""Programs with one planted fault, and their healthy twins. A busy machine is a finding of its own, which is left out."""
import os
import subprocess

from verdict import GREENPROF, explain, findings, helpers

PYTHON = os.environ.get("GREENPROF_PYTHON", "/usr/bin/python3")
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")


def imports(module):
    return subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True).returncode == 0


class Programs(helpers.InFolder):
    def record(self, *command):
        path = self.path("x.greenprof")
        helpers.run([GREENPROF, "run", "-q", "-o", path, "--", *command])
        return path

    def first(self, path):
        said = findings(path)
        print(explain(path).stdout)
        self.assertTrue(said, "nothing is said")
        return said[0]

    def check(self, path, kind, function):
        finding = self.first(path)
        self.assertEqual(finding["kind"], kind)
        self.assertRegex(finding["function"], f"^({function})$")
        self.assertGreater(finding["line"], 0)
        with open(finding["file"]) as file:  # the line is within the function, or calls what is
            self.assertRegex(file.read(), rf"\b({function})\b")

    def service(self, *arguments):
        program = os.path.join(os.environ["PROGRAMS"], arguments[0])
        helpers.need(os.path.exists(program), "the programs of tests/ledger are not built")
        return self.record(program, *arguments[1:])

    def python(self, program, fault, module, seconds=1.5):
        helpers.need(imports(module), f"python3-{module} is not installed")
        return self.record(PYTHON, "-B", os.path.join(HERE, program), fault, str(seconds))

    def test_c_that_computes(self):
        self.check(self.service("service", "hog", 20, 10, 20, "crunch"), "held-loop", "crunch|truth_spin")

    def test_c_that_sleeps(self):
        self.check(self.service("service", "hog", 20, 10, 20, "doze"), "blocking-call", "block")

    def test_c_whose_runtime_does_not_tell(self):
        path = self.service("untold")
        self.check(path, "held-loop", "layout_table|truth_spin")
        self.assertIn("whether the others could have run is not known", explain(path).stdout)

    def test_healthy_c(self):
        self.assertEqual(findings(self.service("service", "yields", 4000)), [])

    def test_asyncio_that_computes(self):
        self.check(self.python("tasks.py", "computes", "asyncio"), "held-loop", "price_curve")

    def test_asyncio_that_sleeps(self):
        self.check(self.python("tasks.py", "sleeps", "asyncio"), "blocking-call", "read_settings")

    def test_healthy_asyncio(self):
        self.assertEqual(findings(self.python("tasks.py", "none", "asyncio")), [])

    def test_eventlet_that_computes(self):
        self.check(self.python("greens.py", "computes", "eventlet"), "held-loop", "render_page")

    def test_eventlet_that_sleeps(self):
        self.check(self.python("greens.py", "sleeps", "eventlet"), "blocking-call", "read_settings")

    def test_eventlet_that_grows(self):
        self.check(self.python("greens.py", "grows", "eventlet", 4), "growing", "subscribe")

    def test_healthy_eventlet(self):
        self.assertEqual(findings(self.python("greens.py", "none", "eventlet")), [])

    def locks(self, fault):
        return self.record(PYTHON, "-B", os.path.join(HERE, "locks.py"), fault, "2")

    def test_a_lock_held_long(self):
        path = self.locks("held")
        self.check(path, "lock-held", "refresh_cache")
        text = " ".join(explain(path).stdout.split())  # lines fit the terminal
        self.assertRegex(text, r"holds the lock of locks\.py:\d+ for long: others waited .* hurt: [23] threads, .* "
                               r"shown: greenprof report \S+ --by lock")  # the holder waits as well, for a moment

    def test_the_interpreter_s_lock_held_long(self):
        said = [finding for finding in findings(self.locks("gil")) if finding["kind"] == "gil-held"]
        self.assertEqual(len(said), 1)
        self.assertIn("render_table", said[0]["function"])
        self.assertGreater(said[0]["line"], 0)

    def test_a_deadlock(self):
        finding = self.first(self.locks("deadlock"))
        self.assertEqual(finding["kind"], "deadlock")
        for part in ("waits in take_right (locks.py:", "waits in transfer_right (locks.py:", "they cannot be woken"):
            self.assertIn(part, finding["sentence"])

    def test_a_lock_that_was_passed_on(self):
        """Whoever had it as a wait began waits for the waiter: but by now a third one has it, who goes on."""
        self.assertNotIn("deadlock", [finding["kind"] for finding in findings(self.locks("passed"))])

    def test_healthy_locks(self):
        for fault in ("none", "twin"):
            self.assertEqual(findings(self.locks(fault)), [], fault)

    def test_queries_again_and_again(self):
        helpers.need(imports("greenprof"), "the package greenprof was not built")
        self.check(self.python("queries.py", "again", "eventlet"), "repeated-call", "ask|load_orders")

    def test_calls_that_fail_and_are_made_again(self):
        helpers.need(imports("greenprof"), "the package greenprof was not built")
        finding = self.first(self.python("queries.py", "retries", "eventlet"))
        self.assertEqual(finding["kind"], "retries")
        self.assertRegex(finding["sentence"], r"^POST /charge.* runs 6 times, one after the other, in each \"GET /customers\", and most of them fail")

    def test_a_long_start(self):
        helpers.need(imports("greenprof"), "the package greenprof was not built")
        notes = findings(self.python("queries.py", "starts", "eventlet"), ranks=("note",))
        cost_ns, = (note["cost_ns"] for note in notes if note["kind"] == "start-up")
        self.assertGreater(cost_ns, 0.55e9)  # and the imports; a twin with a fixed start is in test_findings.py

    def test_healthy_queries(self):
        helpers.need(imports("greenprof"), "the package greenprof was not built")
        self.assertEqual(findings(self.python("queries.py", "none", "eventlet")), [])

    def test_a_process_that_runs(self):
        path = self.path("live.greenprof")
        command = [GREENPROF, "run", "-q", "--control", "-o", path, "--", PYTHON, "-B", os.path.join(HERE, "tasks.py"), "computes", "100"]
        with subprocess.Popen(command) as process:
            try:
                helpers.until(lambda: "price_curve" in subprocess.run([GREENPROF, "explain", str(process.pid)], capture_output=True, text=True).stdout,
                              process=process, pause=0.5)
            finally:
                process.kill()
        self.assertIn("no such process", explain(2**22 + 1, status=1).stderr)


if __name__ == "__main__":
    helpers.main(at_once=2)
