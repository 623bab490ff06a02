# SPDX-License-Identifier: MIT
"""The parts of tools/bench/run: processes that work in turns, figures, and one module per benchmark."""
