// SPDX-License-Identifier: MIT
// Counters of sampling: X(number, ID, key, lost, sentence). The numbers are in capture files, the keys in outputs:
// neither ever changes.
//   lost       what the count is a loss of, as the last line of a run, status and top say it: SIGNAL = dropped, and its
//              sample with it; NO_SAMPLE = dropped, and there was none to take
//              ASIDE = none, and no line of reports: only the table of all counters in the page has it
//   sentence   stands behind the number
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Signals that arrived (the handler was entered) = samples put into a ring + all drops. SWITCHING, TRUNCATED,
// INCOMPLETE, OUTSIDE, POLL_MISFIT and HELD_BACK are samples that are kept.
// clang-format off
#define GP_COUNTERS(X)                                                                                                 \
    X( 0, SIGNALS, signals, ASIDE, "signals of the sampler that arrived: samples taken and dropped")                   \
    X( 1, SAMPLES, samples, ASIDE, "samples taken on the CPU")                                                         \
    X( 2, DROP_RING_FULL, drop_ring_full, SIGNAL, "dropped, the collector could not keep up")                               \
    X( 3, DROP_REENTERED, drop_reentered, SIGNAL, "dropped, signal inside the handler")                                     \
    X( 4, DROP_FOREIGN, drop_foreign, NO_SAMPLE, "dropped, signal of another timer")                                           \
    X( 5, DROP_NO_THREAD, drop_no_thread, SIGNAL, "dropped, unknown thread")                                                \
    X( 6, DROP_IDLE, drop_idle, NO_SAMPLE, "dropped, no CPU time had passed or the thread slept")                              \
    X( 7, SWITCHING, switching, NOTHING, "inside a switch routine: [switching]")                                             \
    X( 8, TRUNCATED, truncated, NOTHING, "too deep: [truncated]")                                                            \
    X( 9, INCOMPLETE, incomplete, NOTHING, "walk gave up early: [incomplete]")                                               \
    X(10, OUTSIDE, outside, NOTHING, "on an unknown stack")                                                                  \
    X(11, TIMER_FAILED, timer_failed, NOTHING, "threads without a timer")                                                    \
    X(12, LOST_MARKS, lost_marks, NOTHING, "trace changes lost: times per trace are approximate")                            \
    X(13, UNSAMPLED_NS, unsampled_ns, ASIDE,                                                                           \
      "nanoseconds of CPU time on threads that no sampling signal can reach: in no profile")                           \
    X(14, UNWRITTEN, unwritten, SAMPLES, "not in the capture: it could not be written fast enough")                          \
    X(15, WAIT_SAMPLES, wait_samples, ASIDE, "samples taken of what waited")                                           \
    X(16, LOST_WAITS, lost_waits, OTHERS, "samples of waiting lost, the collector could not keep up")                       \
    X(17, LOST_HOGS, lost_hogs, OTHERS, "long slices, or delays by them, lost")                                             \
    X(18, LOST_CALLS, lost_calls, NOTHING, "calls lost, memory was short: numbers of calls are too low")                     \
    X(19, MERGED_ACTIVITIES, merged_spans, NOTHING, "waits missing in the timeline") /* the coroutine looks active */        \
    X(20, SIGNAL_MOVED, signal_moved, NOTHING, "changes of the sampling signal: the program handles or ignores it")         \
    X(21, LOST_SPAWNS, lost_spawns, NOTHING,                                                                                 \
      "coroutines without a recorded place of creation: --stitch cannot show it")                                      \
    X(22, UNPATCHED, unpatched, NOTHING, "functions that could not be patched: their switches are not seen")                 \
    X(23, POLL_MISFIT, poll_misfit, NOTHING, "amid a switch, of coroutines that are polled")                                  \
    X(24, TREE_FULL, tree_full, NOTHING, "of paths that the profile has no room for: [tree full]")                           \
    X(25, OTHER_FUNCTIONS, other_functions, NOTHING, "functions of a language too many to be named: [other functions]")      \
    X(26, LOST_MODULES, lost_modules, NOTHING, "modules too many to be kept: their functions have no names")                \
    X(27, SLOWED, slowed, NOTHING, "intervals made longer, samples took more than an eighth of them")                      \
    X(28, TIMER_REPLACED, timer_replaced, NOTHING,                                                                           \
      "threads sampled at the kernel's tick at most (engine cpu): they could not have the engine chosen")         \
    X(29, UNWRITTEN_HOGS, unwritten_hogs, OTHERS, "long slices, or delays by them, not in the capture")                     \
    X(30, UNWRITTEN_ACTIVITIES, unwritten_spans, OTHERS, "spans of the timeline not in the capture")                        \
    X(31, UNWRITTEN_COROS, unwritten_coros, NOTHING, "times that there was no room for a coroutine's name in the capture")   \
    X(32, UNWRITTEN_CENSUS, unwritten_census, NOTHING, "coroutines missing in a census of the capture")                      \
    X(33, LOST_SPANS, lost_spans, SPANS, "spans lost: the collector could not keep up, or too many were open")             \
    X(34, CUT_FIELDS, cut_fields, NOTHING, "fields of spans cut or left out")                                                \
    X(35, UNBALANCED_SPANS, unbalanced_spans, NOTHING, "unbalanced ends of spans: repaired, or of one that was over")        \
    X(36, UNWRITTEN_SPANS, unwritten_spans_of_requests, SPANS, "spans of requests not in the capture")                     \
    X(37, UNPROFILED_CHILDREN, unprofiled_children, NOTHING, "children by fork that could not be profiled")                        \
    X(38, CONSUMERS_LOST, consumers_lost, SPANS,                                                                           \
      "spans lost by consumers: the queue was full, they were refused, or left over at the end")                       \
    X(39, CONSUMERS_SPOOLED, consumers_spooled, NOTHING, "spans delayed: they wait in the spool of a consumer")              \
    X(40, CONSUMERS_FAILED, consumers_failed, NOTHING, "times that a consumer did not take any spans")                       \
    X(41, PROFILES_LOST, profiles_lost, NOTHING,                                                                             \
      "requests without a profile of their own: too many at a time, or it could not be written")                     \
    X(42, UNWRITTEN_LEDGERS, unwritten_ledgers, COROUTINES,                                                                     \
      "coroutines' times, up to their end or a change of trace, not in the capture")                                   \
    X(43, UNWRITTEN_STACKS, unwritten_stacks, OTHERS, "stacks and trace ids that records of the capture are without")       \
    X(44, HANDLER_NS, handler_ns, ASIDE, "nanoseconds of CPU time inside the sampling handler")                        \
    X(45, DELIVERY_NS, delivery_ns, ASIDE, "nanoseconds of CPU time that its signals took besides, by calibration")    \
    X(46, HOOK_NS, hook_ns, ASIDE, "nanoseconds of CPU time in the hooks of switches, spans and the like: an estimate")\
    X(47, RATE_LOWERED, rate_lowered, NOTHING, "times that samples became fewer, to stay within the budget")                 \
    X(48, BUDGET_MISSED, budget_missed, NOTHING,                                                                             \
      "times that the budget was not kept: the lowest rate, the hooks of switches and the threads take more")    \
    X(49, SWITCHES, switches, ASIDE, "switches of coroutines, as their hooks saw them")                                \
    X(50, INTERNED_ANEW, interned_anew, NOTHING,                                                                             \
      "times that a full table of stacks or traces was begun anew: those seen again are in the capture twice")                      \
    X(51, SPAWNS_LEFT_OUT, spawns_left_out, NOTHING,                                                                         \
      "coroutines whose place of creation was left out, to stay within the budget: --stitch cannot show it")           \
    X(52, RESTS, rests, NOTHING, "times that recording rested, to stay within the budget: what went on then is not known")    \
    X(53, REST_NS, rest_ns, ASIDE, "nanoseconds for which recording rested, together")                                 \
    X(54, REST_CPU_NS, rest_cpu_ns, ASIDE, "nanoseconds of CPU time of the process meanwhile, in no profile")          \
    X(55, REST_HOOK_NS, rest_hook_ns, ASIDE, "nanoseconds in hooks meanwhile, of hook_ns")                             \
    X(56, PENDING_NS, pending_ns, ASIDE,                                                                               \
      "nanoseconds of CPU time since each thread's last sample: in the totals, in no sample")                          \
    X(57, DROP_CRAMPED, drop_cramped, SIGNAL, "dropped, the program's alternate signal stack had no room")              \
    X(58, HELD_BACK, held_back, NOTHING, "until then the program blocked the sampling signal: [signal blocked]")               \
    X(59, UNNAMED_FRAMES, unnamed_frames, NOTHING, "frames of Ruby, PHP or Lua that could not be read: [incomplete]")
// clang-format on

#define GP_COUNTER_ID(number, id, key, lost, sentence)   GP_COUNTER_##id = (number),
#define GP_COUNTER_ONE(number, id, key, lost, sentence)  +1
#define GP_COUNTER_LOST(number, id, key, lost, sentence) GP_LOST_##lost,

enum gp_counter { GP_COUNTERS(GP_COUNTER_ID) GP_COUNTER_COUNT = GP_COUNTERS(GP_COUNTER_ONE) };

enum gp_lost {
    GP_LOST_NOTHING,
    GP_LOST_ASIDE,
    GP_LOST_NO_SAMPLE,
    GP_LOST_SIGNAL,
    GP_LOST_SAMPLES,
    GP_LOST_SPANS,
    GP_LOST_COROUTINES,
    GP_LOST_OTHERS,
};

static inline enum gp_lost gp_counter_lost(unsigned counter)
{
    static const unsigned char lost[] = {GP_COUNTERS(GP_COUNTER_LOST)};
    return counter < GP_COUNTER_COUNT ? (enum gp_lost)lost[counter] : GP_LOST_NOTHING;
}

// The sum of the first `count` counters that are this loss.
static inline uint64_t gp_counters_lost(const uint64_t *counters, uint64_t count, enum gp_lost lost)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < count && i < GP_COUNTER_COUNT; i++)
        sum += gp_counter_lost(i) == lost ? counters[i] : 0;
    return sum;
}

// The sum of all drops.
static inline uint64_t gp_counters_dropped(const uint64_t counters[GP_COUNTER_COUNT])
{
    return gp_counters_lost(counters, GP_COUNTER_COUNT, GP_LOST_NO_SAMPLE) +
           gp_counters_lost(counters, GP_COUNTER_COUNT, GP_LOST_SIGNAL);
}

#undef GP_COUNTER_ID
#undef GP_COUNTER_ONE
#undef GP_COUNTER_LOST
