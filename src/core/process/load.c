// SPDX-License-Identifier: MIT
// What happens when the core library is loaded.
#include "coro/threads.h"
#include "interface.h"
#include "process/process.h"
#include "session/census_service.h"
#include "session/otel_context.h"
#include "session/session.h"
#include "settings.h"
#include "signal/handler.h"

// Where the core is in the process twice (preloaded, and inside libgreenprof), the first in symbol order is the active
// one: all public names lead to it, and the other stays inert.
static int is_active(void)
{
    const gp_core_interface_t *(*volatile first)(void) = prof_core_interface;
    return first() == gp_core_own_interface();
}

__attribute__((constructor)) static void load(void)
{
    gp_threads_are_anothers = !is_active();
    if (gp_threads_are_anothers)
        return;
    gp_process_init();
    // In all profiles of this process.
    atomic_store_explicit(&gp_handler_depth, (unsigned)gp_setting_number(GP_SETTING_DEPTH), memory_order_relaxed);
    atomic_store_explicit(&gp_handler_native, gp_setting_is(GP_SETTING_NATIVE, "1"), memory_order_relaxed);
    gp_census_service_start();
    gp_session_start();
    gp_otel_context_start();
}

__attribute__((destructor)) static void unload(void)
{
    if (!is_active())
        return;
    gp_process_ending();
    gp_census_service_end();
}
