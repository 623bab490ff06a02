// SPDX-License-Identifier: MIT
#include "collect/scan_pace.h"

static uint64_t scan_pace_mean_ns(const gp_scan_pace_t *pace)
{
    uint64_t mean = pace->quiet_ns / GP_LOOK_QUIET_PART;
    if (mean < GP_LOOK_NS || pace->quick > 0)
        return GP_LOOK_NS;
    return mean < GP_LOOK_SELDOM_NS ? mean : GP_LOOK_SELDOM_NS;
}

uint64_t gp_scan_pace_next_ns(gp_scan_pace_t *pace, uint64_t least_mean_ns)
{
    uint64_t mean = scan_pace_mean_ns(pace);
    if (mean < least_mean_ns)
        mean = least_mean_ns;
    if (pace->random == 0)
        pace->random = 2463534242u;
    pace->random ^= pace->random << 13;
    pace->random ^= pace->random >> 17;
    pace->random ^= pace->random << 5;
    return mean / 2 + pace->random % mean;
}

void gp_scan_pace_note(gp_scan_pace_t *pace, uint64_t after_ns, bool found)
{
    pace->quiet_ns = found ? 0 : pace->quiet_ns + after_ns;
    pace->quick -= pace->quick > 0;
}

void gp_scan_pace_reset(gp_scan_pace_t *pace)
{
    pace->quiet_ns = 0;
}

void gp_scan_pace_hasten(gp_scan_pace_t *pace)
{
    pace->quick = GP_LOOK_QUICK_LOOKS;
}
