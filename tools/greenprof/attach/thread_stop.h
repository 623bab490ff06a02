// SPDX-License-Identifier: MIT
// A thread of another process at a stop of ptrace's, which PTRACE_INTERRUPT asks for.
//
// Source: ptrace(2), "PTRACE_SEIZE" and "PTRACE_EVENT stops".
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

enum { GP_THREAD_NAME_SIZE = 16 }; // with the final 0, as the kernel keeps it

// Signals to this process wait as long as a thread of another is stopped. May be nested.
void gp_thread_stop_hold_signals(void);
void gp_thread_stop_let_signals_go(void);

// State and name, of proc_pid_stat(5). Returns '?' where it is gone.
//   name: char[GP_THREAD_NAME_SIZE], or NULL.
char gp_thread_stop_state(pid_t pid, pid_t tid, char *name);

// Call `visit` with each thread's id until it returns something else than -EAGAIN. Returns that, or -ESRCH where there
// is no such process.
int gp_thread_stop_each(pid_t pid, int (*visit)(pid_t tid, void *argument), void *argument);

// Wait until a thread that was seized stops, for whichever reason. Returns 0 and the status, -ETIMEDOUT, or -ESRCH
// where it has ended.
int gp_thread_stop_wait(pid_t tid, uint64_t limit_ns, int *status);

// Is this the stop that was asked for?
bool gp_thread_stop_is_asked(int status);

// From now on signals by which greenprof samples are dropped where a thread stops for one: it is leaving, and what
// comes after it has given the handler back would end the process.
void gp_thread_stop_drop_samples(void);

// Wait for the stop that was asked for; with 0 only look. Signals that come before it are delivered as they are without
// us. Returns as gp_thread_stop_wait().
int gp_thread_stop_wait_asked(pid_t tid, uint64_t limit_ns);

// The system call that a stopped thread is in; negative = none.
long gp_thread_stop_call(pid_t tid);

// The kernel begins most interrupted calls again by itself; some end with EINTR even where no handler ran, and not
// every program expects that. Change the registers so that such a one is begun again. Returns whether they were
// changed.
bool gp_thread_stop_restart_call(struct user_regs_struct *registers);
