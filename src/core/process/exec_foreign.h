// SPDX-License-Identifier: MIT
// Programs of another C library, or of 32 bits: their loader would take LD_PRELOAD for its own, and complain or fail.
//
// Signals: safe, also in a child by vfork(); errno is changed.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Is this one that greenprof cannot be loaded into? What cannot be read, and scripts, are none.
bool gp_exec_is_foreign(const char *path);

// How many variables, and bytes of the longest, there are.
size_t gp_exec_environment_size(char *const envp[], size_t *longest);

// Copy an environment, but for greenprof's library in LD_PRELOAD.
//   to:   room for as many pointers as variables, and one
//   text: room for as many bytes as the longest one
void gp_exec_environment(char *const envp[], char **to, char *text);
