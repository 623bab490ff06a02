# SPDX-License-Identifier: MIT
"""What a request's profile covers: its own green threads, and nothing that others do."""
import os
import tempfile
import unittest

import support
import measured

support.require_package()
support.require("eventlet", "gevent")


class OwnRows(unittest.TestCase):
    def check(self, *arguments, **options):
        self.assertEqual(support.python("own_rows.py", *arguments, **options), "end\n")

    def test_exact_on_eventlet(self):
        self.check("eventlet", "exact", 400)

    def test_exact_on_gevent(self):
        self.check("gevent", "exact", 400)

    def test_exact_with_switches_traced(self):
        self.check("eventlet", "exact", 200, GREENPROF_GREENLETS="trace")

    def test_samples_on_eventlet(self):
        self.check("eventlet", "sample", 150)

    def test_samples_on_gevent(self):
        self.check("gevent", "sample", 150)

    def test_under_greenprof_run(self):
        with tempfile.TemporaryDirectory() as directory:
            before = support.GREENPROF, "run", "--quiet", "-o", os.path.join(directory, "c.greenprof"), "--"
            self.check("eventlet", "exact", 100, before=before)
            self.check("gevent", "sample", 100, before=before)


class FirstWait(measured.Case):
    def test_is_a_wait_of_the_request(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "wall.folded")
            support.python("first_wait.py", path)
            with open(path) as file:
                times = support.Folded(file.read())
        waited = sum(seconds for stack, seconds in times.stacks if "request" in stack and stack[-1] in ("[parked]", "[ready]", "[waiting]"))
        self.at_least("waited", waited, 0.29)  # asleep for 0.3 s, and a wait this long is in the profile as a whole
        self.assertNotIn("[blocked]", {stack[-1] for stack, _ in times.stacks if "BaseHub.run" in stack})


if __name__ == "__main__":
    unittest.main(verbosity=2)
