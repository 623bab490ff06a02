# SPDX-License-Identifier: MIT
"""What tools/bench/run is made of: processes that work in turns, figures, and one module per benchmark."""
