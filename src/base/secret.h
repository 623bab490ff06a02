// SPDX-License-Identifier: MIT
// Passwords in URLs: no text that people, files or other hosts get has one.
//
// Threads: any. Signals: not safe.
#pragma once

#include <stddef.h>

// Copy a text without the passwords of the URLs in it: in scheme://[USER]:PASSWORD@..., in redis://PASSWORD@..., and
// behind options such as ?password= and &token=. A text that begins as a URL is one to its end; else URLs end at spaces
// and quotes.
//   instead: of a password; "" = nothing is left of it, and the copy is never longer than the text.
// Returns the copy, to be freed, or NULL when memory is short. Cost: linear.
char *gp_secret_masked(const char *text, const char *instead);

// The same in place, nothing instead; of a text that could not be copied nothing is left.
void gp_secret_remove(char *text);
