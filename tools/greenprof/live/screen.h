// SPDX-License-Identifier: MIT
// A terminal that shows one page after the other in the same place, and is as before afterwards: at exit, and also
// where a signal ends or stops the command.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Take the terminal of standard output, if it is one. Returns whether it is.
bool gp_screen_open(void);
void gp_screen_close(void);

// Its size; what is not known is 24 and 80.
void gp_screen_size(size_t *lines, size_t *columns);

// Around a page.
void gp_screen_page_begin(void);
void gp_screen_page_end(void);

// The end of a line: it clears the rest.
extern const char gp_screen_line_end[];

// Wait for a key, `limit_ms` at most. Returns it, or 0: there was none; a new size counts as none.
int gp_screen_key(int limit_ms);
