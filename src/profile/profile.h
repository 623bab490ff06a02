// Between the profiles and their snapshots.
#ifndef GP_PROFILE_PROFILE_H
#define GP_PROFILE_PROFILE_H

#include <stdint.h>

#include "greenprof/prof.h"

// Exact CPU time of the present run of a running profile, ns. Caller holds the drain lock.
uint64_t gp_profile_running_ns(prof_t *profile);

// A forked child's clocks start at zero: what running profiles had so far is noted before and kept. Drain lock held.
void gp_profiles_before_fork(void);
void gp_profiles_in_child(void);

#endif
