// SPDX-License-Identifier: MIT
// The threads of this process, as the kernel lists them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Call `visit` for each thread but greenprof's own. Returns 0, or a negative errno value where they cannot be listed.
// Signals: not safe. Cost: a system call per few hundred threads, and memory for them.
int gp_task_each(void (*visit)(pid_t tid, void *argument), void *argument);

// The beginning of a file of a thread, "stat" for example, and a NUL; nothing where the thread is gone. `size` is that
// of the text, 64 at least. Returns whether there is anything. Signals: safe. Cost: three system calls.
bool gp_task_read(pid_t tid, const char *name, char *text, size_t size);

// State of a thread: 'R' it runs or may run, 'S' it sleeps, 'Z' it has ended, ...; 0 = it is gone, or not known.
// Signals: safe. Cost: three system calls.
// Source: proc_pid_stat(5): the state follows the name, which may have parentheses itself.
char gp_task_state(pid_t tid);

// Is it there? Signals: safe. Cost: one system call.
bool gp_task_is_there(pid_t tid);

// Does a thread take a signal, not block it? false where the thread is gone, or it is not known.
// Signals: safe. Cost: three system calls.
// Source: proc_pid_status(5): SigBlk is a bit mask in hexadecimal, signal 1 is bit 0.
bool gp_task_takes(pid_t tid, int signal_number);

// Does a thread block a signal sent to it? false where this is not known. As above.
// Source: proc_pid_status(5): SigPnd has the signals that wait for the thread itself.
bool gp_task_holds_back(pid_t tid, int signal_number);

// Is it under other filters of system calls than the calling thread? false where that is not known. As above.
// Source: proc_pid_status(5), Seccomp, Seccomp_filters.
bool gp_task_differs(pid_t tid);

// How long it could run and had no processor, in its life, ns. Returns whether that is known. As above.
// Source: Linux, Documentation/scheduler/sched-stats.rst.
bool gp_task_run_delay(pid_t tid, uint64_t *ns);

// How often the thread gave its processor away, as on falling asleep. Returns whether that is known. As above. Source:
// proc_pid_status(5).
bool gp_task_voluntary_switches(pid_t tid, uint64_t *switches);
