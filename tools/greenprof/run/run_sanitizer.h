// SPDX-License-Identifier: MIT
// run: programs that are built with a sanitizer of gcc's, as a shared library.
#pragma once

// Tell AddressSanitizer, which refuses to start behind the preloaded library, that the order is meant. Changes
// ASAN_OPTIONS where the program needs libasan, and the user has not decided it.
void gp_run_prepare_sanitizer(const char *program);
