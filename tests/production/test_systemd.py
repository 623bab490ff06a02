# SPDX-License-Identifier: MIT
"""The drop-in: systemd understands it, and what it sets makes a capture in the folder that it has made."""
import os
import re
import shutil
import subprocess
import unittest

from support import BURN, Case, example


class DropIn(Case):
    def verify(self, drop_in):
        """What systemd says of a unit with this drop-in."""
        unit = self.path("demo.service")
        os.makedirs(unit + ".d", exist_ok=True)
        with open(unit, "w", encoding="utf-8") as file:
            file.write("[Service]\nExecStart=/bin/true\nDynamicUser=yes\nProtectSystem=strict\n")
        with open(os.path.join(unit + ".d", "greenprof.conf"), "w", encoding="utf-8") as file:
            file.write(drop_in)
        environment = {**os.environ, "SYSTEMD_LOG_LEVEL": "notice", "LC_ALL": "C.UTF-8"}
        result = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=120, env=environment)
        return [line for line in result.stdout.splitlines() if "greenprof.conf" in line or "demo.service" in line]

    def test_systemd_understands_it(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("no systemd")
        drop_in = example("systemd", "[Service]")
        self.assertEqual(self.verify(self.fill(drop_in, NAME="demo")), [])
        # The drop-in is read, and mistakes are found.
        self.assertRegex("\n".join(self.verify(drop_in + "LogsDirectories=demo\n")), "greenprof.conf:.*LogsDirectories")

    def test_its_environment(self):
        drop_in = self.fill(example("systemd", "[Service]"), NAME="demo").replace("%%", "%")
        directory = re.search(r"^LogsDirectory=(.*)$", drop_in, re.MULTILINE)[1]
        variables = dict(re.findall(r"^Environment=(\w+)=(.*)$", drop_in, re.MULTILINE))
        output = variables["GREENPROF_OUTPUT"]
        self.assertTrue(output.startswith(f"/var/log/{directory}/"), output)  # which systemd makes
        variables["GREENPROF_OUTPUT"] = output.replace(f"/var/log/{directory}", self.captures)
        self.run_shell(BURN, env={**os.environ, **variables, "GREENPROF_FOLLOW": "all"})
        self.assertEqual(len(self.recorded()), 1)
        self.assertIn("CPU time", self.report(*self.recorded()))


if __name__ == "__main__":
    unittest.main(argv=["test_systemd.py"])
