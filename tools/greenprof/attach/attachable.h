// SPDX-License-Identifier: MIT
// Checks whether a process can be attached to; each reason against it has its sentence. All return 0 or EXIT_FAILED,
// with a message.
//   subject: for messages.
#pragma once

#include "target_modules.h"

// Refused: no running process of its own; a program that is none for us; no C library, or another than glibc; a place
// without /proc, by which the core comes to its socket, and to itself where it is carried there.
int gp_attachable_kind(pid_t pid, const char *subject);
int gp_attachable_program(pid_t pid, const char *subject);
int gp_attachable_libc(const gp_target_modules_t *modules, const char *subject);
int gp_attachable_proc(pid_t pid, const char *subject);
