#include "source.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "command.h"
#include "trace_text.h"

typedef struct wanted { // the options' values, before it is known what the capture has
    uint8_t trace[16];
    uint64_t coroutine;
} wanted_t;

static gp_by_t by_of(const char *by)
{
    if (by != NULL && strcmp(by, "coroutine") == 0)
        return GP_BY_COROUTINE;
    return by != NULL && strcmp(by, "trace") == 0 ? GP_BY_TRACE : GP_BY_NONE;
}

static int check_form(const gp_arguments_t *arguments, wanted_t *wanted)
{
    if (arguments->trace != NULL && !gp_trace_text_parse(arguments->trace, wanted->trace))
        return gp_usage_error(arguments->command->name,
                              "--trace %s: it must be 32 hex digits, a UUID or a traceparent",
                              arguments->trace);
    if (arguments->coroutine != NULL &&
        !gp_parse_number(arguments->coroutine, 1, UINT64_MAX, &wanted->coroutine))
        return gp_usage_error(arguments->command->name,
                              "--coroutine %s: it must be the number of a coroutine",
                              arguments->coroutine);
    return 0;
}

static int find_wanted(gp_source_t *source, const gp_arguments_t *options, const wanted_t *wanted)
{
    if (options->clock != NULL && strcmp(options->clock, "wall") == 0)
        return gp_fail(source->path, "the wall clock is not in this capture, only CPU time is");
    if (options->trace != NULL) {
        source->options.only_trace = true;
        source->options.trace = gp_dataset_trace_find(source->dataset, wanted->trace);
        if (source->options.trace == GP_INDEX_NONE)
            return gp_fail(source->path, "has no trace %s", options->trace);
    }
    if (options->coroutine != NULL) {
        source->options.only_coro = true;
        source->options.coro = gp_dataset_coro_find(source->dataset, wanted->coroutine);
        if (source->options.coro == GP_INDEX_NONE)
            return gp_fail(source->path, "has no coroutine %s", options->coroutine);
    }
    return 0;
}

static unsigned kept_apart(const gp_source_t *source, const gp_arguments_t *options)
{
    bool labels = source->options.wants & GP_WANT_LABELS;
    bool traces = source->options.by == GP_BY_TRACE || options->trace != NULL || labels;

    // Coroutines always: each one's samples are scaled to its own exact time.
    return GP_KEEP_COROS | (traces ? GP_KEEP_TRACES : 0u) | (labels ? GP_KEEP_THREADS : 0u);
}

static void warn_damage(const gp_source_t *source)
{
    const gp_reader_summary_t *summary = &source->dataset->summary;

    if (summary->chunks_damaged > 0 || summary->chunks_missing > 0 || summary->records_bad > 0)
        gp_warn(source->path,
                "damaged: %" PRIu64 " bad places, %" PRIu64 " chunks missing, %" PRIu64
                " bad records, %" PRIu64 " bytes skipped; the rest is shown",
                summary->chunks_damaged, summary->chunks_missing, summary->records_bad,
                summary->bytes_skipped);
    if (summary->truncated)
        gp_warn(source->path, "cut off: the last chunk is not whole; what is before it is shown");
}

int gp_source_open(gp_source_t *source, const gp_arguments_t *arguments, unsigned wants)
{
    const char *path = arguments->operands[0];
    char error[GP_READER_ERROR_SIZE];
    wanted_t wanted;

    memset(source, 0, sizeof(*source));
    source->path = path;
    source->options.wants = wants;
    source->options.by = by_of(arguments->by);
    int status = check_form(arguments, &wanted);
    if (status != 0)
        return status;
    source->dataset = gp_dataset_load(path, kept_apart(source, arguments), error);
    if (source->dataset == NULL)
        return gp_fail(path, "%s", error);
    source->symbolizer = gp_symbolizer_create();
    status = source->symbolizer != NULL ? find_wanted(source, arguments, &wanted)
                                        : gp_fail(path, "%s", strerror(ENOMEM));
    if (status == 0)
        warn_damage(source);
    else
        gp_source_close(source);
    return status;
}

void gp_source_warn_changed(const gp_source_t *source)
{
    uint32_t next = 0;
    const char *path;

    while ((path = gp_symbolizer_changed(source->symbolizer, &next)) != NULL)
        gp_warn(path,
                "is another build than the one that was profiled: its functions have no names");
}

void gp_source_close(gp_source_t *source)
{
    gp_symbolizer_destroy(source->symbolizer);
    gp_dataset_free(source->dataset);
    source->symbolizer = NULL;
    source->dataset = NULL;
}
