// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "live/census_held.h"
#include "missing_symbols.h"
#include "model/budget.h"
#include "model/rested_words.h"
#include "print.h"
#include "report/losses.h"
#include "report/report_words.h"
#include "tables.h"
#include "verdict.h"

enum { FEW = 50 }; // samples, by chance as many more or less as not to tell

const char *gp_report_engine_name(uint32_t engine)
{
#define NAME(number, id, name) [number] = #name,
    static const char *const names[] = {"unknown", GP_ENGINES(NAME)};
    return engine < sizeof(names) / sizeof(names[0]) && names[engine] != NULL ? names[engine] : names[0];
}

static void report_header_print_start(uint64_t realtime_ns)
{
    time_t seconds = (time_t)(realtime_ns / 1000000000u);
    struct tm utc;
    char text[64];
    if (realtime_ns == 0 || gmtime_r(&seconds, &utc) == NULL ||
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &utc) == 0)
        return;
    printf("  started    %s\n", text);
}

static void report_header_print_part(const char *what, uint64_t ns, uint64_t of_ns, const char *note)
{
    printf("  %-10s ", what);
    gp_print_seconds(ns, 0);
    printf(" s (%.1f %%) %s\n", of_ns > 0 ? (double)ns * 100 / (double)of_ns : 0, note);
}

// Critical paths add up to the latencies; what is not known of them is said.
static void report_header_print_latency(const gp_input_t *source, const gp_report_t *report)
{
    const gp_path_sums_t *sums = &source->path_sums;
    if (source->has_stored_paths) {
        printf(" s, the critical paths of requests whose captures have ended\n");
        return;
    }
    printf(" s%s", sums->about > 0 ? " about" : "");
    if (report->total_ns != sums->latency_ns) {
        printf(" of ");
        gp_print_seconds(sums->latency_ns, 0);
        printf(" s");
    }
    printf(", the critical path%s of %" PRIu64 " request%s\n", sums->requests == 1 ? "" : "s", sums->requests,
           sums->requests == 1 ? "" : "s");
    if (sums->about > 0)
        printf("  about      %" PRIu64
               " of no recorded beginning and end: from when their coroutines first ran to when "
               "they last did\n",
               sums->about);
    if (source->requests->left_out > 0)
        printf("  left out   %zu requests that are not whole within the chosen time\n", source->requests->left_out);
    if (sums->unsampled_ns > 0)
        report_header_print_part("no stack", sums->unsampled_ns, sums->latency_ns,
                                 "that no sample tells the stack of: [not sampled]");
    if (sums->inferred_ns > 0)
        report_header_print_part(
            "inferred", sums->inferred_ns, sums->latency_ns,
            "of children that ended last in waits of which the runtime does not say what ended them");
    if (sums->divided_ns > 0)
        report_header_print_part("divided", sums->divided_ns, sums->latency_ns,
                                 "with waits too short to be recorded one by one: divided in proportion");
}

// Sleeps of ordinary threads are known, whether there are stacks of them or not.
static void report_header_print_sleeps_of_threads(const gp_dataset_t *dataset)
{
    uint64_t slept_ns = 0;
    for (size_t i = 0; i < dataset->shares.count; i++)
        if (gp_dataset_is_ordinary(dataset, dataset->shares.items[i].coro))
            slept_ns += gp_ledger_kind_ns(&dataset->shares.items[i].ledger, GP_KIND_BLOCKED);
    printf(" of running and of waiting\n  threads    ");
    if (gp_dataset_has_sleeps(dataset)) {
        printf("without coroutines sleep as they were seen from outside; the sleep of event loops is left out");
    } else if (slept_ns > 0) {
        printf("without coroutines slept ");
        gp_print_seconds(slept_ns, 0);
        printf(" s besides, which is not in it: where is recorded with run --clock wall");
    } else {
        printf("have no sleep in it: where their own stacks sleep is recorded with run --clock wall");
    }
}

// The self-audit: the kernel's CPU time, and the sum of the samples. For a part without the kernel's time, the samples
// alone.
static void report_header_print_audit(const gp_input_t *source, const gp_report_t *report)
{
    static const char *const names[] = {
        [GP_MEASURE_CPU] = "CPU time ",
        [GP_MEASURE_WALL] = "wall time",
        [GP_MEASURE_DELAY] = "delays   ",
        [GP_MEASURE_LATENCY] = "latency  ",
    };
    printf("  %s  ", names[report->measure]);
    if (report->is_unknown) {
        printf("not known: %s\n", gp_input_unknown_ready);
        return;
    }
    gp_print_seconds(report->total_ns, 0);
    if (report->measure == GP_MEASURE_DELAY) {
        printf(" s that others were ready and waited for long slices\n");
        if (report->unseen_ns != 0) {
            printf("  of it      ");
            gp_print_seconds(report->unseen_ns, 0);
            printf(" s at most: a loop that had not looked for long found them ready\n");
        }
        printf("  delayed    %" PRIu64 " times\n", report->samples);
        return;
    }
    if (report->measure == GP_MEASURE_LATENCY) {
        report_header_print_latency(source, report);
        return;
    }
    if (report->measure == GP_MEASURE_WALL) {
        printf(" s, of it on the CPU ");
        gp_print_seconds(report->cpu_ns, 0);
    }
    if (report->basis == GP_BASIS_EXACT) {
        printf(" s exact, ");
        gp_print_seconds(report->sampled_ns, 0);
        printf(" s sampled");
    } else if (report->basis == GP_BASIS_ESTIMATED) {
        printf(" s by the samples, of ");
        gp_print_seconds(report->scope_ns, 0);
        printf(" s exact");
    } else {
        printf(" s by the samples; the exact time of this part is not known");
    }
    if (report->basis == GP_BASIS_EXACT && report->cpu_ns > 0)
        printf(" (%+.2f %%, chance gives +-%.2f %%)",
               ((double)report->sampled_ns - (double)report->cpu_ns) * 100 / (double)report->cpu_ns,
               1.96 * sqrt(report->variance_ns2) * 100 / (double)report->cpu_ns);
    printf("\n  samples    %" PRIu64, report->samples);
    if (report->measure == GP_MEASURE_WALL)
        report_header_print_sleeps_of_threads(source->dataset);
    else if (report->cpu_ns > 0)
        printf(" (%.1f a second of CPU time)", (double)report->samples * 1e9 / (double)report->cpu_ns);
    printf("\n");
}

// Fewer samples than asked for, and why. Source: timer_settime(2) on a CPU clock, which is looked at as the kernel
// ticks.
static void report_header_print_slow_clock(const gp_dataset_t *dataset)
{
    double asked_for = (double)dataset->facts.header.frequency_hz * (double)dataset->sampled_ns / 1e9;
    if (dataset->facts.header.engine == GP_ENGINE_CPU && asked_for > FEW && (double)dataset->samples < asked_for * 0.7)
        printf("  slow clock a CPU timer goes off once a tick of the kernel's at most: --engine monotonic has the rate "
               "asked for\n");
}

// Where samples come late, and threads end before they do, what was sampled is less than what was used.
static void report_header_print_pending(const gp_dataset_t *dataset)
{
    if (!gp_losses_are_told(dataset->facts.counters, dataset->facts.totals.process_cpu_ns, GP_COUNTER_PENDING_NS))
        return;
    printf("  pending    ");
    gp_print_seconds(dataset->facts.counters[GP_COUNTER_PENDING_NS], 0);
    printf(" s of CPU time came after the last samples of threads: in the total, in no sample\n");
}

static void report_header_print_not_known(const gp_dataset_t *dataset)
{
    for (size_t i = 0; i < dataset->facts.metas.count; i++) {
        if (strcmp(dataset->facts.metas.items[i].key, GP_NOT_KNOWN_KEY) != 0)
            continue;
        printf("  not known  ");
        gp_print_text(dataset->facts.metas.items[i].value);
        printf("\n");
    }
}

void gp_report_print_counters(const gp_dataset_t *dataset)
{
    report_header_print_not_known(dataset);
    report_header_print_slow_clock(dataset);
    if (dataset->facts.counters[GP_COUNTER_UNSAMPLED_NS] > 0) {
        printf("  not shown  ");
        gp_print_seconds(dataset->facts.counters[GP_COUNTER_UNSAMPLED_NS], 0);
        printf(" s of CPU time on threads that no sampling signal can reach\n");
    }
    report_header_print_pending(dataset);
    for (uint32_t i = 0; i < GP_COUNTER_COUNT; i++)
        if (gp_counter_sentence(i) != NULL && dataset->facts.counters[i] > 0)
            printf("  %10" PRIu64 " %s\n", dataset->facts.counters[i], gp_counter_sentence(i));
}

// The cost of hooks beyond the budget, which no rate of samples changes.
static void report_header_print_hooks_beyond(const gp_dataset_t *dataset, const char *budget)
{
    uint64_t own = gp_losses_own_in_threads(dataset), program = dataset->facts.totals.process_cpu_ns;
    uint64_t rested = dataset->facts.counters[GP_COUNTER_REST_CPU_NS]; // they take it while it is recorded
    uint32_t ppm;
    program = program > rested ? program - rested : 0;
    uint64_t hooks_ns = dataset->facts.counters[GP_COUNTER_HOOK_NS],
             at_rest_ns = dataset->facts.counters[GP_COUNTER_REST_HOOK_NS];
    hooks_ns -= at_rest_ns < hooks_ns ? at_rest_ns : hooks_ns;
    double hooks = program > own ? (double)hooks_ns / (double)(program - own) : 0;
    if (gp_budget_parse(budget, &ppm) && hooks * 1e6 > ppm)
        printf("; the hooks of %.0f switches a second alone cost %.2g%%",
               (double)dataset->facts.counters[GP_COUNTER_SWITCHES] * 1e9 / (double)program, hooks * 100);
}

// Several processes have several ends: how often, and for how long.
static void report_header_print_rests(const gp_dataset_t *dataset)
{
    const uint64_t *counters = dataset->facts.counters;
    char words[GP_RESTED_WORDS_SIZE];
    if (!gp_rested_words(counters, dataset->facts.end_ns, words))
        return;
    printf("  rested     ");
    if (dataset->captures.count == 1 && dataset->facts.header.pid != 0)
        printf("%s: ", words);
    gp_print_seconds(counters[GP_COUNTER_REST_NS], 0);
    printf(" s, with ");
    gp_print_seconds(counters[GP_COUNTER_REST_CPU_NS], 0);
    printf(" s of CPU time, are in no figure but those of processes and threads\n");
}

void gp_report_print_budget(const gp_dataset_t *dataset)
{
    const gp_facts_meta_t *budget = gp_facts_meta(&dataset->facts, "budget");
    if (budget == NULL)
        return;
    printf("  budget     ");
    gp_print_text(budget->value);
    printf(" of the program's CPU time; greenprof took %.2f%%", gp_losses_own_share(dataset) * 100);
    if (dataset->facts.counters[GP_COUNTER_RATE_LOWERED] > 0 && dataset->sampled_ns > 0)
        printf(", with %.0f samples a second of CPU time in place of %" PRIu32,
               (double)dataset->samples * 1e9 / (double)dataset->sampled_ns, dataset->facts.header.frequency_hz);
    report_header_print_hooks_beyond(dataset, budget->value);
    printf("\n");
    report_header_print_rests(dataset);
}

// Losses are counted for the whole process.
static void report_header_print_losses(const gp_input_t *source)
{
    bool any = source->dataset->facts.counters[GP_COUNTER_UNSAMPLED_NS] > 0 ||
               gp_facts_meta(&source->dataset->facts, GP_NOT_KNOWN_KEY) != NULL;
    for (uint32_t i = 0; i < GP_COUNTER_COUNT; i++)
        any |= gp_counter_sentence(i) != NULL && source->dataset->facts.counters[i] > 0;
    if (any && source->choice[0] != '\0')
        printf("  of the whole capture, not of this part:\n");
    gp_report_print_counters(source->dataset);
}

// The number of processors that a fleet keeps busy in the chosen time.
static void report_header_print_cores(const gp_input_t *source, const gp_report_t *report)
{
    uint64_t hosts = gp_input_hosts(source);
    double cores = report->duration_ns > 0 ? (double)report->total_ns / (double)report->duration_ns : 0;
    if (hosts > 0)
        printf("  cores      %.3f kept busy in that time, of %" PRIu64 " host%s: %.3f each\n", cores, hosts,
               hosts == 1 ? "" : "s", cores / (double)hosts);
}

void gp_report_print_header(const gp_input_t *source, const gp_report_t *report)
{
    const gp_dataset_t *dataset = source->dataset;
    gp_print_text(dataset->facts.exe[0] ? dataset->facts.exe : report->title);
    if (dataset->facts.header.pid != 0)
        printf(" (pid %" PRIu32 ")\n", dataset->facts.header.pid);
    else
        printf(" (several processes)\n");
    report_header_print_start(report->start_realtime_ns);
    if (source->choice[0] != '\0') {
        printf("  part       ");
        gp_print_text(source->choice);
        printf("\n");
    }
    printf("  duration   ");
    gp_print_seconds(report->duration_ns, 0);
    printf(" s, asked for %" PRIu32 " Hz, %s clock\n", dataset->facts.header.frequency_hz,
           gp_report_engine_name(dataset->facts.header.engine));
    report_header_print_audit(source, report);
    report_header_print_cores(source, report);
    gp_report_print_budget(dataset);
    gp_census_print_held(source, true);
    if (source->options.by == GP_BY_NONE && report->measure != GP_MEASURE_DELAY)
        gp_explain_print_first(source);
    report_header_print_losses(source);
    gp_missing_symbols_print(source, report);
    if (!dataset->summary.ended)
        printf("  the capture has no end: the program still runs, was killed, or left by a system call of its own\n");
    else if (dataset->facts.end.reason == GP_END_STOPPED)
        printf("  sampling ended before the program: it handles every signal that would do\n");
    else if (dataset->facts.end.reason == GP_END_SANDBOX)
        printf("  recording ended before the program: its seccomp sandbox kills for calls of greenprof's\n");
    else if (dataset->facts.end.reason == GP_END_KILLED)
        printf("  the program was killed, or left by a system call of its own: recovered\n");
    else if (dataset->facts.end.reason == GP_END_FULL)
        printf("  recording ended before the program: the capture has the size that it was to have at most\n");
    else if (dataset->facts.end.reason == GP_END_FAILED)
        printf("  the capture could not be written any further: %s; what came later is missing\n",
               strerror((int)dataset->facts.end.error));
    printf("\n");
}
