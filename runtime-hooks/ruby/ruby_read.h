// SPDX-License-Identifier: MIT
// Names and lines of Ruby's functions: the collector's, which reads the objects of a program that goes on. Lines are
// believed where the instruction sequence is still the same afterwards.
#pragma once

#include "ruby_frames.h"

// The address of the array of all names, found by the trial; 0 = not known: methods in C have no names.
extern uintptr_t gp_ruby_symbols __attribute__((visibility("hidden")));

// A name by number. Returns its length, 0 = not known.
//   text: [size], ends with NUL
size_t gp_ruby_symbol(uint64_t id, char *text, size_t size);

// The line at a place in a function; 0 = not known, or not any more.
uint32_t gp_ruby_line(const gp_ruby_function_t *function, uint32_t place);

// See gp_language_t.
gp_loc_t gp_ruby_locate(uintptr_t frame, uint64_t ticks);
