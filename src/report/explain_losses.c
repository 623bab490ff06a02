// SPDX-License-Identifier: MIT
// Losses and missing names, where they could change the answer.
#include <inttypes.h>
#include <stdio.h>

#include "report/explain_parts.h"

enum { LOST_PERCENT = 2, LOST_LEAST = 10, NAMELESS_PERCENT = 20, LEAST_CPU_NS = 50000000 };

static void explain_losses_say_lost(gp_explaining_t *explaining, uint64_t lost, uint64_t kept, const char *what)
{
    gp_finding_t *finding = lost >= LOST_LEAST && lost * 100 >= (lost + kept) * LOST_PERCENT
                                ? gp_explain_add(explaining, "lost-data", 0)
                                : NULL;
    if (finding == NULL)
        return;
    finding->rank = GP_FINDING_CAVEAT;
    finding->times = lost;
    unsigned thousandths = (unsigned)((lost * 1000 + (lost + kept) / 2) / (lost + kept));
    snprintf(finding->sentence, sizeof(finding->sentence),
             "%" PRIu64 " of %" PRIu64 " %s were lost (%u.%u %%): shares below may be wrong by as much", lost,
             lost + kept, what, thousandths / 10, thousandths % 10);
    snprintf(finding->show, sizeof(finding->show), "info");
}

static void explain_losses_say_nameless(gp_explaining_t *explaining)
{
    bool is_much =
        explaining->cpu_ns >= LEAST_CPU_NS && explaining->nameless_ns >= explaining->cpu_ns / 100 * NAMELESS_PERCENT;
    gp_finding_t *finding = is_much ? gp_explain_add(explaining, "no-names", 0) : NULL;
    if (finding == NULL)
        return;
    finding->rank = GP_FINDING_CAVEAT;
    snprintf(
        finding->sentence, sizeof(finding->sentence),
        "%.0f %% of the CPU time is in functions without names, of %s among others: what is slow there has none below",
        (double)explaining->nameless_ns * 100 / (double)explaining->cpu_ns, explaining->nameless_module);
    snprintf(finding->show, sizeof(finding->show), "report -n 5");
}

int gp_explain_losses(gp_explaining_t *explaining)
{
    const uint64_t *counters = explaining->dataset->facts.counters;
    uint64_t samples = gp_counters_lost(counters, GP_COUNTER_COUNT, GP_LOST_SIGNAL) +
                       gp_counters_lost(counters, GP_COUNTER_COUNT, GP_LOST_SAMPLES);
    explain_losses_say_lost(explaining, samples, explaining->dataset->samples, "samples");
    explain_losses_say_lost(explaining, gp_counters_lost(counters, GP_COUNTER_COUNT, GP_LOST_SPANS),
                            explaining->dataset->spans.count, "spans");
    explain_losses_say_nameless(explaining);
    return 0;
}
