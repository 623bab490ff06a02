// SPDX-License-Identifier: MIT
#include "features.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool features_on_guarded_stack;
int features_kept_descriptors[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
pthread_mutex_t features_mutex = PTHREAD_MUTEX_INITIALIZER;

static uint64_t step_none(int id, int round)
{
    (void)id;
    return (uint64_t)round;
}

// full_disk and stalled_capture are what the capture is written to, container and throttled where it runs: see
// `stress`.
static const feature_t all[] = {
    {.name = "none", .step = step_none, .every = 1},
    {.name = "exceptions", .step = feature_exceptions, .every = 1},
    {.name = "dlopen_churn", .step = feature_dlopen, .every = 4},
    {.name = "fork", .step = feature_fork, .every = 40},
    {.name = "fork_exec", .step = feature_fork_exec, .every = 80},
    {.name = "vfork", .step = feature_vfork, .every = 80},
    {.name = "posix_spawn", .step = feature_posix_spawn, .every = 80},
    {.name = "_Fork", .step = feature_raw_fork, .every = 40},
    {.name = "clone", .step = feature_clone, .every = 40},
    {.name = "fork_handlers", .step = feature_fork_handlers, .every = 40},
    {.name = "thread_churn", .step = feature_thread_churn, .every = 4},
    {.name = "cancellation", .step = feature_cancellation, .every = 10},
    {.name = "jemalloc", .step = feature_allocate, .every = 1},
    {.name = "tcmalloc", .step = feature_allocate, .every = 1},
    {.name = "setjmp", .step = feature_setjmp, .every = 1},
    {.name = "host_signals", .step = feature_host_signals, .every = 1},
    {.name = "host_sigaltstack", .step = feature_host_sigaltstack, .every = 2},
    {.name = "stack_exhaustion", .step = feature_stack_exhaustion, .every = 20},
    {.name = "stack_8k", .step = step_none, .every = 1, .stack_bytes = 8 << 10},
    {.name = "stack_16k", .step = feature_setjmp, .every = 1, .stack_bytes = 16 << 10},
    {.name = "rlimit_as", .step = feature_rlimit_as, .every = 2},
    {.name = "rlimit_as_tight", .step = feature_rlimit_as_tight, .every = 2},
    {.name = "rlimit_nofile", .step = feature_rlimit_nofile, .every = 10},
    {.name = "full_disk", .step = step_none, .every = 1},
    {.name = "stalled_pipe", .step = feature_stalled_pipe, .every = 80},
    {.name = "stalled_capture", .step = step_none, .every = 1},
    {.name = "closed_descriptors", .step = feature_closed_descriptors, .every = 20},
    {.name = "replaced_descriptors", .step = feature_replaced_descriptors, .every = 20},
    {.name = "stray_close", .step = feature_stray_close, .every = 4},
    {.name = "signal_queue", .step = feature_signal_queue, .every = 2},
    {.name = "queued_signal", .step = feature_signal_queue, .every = 2}, // samples by a real-time one: see `stress`
    {.name = "rights", .step = feature_rights, .every = 20},
    {.name = "chroot_exec", .step = feature_chroot_exec, .every = 20},
    {.name = "setuid", .step = feature_setuid, .every = 2},
    {.name = "container", .step = feature_fork_exec, .every = 40},
    {.name = "throttled", .step = step_none, .every = 1},
    {.name = "seccomp", .step = feature_seccomp, .every = 20},
    {.name = "seccomp_exec", .step = feature_seccomp, .every = 20, .before = feature_seccomp_before},
};

const feature_t *features_find(const char *name)
{
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

uint64_t features_fail(const char *what)
{
    dprintf(STDOUT_FILENO, "failed: %s\n", what);
    return 1;
}
