// SPDX-License-Identifier: MIT
// run: programs that are built with a sanitizer of gcc's, as a shared library.
#pragma once

// AddressSanitizer refuses to start where it is not the first library, which the preloaded one is: tell it that this is
// meant. Changes ASAN_OPTIONS where the program needs libasan, and the user has not decided it.
void gp_run_prepare_sanitizer(const char *program);
