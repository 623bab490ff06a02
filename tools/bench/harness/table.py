"""Figures, one a line, with the bound that must hold beside those that have one."""


def heading(text):
    print(f"\n== {text}", flush=True)


def figure(label, estimate, unit, digits=2, ratio=None, bound=None, note=""):
    """bound: (number, "must hold" text)."""
    text = f"{estimate.value:.{digits}f} ±{estimate.error:.{digits}f} {unit}"
    parts = [f"  {label:<46} {text:<22}", f"x{ratio:.3f}" if ratio is not None else ""]
    line = f"{parts[0]} {parts[1]:<9}"
    if bound is not None:
        line += f" {bound[1]}: {verdict(estimate, bound[0])}"
    print((line + (f" {note}" if note else "")).rstrip(), flush=True)


def verdict(estimate, limit):
    if estimate.value + 2 * estimate.error <= limit:
        return "holds"
    if estimate.value - 2 * estimate.error > limit:
        return "MISSED"
    return "holds, barely" if estimate.value <= limit else "missed, within the noise"


def line(text):
    print("  " + text, flush=True)
