// SPDX-License-Identifier: MIT
#include "choice.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "greenprof/trace.h"
#include "message.h"
#include "time_text.h"

static int choice_check_moment(const char *text, const char *command, const char *prefix, const char *name)
{
    gp_moment_t moment;
    if (text == NULL || gp_moment_parse(text, &moment))
        return 0;
    return gp_usage_error(command,
                          "--%s%s %s: must be seconds since the start, -seconds before the "
                          "end, a date and time, a time of day, or @seconds since 1970",
                          prefix, name, text);
}

int gp_choice_check(const gp_choice_t *choice, const char *command, const char *prefix)
{
    prof_trace_id_t trace;
    uint64_t coroutine;
    for (size_t i = 0; i < choice->traces.count; i++)
        if (prof_trace_parse(choice->traces.items[i], &trace) < 0)
            return gp_usage_error(command, "--%strace %s: must be 32 hex digits, a UUID or a traceparent", prefix,
                                  choice->traces.items[i]);
    for (size_t i = 0; i < choice->coroutines.count; i++)
        if (!gp_parse_number(choice->coroutines.items[i], 1, UINT64_MAX, &coroutine))
            return gp_usage_error(command, "--%scoroutine %s: must be the number of a coroutine", prefix,
                                  choice->coroutines.items[i]);
    int status = choice_check_moment(choice->from, command, prefix, "from");
    return status != 0 ? status : choice_check_moment(choice->to, command, prefix, "to");
}

bool gp_choice_has_window(const gp_choice_t *choice)
{
    return choice->from != NULL || choice->to != NULL;
}

// A look at a capture's times before it is read for good.
typedef struct times {
    uint64_t start_realtime_ns, end_ns;
    uint64_t shift_ns; // of the capture that is read
    bool needs_end;
} times_t;

static int choice_on_header(void *context, const gp_file_header_t *header)
{
    times_t *times = context;
    times->start_realtime_ns = header->start_realtime_ns;
    return times->needs_end ? 0 : -ECANCELED; // the rest is not needed
}

static void choice_seen_at(times_t *times, uint64_t time_ns)
{
    if (time_ns + times->shift_ns > times->end_ns)
        times->end_ns = time_ns + times->shift_ns;
}

static int choice_on_sample(void *context, const gp_sample_record_t *sample)
{
    choice_seen_at(context, sample->time_ns);
    return 0;
}

static int choice_on_ledger(void *context, const gp_ledger_record_t *ledger)
{
    choice_seen_at(context, ledger->time_ns);
    return 0;
}

static int choice_on_counters(void *context, const gp_counters_record_t *counters, const uint64_t *values)
{
    (void)values;
    choice_seen_at(context, counters->time_ns);
    return 0;
}

static int choice_on_end(void *context, const gp_end_record_t *end)
{
    choice_seen_at(context, end->time_ns);
    return 0;
}

static int choice_read_times(const gp_capture_input_t *input, const char *path, times_t *times)
{
    static const gp_reader_handlers_t handlers = {.header = choice_on_header,
                                                  .sample = choice_on_sample,
                                                  .ledger = choice_on_ledger,
                                                  .counters = choice_on_counters,
                                                  .end = choice_on_end};
    char error[GP_READER_ERROR_SIZE] = "";
    gp_reader_summary_t summary;
    times->shift_ns = input->shift_ns;
    int result = gp_reader_read(input->fd, &handlers, times, &summary, error);
    if (result < 0 && result != -ECANCELED)
        return gp_fail(path, "%s", error);
    if (lseek(input->fd, input->start, SEEK_SET) < 0)
        return gp_fail(path, "%s", strerror(errno));
    return 0;
}

int gp_choice_window(const gp_choice_t *choice, const gp_captures_t *captures, const char *path,
                     gp_dataset_window_t *window)
{
    gp_moment_t from = {0}, to = {.ns = UINT64_MAX};
    times_t times = {0};
    if (choice->from != NULL)
        gp_moment_parse(choice->from, &from);
    if (choice->to != NULL)
        gp_moment_parse(choice->to, &to);
    times.needs_end = from.kind == GP_MOMENT_BEFORE_END || from.kind == GP_MOMENT_OF_DAY ||
                      to.kind == GP_MOMENT_BEFORE_END || to.kind == GP_MOMENT_OF_DAY;
    int status = 0;
    for (size_t i = 0; i < captures->count && status == 0; i++)
        status = choice_read_times(&captures->inputs[i], path, &times);
    if (status != 0)
        return status;
    if (captures->count > 1)
        times.start_realtime_ns = captures->header.start_realtime_ns;
    window->from_ns = gp_moment_resolve(&from, times.start_realtime_ns, times.end_ns);
    window->to_ns = gp_moment_resolve(&to, times.start_realtime_ns, times.end_ns);
    if (window->from_ns >= window->to_ns)
        return gp_fail(path, "nothing is between --from %s and --to %s", choice->from ? choice->from : "0",
                       choice->to ? choice->to : "the end");
    return 0;
}

static bool *choice_make_set(size_t count)
{
    return calloc(count + 1, sizeof(bool));
}

static int choice_find_traces(const gp_texts_t *texts, const gp_dataset_t *dataset, const char *path, bool *traces)
{
    prof_trace_id_t id;
    for (size_t i = 0; i < texts->count; i++) {
        prof_trace_parse(texts->items[i], &id); // checked before
        uint32_t number = gp_dataset_trace_find(dataset, id.bytes);
        if (number == GP_INDEX_NONE)
            return gp_fail(path, "has no trace %s", texts->items[i]);
        traces[number] = true;
    }
    return 0;
}

static int choice_find_coroutines(const gp_texts_t *texts, const gp_dataset_t *dataset, const char *path, bool *coros)
{
    uint64_t id = 0;
    for (size_t i = 0; i < texts->count; i++) {
        gp_parse_number(texts->items[i], 1, UINT64_MAX, &id);
        uint32_t number = gp_dataset_coro_find(dataset, id);
        if (number == GP_INDEX_NONE)
            return gp_fail(path, "has no coroutine %s", texts->items[i]);
        coros[number] = true;
    }
    return 0;
}

static int choice_find_threads(const gp_texts_t *texts, const gp_dataset_t *dataset, const char *path, bool *threads)
{
    for (size_t i = 0; i < texts->count; i++) {
        uint64_t tid = 0;
        bool found = false, number = gp_parse_number(texts->items[i], 0, UINT32_MAX, &tid);
        for (size_t t = 0; t < dataset->facts.threads.count; t++) {
            const gp_thread_record_t *thread = &dataset->facts.threads.items[t];
            if ((number && thread->tid == tid) || strcmp(thread->name, texts->items[i]) == 0)
                found = threads[t] = true;
        }
        if (!found)
            return gp_fail(path, "has no thread %s", texts->items[i]);
    }
    return 0;
}

// Keep the coroutines of `coros` with a name that matches `text`. Returns how many, or -1.
static long choice_match_names(const char *text, const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer, bool *coros)
{
    char name[256];
    regex_t regex;
    long found = 0;
    if (regcomp(&regex, text, REG_EXTENDED | REG_NOSUB) != 0) // checked before
        return -1;
    for (uint32_t i = 0; i < dataset->facts.coros.count; i++) {
        gp_report_coro_label(dataset, i, symbolizer, true, name, sizeof(name));
        bool matches = regexec(&regex, name, 0, NULL, 0) == 0;
        for (const gp_former_name_t *at = dataset->facts.coros.items[i].former; at != NULL && !matches; at = at->before)
            matches = regexec(&regex, at->name, 0, NULL, 0) == 0;
        if (matches) {
            coros[i] = true;
            found++;
        }
    }
    regfree(&regex);
    return found;
}

static int choice_find_names(const gp_texts_t *texts, const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer,
                             const char *path, bool *coros)
{
    bool *named = choice_make_set(dataset->facts.coros.count);
    int status = 0;
    if (named == NULL)
        return gp_fail(path, "%s", strerror(ENOMEM));
    for (size_t i = 0; i < texts->count && status == 0; i++) {
        long found = choice_match_names(texts->items[i], dataset, symbolizer, named);
        if (found < 0)
            status = gp_fail(path, "%s", strerror(ENOMEM));
        else if (found == 0)
            status = gp_fail(path, "has no coroutine with a name that matches '%s'", texts->items[i]);
    }
    for (size_t i = 0; i < dataset->facts.coros.count && status == 0; i++)
        coros[i] = coros[i] && named[i];
    free(named);
    return status;
}

static int choice_find_all(const gp_choice_t *choice, const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer,
                           const char *path, gp_chosen_t *chosen)
{
    int status = 0;
    if (chosen->traces != NULL)
        status = choice_find_traces(&choice->traces, dataset, path, chosen->traces);
    if (chosen->threads != NULL && status == 0)
        status = choice_find_threads(&choice->threads, dataset, path, chosen->threads);
    if (choice->coroutines.count > 0 && status == 0)
        status = choice_find_coroutines(&choice->coroutines, dataset, path, chosen->coros);
    else if (chosen->coros != NULL)
        memset(chosen->coros, true, dataset->facts.coros.count);
    if (choice->names.count > 0 && chosen->coros != NULL && status == 0)
        status = choice_find_names(&choice->names, dataset, symbolizer, path, chosen->coros);
    return status;
}

int gp_choice_find(const gp_choice_t *choice, const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer,
                   const char *path, gp_chosen_t *chosen)
{
    bool coros = choice->coroutines.count > 0 || choice->names.count > 0;
    memset(chosen, 0, sizeof(*chosen));
    chosen->coros = coros ? choice_make_set(dataset->facts.coros.count) : NULL;
    chosen->traces = choice->traces.count > 0 ? choice_make_set(dataset->facts.traces.count) : NULL;
    chosen->threads = choice->threads.count > 0 ? choice_make_set(dataset->facts.threads.count) : NULL;
    chosen->selection = (gp_selection_t){chosen->coros, chosen->traces, chosen->threads};
    if ((coros && chosen->coros == NULL) || (choice->traces.count > 0 && chosen->traces == NULL) ||
        (choice->threads.count > 0 && chosen->threads == NULL))
        return gp_fail(path, "%s", strerror(ENOMEM));
    return choice_find_all(choice, dataset, symbolizer, path, chosen);
}

void gp_chosen_free(gp_chosen_t *chosen)
{
    free(chosen->coros);
    free(chosen->traces);
    free(chosen->threads);
    memset(chosen, 0, sizeof(*chosen));
}
