# SPDX-License-Identifier: MIT
"""The coroutines of test_accuracy.py, built by clang."""
import os

import check
from test_accuracy import Coroutines


class Clang(check.Case):
    check = Coroutines.check
    check_roots = Coroutines.check_roots

    def test_clang(self):
        check.need(os.path.exists(check.program("coroutines_clang")), "there is no clang to build the program with")
        self.check("coroutines_clang")


del Coroutines  # unittest would run its tests once more

if __name__ == "__main__":
    check.main()
