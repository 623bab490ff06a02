// SPDX-License-Identifier: MIT
// A host's doings to itself while it is sampled. All of a result follows from the arguments: no time, process id,
// descriptor number or address is in it.
//
// Order of calls: features_find(); `before`, in the process that is to be; then `step` from coroutines. Threads: any;
// a step that touches what the process has once only takes features_lock(), and never yields in it.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FEATURE_STACK_BYTES ((size_t)256 << 10)

typedef struct feature {
    const char *name;
    uint64_t (*step)(int id, int round);
    int every;                      // rounds from one step to the next
    void (*before)(char **command); // NULL = nothing to do; may replace the process by `command`
    size_t stack_bytes;             // 0 = FEATURE_STACK_BYTES
} feature_t;

// Returns NULL where there is none of that name.
const feature_t *features_find(const char *name);

// Is there an unmapped page below the stack that steps run on? Set by the driver.
extern bool features_on_guarded_stack;

// Is this descriptor the runtime's own? Set by the driver: -1 ends the list.
extern int features_kept_descriptors[8];

// A lock for all: whatever a process has once only.
extern pthread_mutex_t features_mutex;

// Say so in the program's output; what `step` returns then. Signals: safe
uint64_t features_fail(const char *what);

// Work that takes about `thousands` microseconds; the result follows from the arguments.
uint64_t features_work(uint64_t seed, int thousands);

uint64_t feature_exceptions(int id, int round);
uint64_t feature_dlopen(int id, int round);
uint64_t feature_setjmp(int id, int round);
uint64_t feature_allocate(int id, int round);

uint64_t feature_host_signals(int id, int round);
uint64_t feature_host_sigaltstack(int id, int round);
uint64_t feature_stack_exhaustion(int id, int round);

uint64_t feature_fork(int id, int round);
uint64_t feature_fork_exec(int id, int round);
uint64_t feature_vfork(int id, int round);
uint64_t feature_posix_spawn(int id, int round);
uint64_t feature_raw_fork(int id, int round);
uint64_t feature_clone(int id, int round);
uint64_t feature_fork_handlers(int id, int round);
uint64_t feature_chroot_exec(int id, int round);
uint64_t feature_setuid(int id, int round);

uint64_t feature_thread_churn(int id, int round);
uint64_t feature_cancellation(int id, int round);
uint64_t feature_stalled_pipe(int id, int round);
uint64_t feature_seccomp(int id, int round);
void feature_seccomp_before(char **command);

uint64_t feature_rlimit_as(int id, int round);
uint64_t feature_rlimit_as_tight(int id, int round);
uint64_t feature_rlimit_nofile(int id, int round);
uint64_t feature_closed_descriptors(int id, int round);
uint64_t feature_replaced_descriptors(int id, int round);
uint64_t feature_stray_close(int id, int round);
uint64_t feature_signal_queue(int id, int round);

uint64_t feature_rights(int id, int round);
