// SPDX-License-Identifier: MIT
// Code that holds a lock, or the interpreter's, while others wait for it.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/explain_parts.h"
#include "report/lock_waits.h"

enum {
    LEAST_NS = 50000000, // of waits
    SHARE = 100,         // or this part of the time
    SHOWN = 3,
    HELD_PERCENT = 30,      // of the waits, by one function
    GIL_PERCENT = 20,       // the same of the interpreter's, as samples tell
    MEDIAN_LEAST_NS = 1000, // shorter ones are the machine's
    GIL_SHARE = 10,         // part of the time that is waited for the interpreter's lock
};

static void explain_locks_say(gp_explaining_t *explaining, const gp_lock_sum_t *sum, bool is_gil)
{
    char waited[32], longest[32];
    gp_finding_t *finding = gp_explain_add(explaining, is_gil ? "gil-held" : "lock-held", sum->held_ns);
    if (finding == NULL)
        return;
    snprintf(finding->function, sizeof(finding->function), "%s", sum->function);
    snprintf(finding->file, sizeof(finding->file), "%s", sum->file);
    finding->line = sum->line;
    finding->times = sum->waits;
    gp_explain_time(sum->held_ns, waited);
    gp_explain_time(sum->longest_ns, longest);
    if (is_gil)
        snprintf(
            finding->sentence, sizeof(finding->sentence),
            "%s computes with the interpreter's lock (GIL): other threads waited %s for it, %.0f %% of all such waits",
            sum->code, waited, (double)sum->held_ns * 100 / (double)sum->total_ns);
    else
        snprintf(finding->sentence, sizeof(finding->sentence),
                 "%s holds the lock of %s for long: others waited %s for it meanwhile, up to %s at a time", sum->code,
                 sum->name, waited, longest);
    snprintf(finding->hurt, sizeof(finding->hurt), "%" PRIu32 " thread%s, %" PRIu64 " %s", sum->victims,
             sum->victims == 1 ? "" : "s", sum->waits,
             is_gil            ? "samples of waits"
             : sum->waits == 1 ? "wait"
                               : "waits");
    snprintf(finding->sure, sizeof(finding->sure), "%s",
             is_gil ? "the waits are exact, the code is sampled"
                    : "the waits are known, the code is that which held it as each began");
    snprintf(finding->show, sizeof(finding->show), "%s",
             is_gil ? "report --by coroutine --clock wall --sort gil" : "report --by lock");
}

static bool explain_locks_is_much(const gp_explaining_t *explaining, const gp_lock_sum_t *sum, bool is_gil)
{
    uint64_t least_ns = explaining->dataset->facts.end_ns / (is_gil ? GIL_SHARE : SHARE);
    least_ns = least_ns > LEAST_NS ? least_ns : LEAST_NS;
    return sum->held_ns >= least_ns && sum->held_ns >= sum->total_ns / 100 * (is_gil ? GIL_PERCENT : HELD_PERCENT) &&
           sum->median_ns >= MEDIAN_LEAST_NS && sum->function[0] != '\0';
}

static int explain_locks_of_kind(gp_explaining_t *explaining, enum gp_sample_kind kind)
{
    gp_lock_waits_t waits;
    int result = gp_lock_waits_make(&waits, explaining->dataset, explaining->symbolizer, kind, explaining->trace);
    size_t said = 0;
    for (size_t i = 0; i < waits.count && said < SHOWN && result == 0; i++) {
        if (!explain_locks_is_much(explaining, &waits.items[i], kind == GP_KIND_GIL))
            continue;
        explain_locks_say(explaining, &waits.items[i], kind == GP_KIND_GIL);
        said++;
    }
    gp_lock_waits_free(&waits);
    return result;
}

int gp_explain_locks(gp_explaining_t *explaining)
{
    int result = explaining->dataset->has_lock ? explain_locks_of_kind(explaining, GP_KIND_LOCK) : 0;
    return result == 0 && explaining->dataset->has_gil ? explain_locks_of_kind(explaining, GP_KIND_GIL) : result;
}
