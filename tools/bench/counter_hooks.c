// SPDX-License-Identifier: MIT
// Preloaded: hooks of switches and of instrumented functions that read the time-stamp counter and do nothing else.
// Their cost is the processor's, in this very run; the rest of the real ones' cost is greenprof's own work.
#include <greenprof/coro.h>
#include <greenprof/exact.h>

#include "signal/ticks.h"

PROF_API int prof_coro_active = 1; // the hook is called

PROF_API void prof_coro_switch_hook(prof_coro_t *to)
{
    (void)to;
    (void)gp_ticks_counter();
}

PROF_API void __cyg_profile_func_enter(void *function, void *call_site)
{
    (void)function, (void)call_site;
    (void)gp_ticks_counter();
}

PROF_API void __cyg_profile_func_exit(void *function, void *call_site)
{
    (void)function, (void)call_site;
    (void)gp_ticks_counter();
}
