// SPDX-License-Identifier: MIT
// run: the closing line of a program that cannot say it.
//
// Model: `run` becomes the program, and a program that ends in order says the line (src/core/record/closing_line.h). A
// killed program, or one that leaves by a system call of its own as Go's do, cannot. So `run` leaves a process behind
// that waits for the program's end: no child of the program's, in a session of its own, with no descriptor but standard
// error. The process ends with the program, in silence where the program ended in order; and before, where standard
// error is a pipe or a socket without a reader, or let go by the program: no reader is kept waiting.
#pragma once

#include "options.h"

// Leave that process behind, right before the program is started. Where the program is the first process of its
// namespace, or adopts processes, there is none: it would be the program's child.
//   path:      as gp_run_output_path() made it.
//   name:      of the capture, as the user has it, without a process id.
//   arguments: of this command; wiped from the list of processes, where it shall not pass for the program.
void gp_run_watch(const char *path, const char *name, const gp_arguments_t *arguments);
