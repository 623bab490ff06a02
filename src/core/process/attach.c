// SPDX-License-Identifier: MIT
// The entry for `greenprof attach` in a running process, once the core is loaded into it.
//
// Model: the call comes on a thread that the command has created for it, every signal blocked. This thread opens the
// socket, by which the command starts a capture, and starts control's thread for the rest: to take calls already bound
// by modules (got.h), and to ask the interpreter for a look at its imports. Detaching, which is asked for by the same
// way, takes all of that back; where the command cannot reach the socket, one more call does.
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "collect/sampler.h"
#include "collect/sampling_signal.h"
#include "collect/shield.h"
#include "control/control.h"
#include "coro/switch.h"
#include "coro/threads.h"
#include "interface.h"
#include "process/aside.h"
#include "process/got.h"
#include "process/process.h"
#include "record/follow.h"
#include "settings.h"
#include "signal/handler.h"
#include "signal/language.h"

enum { SETTINGS_SIZE = 4096, HANDLERS_END_NS = 100000000 };

static char given[SETTINGS_SIZE];

// Small stacks may be there already, and handlers run on them without it: those have some time to end in.
static void attach_shield_handlers(void)
{
    const struct timespec pause = {.tv_nsec = HANDLERS_END_NS};
    gp_shield_follow(gp_sampling_signal());
    gp_shield_raise();
    if (gp_shield_is_used())
        nanosleep(&pause, NULL);
}

static void process_attach_begin(void)
{
    atomic_store_explicit(&gp_handler_depth, (unsigned)gp_setting_number(GP_SETTING_DEPTH), memory_order_relaxed);
    atomic_store_explicit(&gp_handler_native, gp_setting_is(GP_SETTING_NATIVE, "1"), memory_order_relaxed);
    gp_sampler_follow_forks(gp_follow_forks());
    atomic_store_explicit(&gp_switch_meets_early, true, memory_order_relaxed);
    atomic_store_explicit(&gp_language_is_left, false, memory_order_relaxed);
    attach_shield_handlers();
    gp_got_take();
    gp_language_follow(true);
    void (*attach_soon)(void) = atomic_load_explicit(&gp_language_attach_soon, memory_order_acquire);
    if (attach_soon != NULL)
        attach_soon();
}

// Threads that belong to nothing else have nothing to do any more. A program with one thread is to have one again.
static void attach_end_threads(void)
{
    if (gp_thread_helper_staying() > 0)
        return;
    gp_thread_end_own(gp_aside_wake);
    gp_thread_let_own_begin();
}

static void attach_end(void)
{
    gp_got_give_back();
    gp_language_follow(false);
    atomic_store_explicit(&gp_language_is_left, true, memory_order_relaxed);
    if (gp_sampler_end_unused())
        attach_end_threads();
}

static const gp_control_attachment_t attachment = {
    .begin = process_attach_begin, .look = gp_got_take, .end = attach_end};

int prof_core_attach(const char *settings)
{
    const gp_core_interface_t *(*volatile first)(void) = prof_core_interface;
    if (first() != gp_core_own_interface())
        return -EEXIST; // another core is the active one
    if (settings == NULL)
        return gp_control_leave();
    if (gp_control_is_running())
        return 0;
    if (strlen(settings) >= sizeof(given))
        return -E2BIG;
    snprintf(given, sizeof(given), "%s", settings);
    gp_settings_give(given);
    return gp_control_attach(&attachment);
}
