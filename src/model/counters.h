// SPDX-License-Identifier: MIT
// What was counted while sampling. The numbers are in capture files: they never change.
#ifndef GP_MODEL_COUNTERS_H
#define GP_MODEL_COUNTERS_H

// Signals that arrived = GP_COUNTER_SAMPLES + all drops (GP_COUNTER_DROP_FIRST..GP_COUNTER_DROP_LAST).
enum gp_counter {
    GP_COUNTER_SIGNALS = 0,        // signals the handler was entered for
    GP_COUNTER_SAMPLES = 1,        // records put into a ring
    GP_COUNTER_DROP_RING_FULL = 2, // collector could not keep up
    GP_COUNTER_DROP_REENTERED = 3, // a signal inside the handler
    GP_COUNTER_DROP_FOREIGN = 4,   // a signal that none of our timers sent
    GP_COUNTER_DROP_NO_THREAD = 5, // thread unknown to the registry
    GP_COUNTER_DROP_IDLE = 6,      // no CPU time had passed, the thread slept (monotonic engine), or resting
    GP_COUNTER_DROP_FIRST = GP_COUNTER_DROP_RING_FULL,
    GP_COUNTER_DROP_LAST = GP_COUNTER_DROP_IDLE,
    GP_COUNTER_SWITCHING = 7,          // samples in a switch routine that could not be walked (kept)
    GP_COUNTER_TRUNCATED = 8,          // samples deeper than the limit (kept, root end)
    GP_COUNTER_INCOMPLETE = 9,         // samples whose walk gave up early (kept)
    GP_COUNTER_OUTSIDE = 10,           // samples whose stack pointer was on no known stack (kept)
    GP_COUNTER_TIMER_FAILED = 11,      // threads that could not be given a timer
    GP_COUNTER_LOST_MARKS = 12,        // trace changes that did not fit into a ring: ledger per trace is approximate
    GP_COUNTER_UNSAMPLED_NS = 13,      // CPU time, ns, of threads that no signal reached (they block it): in no profile
    GP_COUNTER_UNWRITTEN = 14,         // samples that are not in the capture: it could not be written fast enough
    GP_COUNTER_WAIT_SAMPLES = 15,      // waits put into a ring
    GP_COUNTER_LOST_WAITS = 16,        // that found no room
    GP_COUNTER_LOST_HOGS = 17,         // long slices, and delays by them, that found no room
    GP_COUNTER_LOST_CALLS = 18,        // events of exact mode for which there was no memory: counts are too low
    GP_COUNTER_MERGED_ACTIVITIES = 19, // waits that found no room: in the timeline the coroutine looks active
    GP_COUNTER_SIGNAL_MOVED =
        20, // times that another sampling signal was taken, because the host handles the present one
    GP_COUNTER_LOST_SPAWNS = 21, // coroutines whose place of creation found no room: --stitch cannot show it
    GP_COUNTER_UNPATCHED = 22,   // functions that were to be patched and could not be: see runtime-hooks/patch
    GP_COUNTER_POLL_MISFIT = 23, // samples at which what a polled runtime says did not fit the stack pointer (kept)
    GP_COUNTER_COUNT = 24,
};

#endif
