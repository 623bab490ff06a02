// SPDX-License-Identifier: MIT
#include "interpreter/spawn_site.h"

#include "coro/spawn.h"
#include "interpreter/code_objects.h"
#include "interpreter/frame_walk.h"
#include "signal/thread.h"

uint32_t gp_cpython_spawn_site(void)
{
    gp_thread_t *thread = gp_thread_self;
    unsigned flags = 0;
    if (thread == NULL || !gp_spawn_is_wanted() || !gp_spawn_is_due(thread))
        return 0;
    uint32_t tag = atomic_load_explicit(&gp_cpython_code_generation, memory_order_acquire) + 1; // 0: native frames
    size_t depth = gp_cpython_walk_own(thread->parked_frames, GP_SPAWN_DEPTH, &flags);
    return gp_spawn_site_of(thread, depth, flags, tag);
}
