// SPDX-License-Identifier: MIT
// Functions at the bottom of a coroutine's stack that say nothing of it. Private to src/report.
//
// Model: where a C++ runtime's template is the function that a coroutine begins with (Boost.Context's
// fiber_entry<...>), it is the same for all, or tells them apart far inside of its parameters. The first function above
// it that is not a runtime's is the program's own.
#pragma once

#include <stdbool.h>

// Is it a function of a C++ runtime of coroutines, or of the standard library?
//   function: demangled, with or without its result and parameters.
bool gp_report_is_runtimes(const char *function);
