// SPDX-License-Identifier: MIT
// May a process under a filter of system calls (seccomp) be attached to? A call unknown to the filter mostly ends the
// process, at once: nothing is tried in it.
//
// Model: the kernel shows root the filters of a stopped thread; they are run here, for every call that comes of
// attaching (filter_calls.h). Where it does not, a container's filter is known if this process and the container's
// first one are under it as well: then the calls are made in a child of this process. Source: seccomp(2), ptrace(2)
// PTRACE_SECCOMP_GET_FILTER, proc_pid_status(5) Seccomp, Seccomp_filters.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// Look at a process before any of its threads is stopped: strict mode, and threads under different filters, are
// refused.
//   subject: for messages.
// Returns 0 or EXIT_FAILED, with a message.
int gp_seccomp_look(pid_t pid, const char *subject);

// Judge the filters of a thread stopped by ptrace, which goes on as it was.
//   code_at:    of the instruction that makes system calls.
//   is_carried: the core has to be carried there.
// Returns 0 or EXIT_FAILED, with a message.
int gp_seccomp_judge(pid_t pid, pid_t tid, uint64_t code_at, bool is_carried, const char *subject);
