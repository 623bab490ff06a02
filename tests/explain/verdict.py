# SPDX-License-Identifier: MIT
"""What `greenprof explain` says, taken apart."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import helpers  # noqa: E402

GREENPROF = os.environ["GREENPROF"]


def explain(*arguments, status=0):
    return helpers.run([GREENPROF, "explain", *arguments], status=status)


def findings(*arguments, ranks=("caveat", "finding")):
    """What is said of the program: not of the machine, which may be busy, and no notes."""
    said = json.loads(explain(*arguments, "--json").stdout)
    assert said["version"] == 1
    for finding in said["findings"]:
        assert finding["command"].startswith("greenprof ") and finding["sentence"] and finding["kind"], finding
        assert not re.search(r"\b(nan|inf)\b", finding["sentence"]), finding
    return [finding for finding in said["findings"] if finding["rank"] in ranks]
