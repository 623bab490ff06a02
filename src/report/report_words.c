// SPDX-License-Identifier: MIT
#include "report/report_words.h"

#include <stddef.h>

#include "model/counters.h"

const char *gp_counter_name(uint32_t counter)
{
#define KEY(number, id, key, lost, sentence) [number] = #key,
    static const char *const keys[] = {GP_COUNTERS(KEY)};
    return counter < GP_COUNTER_COUNT ? keys[counter] : NULL;
}

const char *gp_counter_meaning(uint32_t counter)
{
#define SENTENCE(number, id, key, lost, sentence) [number] = sentence,
    static const char *const sentences[] = {GP_COUNTERS(SENTENCE)};
    return counter < GP_COUNTER_COUNT ? sentences[counter] : NULL;
}

const char *gp_counter_sentence(uint32_t counter)
{
    return gp_counter_lost(counter) != GP_LOST_ASIDE ? gp_counter_meaning(counter) : NULL;
}

const char *gp_basis_name(gp_basis_t basis)
{
    static const char *const names[] = {
        [GP_BASIS_EXACT] = "exact",
        [GP_BASIS_ESTIMATED] = "estimated",
        [GP_BASIS_SAMPLED] = "sampled",
    };
    return names[basis];
}

const char *gp_measure_name(gp_measure_t measure)
{
    static const char *const names[] = {
        [GP_MEASURE_CPU] = "cpu",
        [GP_MEASURE_WALL] = "wall",
        [GP_MEASURE_DELAY] = "delay",
        [GP_MEASURE_LATENCY] = "latency",
    };
    return names[measure];
}

const char *gp_measure_words(gp_measure_t measure)
{
    static const char *const words[] = {
        [GP_MEASURE_CPU] = "CPU time",
        [GP_MEASURE_WALL] = "wall-clock time",
        [GP_MEASURE_DELAY] = "delays of others",
        [GP_MEASURE_LATENCY] = "latency of requests",
    };
    return words[measure];
}

const char *gp_count_words(const gp_report_t *report)
{
    return report->exact_rows ? "calls" : "samples";
}
