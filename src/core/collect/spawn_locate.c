// SPDX-License-Identifier: MIT
#include "collect/spawn_locate.h"

#include <string.h>

#include "collect/ring_drain.h"
#include "collect/waiting_stack.h"
#include "coro/spawn.h"

bool gp_spawn_is_locating;

void gp_spawn_locate(void)
{
    static gp_sample_buffer_t walked; // guarded by the drain lock, as all of it
    static gp_loc_t locs[GP_UNWIND_DEPTH_DEFAULT + GP_RING_STACK_MORE];
    static uint32_t located;
    gp_spawn_is_locating = true;
    for (uint32_t upto = gp_spawn_site_count(); located < upto;) {
        gp_spawn_site_t *site = gp_spawn_site_at(++located);
        gp_stack_t stack;
        walked.sample = (gp_sample_t){.depth = site->depth, .flags = site->flags};
        memcpy(walked.sample.frames, site->frames, site->depth * sizeof(site->frames[0]));
        gp_ring_drain_locate(&walked.sample, locs, &stack);
        memcpy(site->locs, stack.locs, stack.depth * sizeof(locs[0]));
        site->loc_flags = stack.flags;
        site->loc_depth = (uint32_t)stack.depth;
    }
    gp_spawn_is_locating = false;
}
