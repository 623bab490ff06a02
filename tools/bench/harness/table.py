# SPDX-License-Identifier: MIT
"""Figures, one a line, each with the bound that must hold, if it has one."""
import sys

measured = {}  # label -> Estimate; a part's label begins with that of its whole: "whole / part"
_above = ""
_to_stderr = False


def go_to_stderr():
    """Standard output is for something else."""
    global _to_stderr  # pylint: disable=global-statement
    _to_stderr = True


def _say(text):
    print(text, flush=True, file=sys.stderr if _to_stderr else sys.stdout)


def keep(label, estimate):
    """Note a figure in `measured`."""
    global _above  # pylint: disable=global-statement
    if label.startswith(" "):
        label = f"{_above} / {label.strip()}"
    else:
        _above = label
    measured[label] = estimate


def heading(text):
    _say(f"\n== {text}")


def figure(label, estimate, unit, digits=2, ratio=None, bound=None, note=""):
    """bound: (number, text)."""
    text = f"{estimate.value:.{digits}f}" + (f" ±{estimate.error:.{digits}f}" if estimate.error else "") + f" {unit}"
    factor = f"x{ratio:.3f}" if ratio is not None else ""
    limit = f"{bound[1]}: {verdict(estimate, bound[0])}" if bound is not None else ""
    keep(label, estimate)
    _say(f"  {label:<50} {text:<20} {factor:<9} {' '.join(filter(None, (limit, note)))}".rstrip())


def verdict(estimate, limit):
    if estimate.value + 2 * estimate.error <= limit:
        return "holds"
    if estimate.value - 2 * estimate.error > limit:
        return "MISSED"
    return "holds, within the noise" if estimate.value <= limit else "missed, within the noise"


def line(text):
    _say("  " + text)


def progress(text):
    """Something to look at meanwhile: no figure, and not among them."""
    print("  " + text, flush=True, file=sys.stderr)
