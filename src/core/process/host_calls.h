// SPDX-License-Identifier: MIT
// The program's calls that the core stands in for, by names of its own: where the core was loaded too late to be found
// first by the dynamic linker, a runtime's hook leads the runtime's calls here. Each does what the function of that
// name does.
#pragma once

#include <signal.h>
#include <time.h>

// sigaction() and sigaltstack() as the program calls them by number, with the kernel's structs and memory that need not
// be there.
long gp_host_kernel_action(const long arguments[5]);
long gp_host_kernel_stack(const long arguments[5]);

int gp_host_sigaction(int number, const struct sigaction *action, struct sigaction *old);
int gp_host_sigwait(const sigset_t *set, int *number);
int gp_host_sigwaitinfo(const sigset_t *set, siginfo_t *info);
int gp_host_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout);
