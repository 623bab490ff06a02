// SPDX-License-Identifier: MIT
#include "collect/look_pace.h"

static uint64_t look_pace_mean_ns(const gp_look_pace_t *pace)
{
    uint64_t mean = pace->quiet_ns / GP_LOOK_QUIET_PART;
    if (mean < GP_LOOK_NS || pace->quick > 0)
        return GP_LOOK_NS;
    return mean < GP_LOOK_SELDOM_NS ? mean : GP_LOOK_SELDOM_NS;
}

uint64_t gp_look_pace_next_ns(gp_look_pace_t *pace, uint64_t least_mean_ns)
{
    uint64_t mean = look_pace_mean_ns(pace);
    if (mean < least_mean_ns)
        mean = least_mean_ns;
    if (pace->random == 0)
        pace->random = 2463534242u;
    pace->random ^= pace->random << 13;
    pace->random ^= pace->random >> 17;
    pace->random ^= pace->random << 5;
    return mean / 2 + pace->random % mean;
}

void gp_look_pace_note(gp_look_pace_t *pace, uint64_t after_ns, bool found)
{
    pace->quiet_ns = found ? 0 : pace->quiet_ns + after_ns;
    pace->quick -= pace->quick > 0;
}

void gp_look_pace_reset(gp_look_pace_t *pace)
{
    pace->quiet_ns = 0;
}

void gp_look_pace_hasten(gp_look_pace_t *pace)
{
    pace->quick = GP_LOOK_QUICK_LOOKS;
}
