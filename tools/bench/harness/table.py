# SPDX-License-Identifier: MIT
"""Figures, one a line, with the bound that must hold beside those that have one."""


def heading(text):
    print(f"\n== {text}", flush=True)


def figure(label, estimate, unit, digits=2, ratio=None, bound=None, note=""):
    """bound: (number, text)."""
    text = f"{estimate.value:.{digits}f}" + (f" ±{estimate.error:.{digits}f}" if estimate.error else "") + f" {unit}"
    factor = f"x{ratio:.3f}" if ratio is not None else ""
    limit = f"{bound[1]}: {verdict(estimate, bound[0])}" if bound is not None else ""
    print(f"  {label:<50} {text:<20} {factor:<9} {' '.join(filter(None, (limit, note)))}".rstrip(), flush=True)


def verdict(estimate, limit):
    if estimate.value + 2 * estimate.error <= limit:
        return "holds"
    if estimate.value - 2 * estimate.error > limit:
        return "MISSED"
    return "holds, within the noise" if estimate.value <= limit else "missed, within the noise"


def line(text):
    print("  " + text, flush=True)
