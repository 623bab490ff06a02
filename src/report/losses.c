// SPDX-License-Identifier: MIT
#include "report/losses.h"

#include "model/own_cost.h"
#include "report/report_words.h"

enum {
    PENDING_SHARE = 100,        // of the CPU time, which is worth a line
    PENDING_LEAST_NS = 10000000 // of a program that lasts
};

bool gp_losses_are_told(const uint64_t *counters, uint64_t process_cpu_ns, uint32_t counter)
{
    uint64_t count = counters[counter];
    if (counter == GP_COUNTER_PENDING_NS)
        return count >= PENDING_LEAST_NS && count >= process_cpu_ns / PENDING_SHARE;
    return count > 0 && (counter == GP_COUNTER_UNSAMPLED_NS || gp_counter_sentence(counter) != NULL);
}

uint64_t gp_losses_own_in_threads(const gp_dataset_t *dataset)
{
    return gp_own_cost_in_threads(dataset->facts.counters);
}

double gp_losses_own_share(const gp_dataset_t *dataset)
{
    return gp_own_cost_share(dataset->facts.counters, dataset->facts.totals.process_cpu_ns,
                             dataset->facts.totals.own_cpu_ns);
}
