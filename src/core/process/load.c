// SPDX-License-Identifier: MIT
// What happens when the core library is loaded.
#include <stdlib.h>

#include "interface.h"
#include "process/process.h"
#include "session/census_service.h"
#include "session/session.h"
#include "signal/handler.h"

// Where the core is in the process twice (preloaded, and inside libgreenprof), the first in symbol order is the active
// one: all public names lead to it, and the other stays inert.
static int is_active(void)
{
    const gp_core_interface_t *(*volatile first)(void) = prof_core_interface;
    return first() == gp_core_own_interface();
}

// GREENPROF_DEPTH: frames kept of a stack, in all profiles of this process.
static void set_depth(void)
{
    const char *text = getenv("GREENPROF_DEPTH");
    long depth = text != NULL ? strtol(text, NULL, 10) : 0;
    if (depth >= 2 && depth <= GP_UNWIND_DEPTH_DEFAULT)
        atomic_store_explicit(&gp_handler_depth, (unsigned)depth, memory_order_relaxed);
}

// GREENPROF_NATIVE: native frames among those of Python.
static void set_native(void)
{
    const char *text = getenv("GREENPROF_NATIVE");
    atomic_store_explicit(&gp_handler_native, text != NULL && text[0] == '1', memory_order_relaxed);
}

__attribute__((constructor)) static void load(void)
{
    if (!is_active())
        return;
    gp_process_init();
    set_depth();
    set_native();
    gp_census_service_start();
    gp_session_start();
}

__attribute__((destructor)) static void unload(void)
{
    if (!is_active())
        return;
    gp_process_ending();
    gp_census_service_end();
}
