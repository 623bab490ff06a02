// SPDX-License-Identifier: MIT
// The core library's start in a process.
#include "collect/sampler.h"
#include "control/control.h"
#include "coro/process_id.h"
#include "coro/threads.h"
#include "interface.h"
#include "process/process.h"
#include "process/sandbox.h"
#include "record/budget.h"
#include "record/census_service.h"
#include "record/closing_line.h"
#include "record/follow.h"
#include "record/otel_context.h"
#include "record/session.h"
#include "settings.h"
#include "signal/handler.h"

// Where the core is in the process twice (preloaded, and inside libgreenprof), the first in symbol order is the active
// one: all public names lead to it, and the other stays inert.
static int load_is_active(void)
{
    const gp_core_interface_t *(*volatile first)(void) = prof_core_interface;
    return first() == gp_core_own_interface();
}

static void load_begin_session(void)
{
    bool records = gp_setting(GP_SETTING_OUTPUT) != NULL && !gp_control_is_stopped();
    if ((!records && !gp_control_is_wanted()) || !gp_follow_image())
        return;
    gp_sampler_follow_forks(gp_follow_forks());
    gp_budget_begin();
    if (records)
        gp_session_start();
    if (gp_control_is_wanted())
        gp_control_start();
}

// Then nothing of greenprof's is done in this process.
static bool load_is_too_strict(void)
{
    bool can_say;
    if (!gp_sandbox_kills_already(&can_say))
        return false;
    gp_process_leave();
    if (can_say)
        gp_closing_line_say_sandboxed();
    return true;
}

__attribute__((constructor)) static void load(void)
{
    gp_threads_are_anothers = !load_is_active();
    if (gp_threads_are_anothers)
        return;
    if ((gp_setting(GP_SETTING_OUTPUT) != NULL || gp_control_is_wanted()) && load_is_too_strict())
        return;
    gp_process_init();
    // In all profiles of this process.
    atomic_store_explicit(&gp_handler_depth, (unsigned)gp_setting_number(GP_SETTING_DEPTH), memory_order_relaxed);
    atomic_store_explicit(&gp_handler_native, gp_setting_is(GP_SETTING_NATIVE, "1"), memory_order_relaxed);
    gp_census_service_start();
    load_begin_session();
    gp_otel_context_start();
}

__attribute__((destructor)) static void load_unload(void)
{
    if (!load_is_active() || gp_process_is_left())
        return;
    gp_process_ending();
    gp_census_service_end();
}
