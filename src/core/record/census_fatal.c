// SPDX-License-Identifier: MIT
#include "record/census_fatal.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/futex.h"
#include "coro/process_id.h"
#include "record/census_writer.h"
#include "settings.h"
#include "signal/ticks.h"

#define PATIENCE_NS 2000000000ull

extern int __sigaction(int number, const struct sigaction *action, struct sigaction *old); // not host_signal.c's

static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};

enum { NOT_ASKED, NOTING, ASKED, DONE };

static char pattern[PATH_MAX]; // "" = not wanted
static gp_census_stand_t fatal = {.is_fatal = true};
static uintptr_t registers[33];
static _Atomic uint32_t state; // a futex

static void census_fatal_note(const void *context)
{
    fatal.tid = (int)syscall(SYS_gettid);
    gp_unwind_regs_from_ucontext(&fatal.regs, registers, context);
    // Release: partner of the acquire in gp_census_fatal_serve().
    atomic_store_explicit(&state, ASKED, memory_order_release);
    gp_collector_kick();
}

static void census_fatal_wait_for_census(void)
{
    uint64_t start = gp_clock_ns(CLOCK_MONOTONIC), waited = 0;
    while (waited < PATIENCE_NS) {
        uint32_t now = atomic_load_explicit(&state, memory_order_acquire);
        if (now == DONE)
            return;
        gp_futex_wait(&state, now, PATIENCE_NS - waited);
        waited = gp_clock_ns(CLOCK_MONOTONIC) - start;
    }
}

static void census_fatal_on_fatal(int number, siginfo_t *info, void *context)
{
    uint32_t expected = NOT_ASKED;
    struct sigaction plain;
    if (gp_process_is_mine()) {
        if (atomic_compare_exchange_strong_explicit(&state, &expected, NOTING, memory_order_relaxed,
                                                    memory_order_relaxed))
            census_fatal_note(context);
        census_fatal_wait_for_census(); // also where another thread crashed first
    }
    memset(&plain, 0, sizeof(plain));
    plain.sa_handler = SIG_DFL;
    __sigaction(number, &plain, NULL);
    if (info->si_code <= 0 || number == SIGTRAP || number == SIGSYS) // else it happens again by itself
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

bool gp_census_fatal_prepare(void)
{
    const char *wanted = gp_setting(GP_SETTING_CENSUS);
    if (wanted == NULL || strlen(wanted) >= sizeof(pattern))
        return false;
    strcpy(pattern, wanted);
    struct sigaction action, old;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = census_fatal_on_fatal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (__sigaction(numbers[i], NULL, &old) == 0 && !(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL)
            __sigaction(numbers[i], &action, NULL);
    return true;
}

void gp_census_fatal_serve(void)
{
    char path[PATH_MAX + 32];
    if (atomic_load_explicit(&state, memory_order_acquire) != ASKED)
        return;
    if (gp_recording_path(pattern, (int)gp_setting_number(GP_SETTING_PID), path, sizeof(path)))
        gp_census_write(path, &fatal);
    atomic_store_explicit(&state, DONE, memory_order_release);
    gp_futex_wake_all(&state);
}
