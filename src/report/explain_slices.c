// SPDX-License-Identifier: MIT
// Code that keeps its thread while others wait: by computing, or by a sleeping call.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/explain_parts.h"

enum {
    LEAST_NS = 50000000, // of delays: less is noise of the machine
    SHARE = 100,         // or this part of the time
    SHOWN = 5,
    START_NS = 20000000,    // after a thread was first seen
    OWN_LEAST_NS = 5000000, // of a slice, on average
    MACHINE_PERCENT = 10,
};

typedef struct explained_place { // of slices with the same code
    gp_finding_t code;           // function, file and line are set
    char call[128];              // the innermost function, where it is another one: what slept
    uint64_t delay_ns, unseen_ns, delays, slices, slice_ns, longest_ns;
    uint64_t did_ns, cpu_ns, blocked_ns; // of what is known of them
    uint32_t others;                     // at most, in one
    uint32_t coros;                      // distinct victims
} explained_place_t;

static bool explain_slices_is_same(const explained_place_t *place, const explained_place_t *other)
{
    return strcmp(place->code.function, other->code.function) == 0 && strcmp(place->code.file, other->code.file) == 0;
}

static void explain_slices_add(explained_place_t *place, const gp_long_slice_t *slice)
{
    if (slice->hog->duration_ns > place->longest_ns)
        place->longest_ns = slice->hog->duration_ns;
    place->delay_ns += slice->delay_ns;
    place->unseen_ns += slice->unseen_ns;
    place->delays += slice->delays;
    place->slices++;
    place->slice_ns += slice->hog->duration_ns;
    place->did_ns += slice->slices_ns;
    place->cpu_ns += slice->cpu_ns;
    place->blocked_ns += slice->blocked_ns;
    place->others = slice->others > place->others ? slice->others : place->others;
}

static void explain_slices_name_call(const gp_explaining_t *explaining, const gp_long_slice_t *slice,
                                     explained_place_t *place)
{
    const char *name = gp_report_loc_name(explaining->dataset, explaining->symbolizer, slice->path[slice->depth - 1]);
    if (strcmp(name, place->code.function) != 0 && strstr(name, "+0x") == NULL)
        snprintf(place->call, sizeof(place->call), "%s", name);
}

// Is it start-up: the first slice of a thread on its own stack? Coroutines that it makes meanwhile have no loop yet.
static bool explain_slices_is_start(const gp_dataset_t *dataset, const gp_dataset_hog_t *hog)
{
    for (size_t i = 0; i < dataset->facts.threads.count; i++) {
        const gp_thread_record_t *thread = &dataset->facts.threads.items[i];
        if (thread->index == hog->thread)
            return hog->start_ns <= thread->start_ns + START_NS &&
                   dataset->facts.coros.items[hog->coro].record.id == thread->coro_id;
    }
    return false;
}

// Returns how many places there are.
static size_t explain_slices_gather(const gp_explaining_t *explaining, explained_place_t *places, size_t *of_slice)
{
    size_t count = 0;
    for (size_t i = 0; i < explaining->slices.count; i++) {
        const gp_long_slice_t *slice = &explaining->slices.items[i];
        explained_place_t *place = &places[count];
        size_t at = 0;
        if (explain_slices_is_start(explaining->dataset, slice->hog) ||
            explaining->dataset->facts.coros.items[slice->hog->coro].pool != 0) // it keeps a worker, no loop
            continue;
        *place = (explained_place_t){.slices = 0};
        uint32_t level = gp_explain_place(explaining, slice->path, slice->depth, &place->code);
        while (at < count && !explain_slices_is_same(&places[at], place))
            at++;
        if (at == count && level < UINT32_MAX && level + 1 < slice->depth)
            explain_slices_name_call(explaining, slice, place);
        count += at == count;
        explain_slices_add(&places[at], slice);
        of_slice[slice->hog - explaining->dataset->hogs.items] = at + 1;
    }
    return count;
}

// A coroutine that waits for one place several times is one victim.
static int explain_slices_count_victims(const gp_explaining_t *explaining, explained_place_t *places,
                                        const size_t *of_slice)
{
    const gp_dataset_t *dataset = explaining->dataset;
    size_t *last = calloc(dataset->facts.coros.count + 1, sizeof(*last)); // the place it was counted for last
    for (size_t i = 0; i < dataset->delays.count && last != NULL; i++) {
        size_t place = of_slice[dataset->delays.items[i].hog];
        uint32_t coro = dataset->delays.items[i].coro;
        if (place > 0 && gp_long_slices_has(&explaining->slices, &dataset->delays.items[i]) && last[coro] != place) {
            places[place - 1].coros++;
            last[coro] = place;
        }
    }
    free(last);
    return last != NULL ? 0 : -ENOMEM;
}

// The share of its slices in which it ran or slept: for the rest the machine gave it no processor.
static double explain_slices_own_share(const explained_place_t *place)
{
    double own = (double)(place->cpu_ns + place->blocked_ns);
    return place->did_ns == 0 || own >= (double)place->did_ns ? 1 : own / (double)place->did_ns;
}

// Would its slices be long on a machine that has time? Else its code is not to blame.
static bool explain_slices_is_its_own(const explained_place_t *place)
{
    double own_ns = (double)place->slice_ns * explain_slices_own_share(place);
    return own_ns >= (double)place->slices * OWN_LEAST_NS;
}

static void explain_slices_say_known(gp_explaining_t *explaining, const explained_place_t *place, bool sleeps)
{
    char delay[32], longest[32], code[384];
    uint64_t all_ns = explaining->findings->victim_ns;
    gp_finding_t *finding = gp_explain_add(explaining, sleeps ? "blocking-call" : "held-loop",
                                           (uint64_t)((double)place->delay_ns * explain_slices_own_share(place)));
    if (finding == NULL)
        return;
    gp_explain_about(finding, &place->code);
    finding->times = place->delays;
    gp_explain_code(&place->code, code, sizeof(code));
    gp_explain_time(place->delay_ns, delay);
    gp_explain_time(place->longest_ns, longest);
    bool has_call = place->call[0] != '\0';
    snprintf(
        finding->sentence, sizeof(finding->sentence),
        "%s %s%s%s for up to %s at a time and kept the loop: others were ready and waited %s for it, %.0f %% of all "
        "such waits",
        code, sleeps ? "sleeps on its thread" : "computes", has_call ? " in " : "", place->call, longest, delay,
        all_ns > 0 ? (double)place->delay_ns * 100 / (double)all_ns : 100);
    snprintf(finding->hurt, sizeof(finding->hurt),
             "%" PRIu32 " coroutine%s, %" PRIu64 " time%s, in %" PRIu64 " long slice%s", place->coros,
             place->coros == 1 ? "" : "s", place->delays, place->delays == 1 ? "" : "s", place->slices,
             place->slices == 1 ? "" : "s");
    if (place->unseen_ns * 10 > place->delay_ns)
        snprintf(finding->sure, sizeof(finding->sure), "at most: %s of it the loop had not looked for ready coroutines",
                 gp_explain_time(place->unseen_ns, delay));
    else
        snprintf(finding->sure, sizeof(finding->sure), "the waits are exact, the code is sampled");
    double machine = (1 - explain_slices_own_share(place)) * 100;
    size_t length = strlen(finding->sure);
    if (machine >= MACHINE_PERCENT)
        snprintf(finding->sure + length, sizeof(finding->sure) - length,
                 "; for %.0f %% of its slices it did not get a processor", machine);
    snprintf(finding->show, sizeof(finding->show), "report --by victim-time");
}

// Nothing told which coroutines were ready: known is only how long this one kept the thread while others waited.
static void explain_slices_say_unknown(gp_explaining_t *explaining, const explained_place_t *place, bool sleeps)
{
    char time[32], code[384];
    gp_finding_t *finding = gp_explain_add(explaining, sleeps ? "blocking-call" : "held-loop", place->slice_ns);
    if (finding == NULL)
        return;
    gp_explain_about(finding, &place->code);
    finding->times = place->slices;
    snprintf(finding->sentence, sizeof(finding->sentence),
             "%s %s%s%s and kept its thread for %s in %" PRIu64 " long slice%s, while up to %" PRIu32 " other%s waited",
             gp_explain_code(&place->code, code, sizeof(code)), sleeps ? "sleeps" : "computes",
             place->call[0] != '\0' ? " in " : "", place->call, gp_explain_time(place->slice_ns, time), place->slices,
             place->slices == 1 ? "" : "s", place->others, place->others == 1 ? "" : "s");
    snprintf(finding->hurt, sizeof(finding->hurt), "up to %" PRIu32 " coroutines at a time", place->others);
    snprintf(finding->sure, sizeof(finding->sure),
             "the slices are exact; whether the others could have run is not known: this runtime does not say");
    snprintf(finding->show, sizeof(finding->show), "report --by victim-time");
}

static int explain_slices_by_cost(const void *left, const void *right)
{
    const explained_place_t *a = left, *b = right;
    if (a->delay_ns != b->delay_ns)
        return a->delay_ns > b->delay_ns ? -1 : 1;
    return a->slice_ns > b->slice_ns ? -1 : a->slice_ns < b->slice_ns;
}

static void explain_slices_say(gp_explaining_t *explaining, explained_place_t *places, size_t count)
{
    uint64_t least_ns = explaining->dataset->facts.end_ns / SHARE;
    size_t said = 0;
    least_ns = least_ns > LEAST_NS ? least_ns : LEAST_NS;
    for (size_t i = 0; i < count; i++)
        explaining->findings->victim_ns += places[i].delay_ns;
    qsort(places, count, sizeof(*places), explain_slices_by_cost);
    for (size_t i = 0; i < count && said < SHOWN; i++) {
        const explained_place_t *place = &places[i];
        bool sleeps = place->blocked_ns > place->cpu_ns;
        double own_ns = (double)place->delay_ns * explain_slices_own_share(place);
        if (!explain_slices_is_its_own(place) || place->code.function[0] == '\0')
            continue;
        if (explaining->findings->is_victim_known && own_ns >= (double)least_ns) {
            explain_slices_say_known(explaining, place, sleeps);
            said++;
        } else if (!explaining->findings->is_victim_known && place->slice_ns >= least_ns && place->others > 0) {
            explain_slices_say_unknown(explaining, place, sleeps);
            said++;
        }
    }
}

int gp_explain_slices(gp_explaining_t *explaining)
{
    explained_place_t *places = calloc(explaining->slices.count + 1, sizeof(*places));
    size_t *of_slice = calloc(explaining->dataset->hogs.count + 1, sizeof(*of_slice));
    int result = places != NULL && of_slice != NULL ? 0 : -ENOMEM;
    explaining->findings->is_victim_known = gp_dataset_knows_ready(explaining->dataset);
    if (result == 0) {
        size_t count = explain_slices_gather(explaining, places, of_slice);
        result = explain_slices_count_victims(explaining, places, of_slice);
        if (result == 0 && count > 0)
            explain_slices_say(explaining, places, count);
    }
    free(places);
    free(of_slice);
    return result;
}
