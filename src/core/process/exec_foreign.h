// SPDX-License-Identifier: MIT
// Programs of another C library, or of 32 bits: their loader would take LD_PRELOAD for its own, and complain or fail.
//
// Signals: safe, also in a child by vfork(); errno is changed.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Is this a program that greenprof cannot be loaded into, or a script for one? An unreadable file is none.
//   fd: as openat(2) has it; with the path "" the program itself.
bool gp_exec_is_foreign(int fd, const char *path);

// The same of the file that execvp() takes.
bool gp_exec_found_is_foreign(const char *file);

// Make `envp` an environment without greenprof's library in LD_PRELOAD, on the caller's stack, where `is_foreign`.
#define GP_EXEC_ENVIRONMENT(envp, is_foreign)                                                                          \
    bool without = (is_foreign);                                                                                       \
    size_t longest = 1, variables = without ? gp_exec_environment_size(envp, &longest) : 0;                            \
    char *own_variables[variables + 1], own_text[longest];                                                             \
    if (without)                                                                                                       \
        gp_exec_environment(envp, own_variables, own_text);                                                            \
    (envp) = without ? own_variables : (envp)

// How many variables, and bytes of the longest, there are.
size_t gp_exec_environment_size(char *const envp[], size_t *longest);

// Copy an environment, but for greenprof's library in LD_PRELOAD.
//   to:   room for as many pointers as variables, and one
//   text: room for as many bytes as the longest one
void gp_exec_environment(char *const envp[], char **to, char *text);
