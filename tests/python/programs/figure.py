"""Figures that a program of a test looks at itself."""
import sys

OUT_OF_TOLERANCE = 99  # as in measured.py


def within(fine, *figures):
    """Ends the program where `fine` is not true: it may be run again."""
    if not fine:
        print("out of tolerance:", *figures, file=sys.stderr)
        sys.exit(OUT_OF_TOLERANCE)
