// SPDX-License-Identifier: MIT
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/stream.h"
#include "command_line.h"
#include "message.h"
#include "progress.h"
#include "report/spill.h"
#include "report/timeline.h"
#include "store/store.h"

// A killed process' capture ends up to 0.2 s before it did.
#define PERF_MAP_SLACK_NS 1000000000u

static gp_by_t input_by_of(const char *by)
{
    static const struct {
        const char *name;
        gp_by_t by;
    } all[] = {
        {"coroutine", GP_BY_COROUTINE}, {"trace", GP_BY_TRACE},
        {"request", GP_BY_REQUEST},     {"critical-path", GP_BY_CRITICAL_PATH},
        {"service", GP_BY_COROUTINE}, // a store's: see ask_store()
        {"host", GP_BY_COROUTINE},      {"version", GP_BY_COROUTINE},
        {"endpoint", GP_BY_COROUTINE},  {"pool", GP_BY_POOL},
    };
    for (size_t i = 0; by != NULL && i < sizeof(all) / sizeof(all[0]); i++)
        if (strcmp(by, all[i].name) == 0)
            return all[i].by;
    return GP_BY_NONE;
}

// Rows that are not of samples: no sample chooses them.
static bool input_is_whole(const char *by)
{
    return by != NULL && (strcmp(by, "lock") == 0 || strcmp(by, "thread") == 0);
}

static int input_compile(const gp_texts_t *texts, regex_t **compiled, size_t *count)
{
    *compiled = calloc(texts->count + 1, sizeof(**compiled));
    for (size_t i = 0; i < texts->count && *compiled != NULL; i++) {
        if (regcomp(&(*compiled)[i], texts->items[i], REG_EXTENDED | REG_NOSUB) != 0)
            return -ENOMEM; // checked before
        ++*count;
    }
    return *compiled != NULL ? 0 : -ENOMEM;
}

void gp_input_warn_damage(const char *path, const gp_reader_summary_t *summary)
{
    if (summary->chunks_damaged > 0 || summary->chunks_missing > 0 || summary->records_bad > 0)
        gp_warn(path,
                "damaged: %" PRIu64 " bad places, %" PRIu64 " chunks missing, %" PRIu64 " bad records, %" PRIu64
                " bytes skipped; the rest is shown",
                summary->chunks_damaged, summary->chunks_missing, summary->records_bad, summary->bytes_skipped);
    if (summary->header_damaged)
        gp_warn(path, "the file header is damaged; its copy is used");
    if (summary->truncated)
        gp_warn(path, "cut off: the last chunk is not whole; what is before it is shown");
}

static const char *input_temporary_directory(void)
{
    const char *directory = getenv("TMPDIR");
    return directory != NULL && directory[0] != '\0' ? directory : "/tmp";
}

// A capture is read more than once: what a pipe brings is copied to a temporary file.
static int input_copy_pipe(int from, const char *path)
{
    int to = gp_temporary_file(), result = to < 0 ? to : 0;
    char buffer[65536];
    ssize_t got = 1;
    gp_progress_begin("reading", path, from);
    while (result == 0 && got != 0) {
        got = read(from, buffer, sizeof(buffer));
        if (got > 0)
            result = gp_temporary_write(to, buffer, (size_t)got);
        else if (got < 0 && errno != EINTR)
            result = -errno;
    }
    gp_progress_end();
    if (result == 0 && lseek(to, 0, SEEK_SET) == 0)
        return to;
    gp_fail(path, "cannot be copied to a temporary file in %s (TMPDIR says where): %s", input_temporary_directory(),
            strerror(-result));
    if (to >= 0)
        close(to);
    return -1;
}

static int input_add_capture(gp_captures_t *captures, const gp_arguments_t *arguments, int number, unsigned wants)
{
    bool is_store = gp_store_is_url(arguments->operands[number]);
    int fd =
        is_store ? gp_store_open(arguments, number, wants) : open(arguments->operands[number], O_RDONLY | O_CLOEXEC);
    const char *path = arguments->operands[number];
    if (fd < 0)
        return is_store ? EXIT_FAILED : gp_fail(path, "%s", strerror(errno));
    if (lseek(fd, 0, SEEK_CUR) < 0 && errno == ESPIPE) {
        int copy = input_copy_pipe(fd, path);
        close(fd);
        fd = copy;
    }
    if (fd < 0)
        return EXIT_FAILURE;
    int result = gp_captures_add(captures, fd, path);
    close(fd);
    return result == 0 ? 0 : gp_fail(path, "%s", strerror(-result));
}

static const char *progress_what;

static void input_show_input(const gp_capture_input_t *input)
{
    gp_progress_begin(progress_what, input->path, input->fd);
}

int gp_input_open_captures(gp_captures_t *captures, const gp_arguments_t *arguments, const char *what, unsigned wants)
{
    char error[GP_READER_ERROR_SIZE] = "";
    int status = gp_store_check(arguments);
    for (int i = 0; i < arguments->operand_count && status == 0; i++)
        status = input_add_capture(captures, arguments, i, wants);
    progress_what = what;
    captures->on_input = input_show_input;
    if (status == 0 && captures->count > 1 && gp_captures_open(captures, error) < 0)
        status = gp_fail(captures->inputs[captures->at].path, "%s", error);
    return status;
}

static int input_load(gp_input_t *source, gp_captures_t *captures, const gp_arguments_t *arguments)
{
    bool windowed = gp_choice_has_window(&arguments->choice);
    char error[GP_READER_ERROR_SIZE];
    gp_dataset_window_t window;
    int status = windowed ? gp_choice_window(&arguments->choice, captures, source->path, &window) : 0;
    if (status != 0)
        return status;
    bool is_delay = arguments->by != NULL && strcmp(arguments->by, "victim-time") == 0;
    bool is_page = source->options.wants & GP_WANT_PAGE;
    bool is_explained = arguments->command == &gp_commands[GP_COMMAND_EXPLAIN] ||
                        (arguments->command == &gp_commands[GP_COMMAND_REPORT] && source->options.by == GP_BY_NONE);
    bool spans = is_page || is_explained || arguments->command == &gp_commands[GP_COMMAND_TRACE];
    bool is_plain = source->options.by == GP_BY_NONE && !(source->options.wants & ~(unsigned)GP_WANT_ADDRESSES);
    unsigned keep = (spans ? GP_KEEP_SPANS : GP_KEEP_REQUESTS) |
                    (is_delay || is_page || is_explained || arguments->html ? GP_KEEP_HOGS : 0u) |
                    (is_plain ? GP_KEEP_PLAIN : 0u) |
                    (is_page || source->options.by == GP_BY_CRITICAL_PATH ? GP_KEEP_WORKS : 0u);
    source->dataset = gp_dataset_load_captures(captures, keep, windowed ? &window : NULL, error);
    gp_progress_end();
    size_t at = captures->at;
    *captures = (gp_captures_t){0}; // the dataset's
    if (source->dataset == NULL)
        return gp_fail(arguments->operands[at], "%s", error);
    // The clock is the one asked for, else the one that the (first) capture was made for.
    bool is_wall = arguments->clock != NULL ? strcmp(arguments->clock, "wall") == 0
                                            : source->dataset->facts.header.clock == PROF_CLOCK_WALL;
    bool is_path = source->options.by == GP_BY_CRITICAL_PATH;
    if (source->has_stored_paths) { // how long each lasted, whatever state it was in
        is_wall = true;
        source->options.by = GP_BY_COROUTINE;
        is_path = false;
    }
    source->options.measure = is_delay  ? GP_MEASURE_DELAY
                              : is_path ? GP_MEASURE_LATENCY
                              : is_wall ? GP_MEASURE_WALL
                                        : GP_MEASURE_CPU;
    if (is_page)
        source->options.by = GP_BY_NONE; // the page has all; the chosen view is shown first
    return 0;
}

static int input_open_and_load(gp_input_t *source, const gp_arguments_t *arguments)
{
    gp_captures_t captures = {0};
    if (arguments->operand_count > 1 &&
        asprintf(&source->paths, "%s and %d more", arguments->operands[0], arguments->operand_count - 1) < 0)
        source->paths = NULL;
    if (source->paths != NULL)
        source->path = source->paths;
    int status = gp_input_open_captures(&captures, arguments, "reading", source->options.wants);
    if (status == 0)
        status = input_load(source, &captures, arguments);
    gp_captures_free(&captures);
    return status;
}

// Just-in-time compiled code has its names in a file: beside the capture, else where the process wrote it.
static void input_use_perf_maps(const gp_input_t *source)
{
    const gp_file_header_t *header = &source->dataset->facts.header;
    const char *slash = strrchr(source->path, '/');
    uint64_t end_ns = header->start_realtime_ns + source->dataset->facts.end_ns + PERF_MAP_SLACK_NS;
    char path[PATH_MAX];
    int len;
    if (source->paths != NULL) // of several processes: an address says nothing
        return;
    len = snprintf(path, sizeof(path), "%.*sperf-%" PRIu32 ".map", slash ? (int)(slash - source->path) + 1 : 0,
                   source->path, header->pid);

    if (len > 0 && len < (int)sizeof(path))
        gp_symbolizer_perf_map(source->symbolizer, path, 0, UINT64_MAX);
    gp_symbolizer_process_perf_map(source->symbolizer, header->pid, header->start_realtime_ns, end_ns);
}

static int input_prepare(gp_input_t *source, const gp_arguments_t *arguments)
{
    gp_stack_filter_t *stacks = &source->options.stacks;
    source->symbolizer = gp_symbolizer_create();
    if (source->symbolizer == NULL || input_compile(&arguments->focus, &source->focus, &stacks->focus_count) < 0 ||
        input_compile(&arguments->ignore, &source->ignore, &stacks->ignore_count) < 0)
        return gp_fail(source->path, "%s", strerror(ENOMEM));
    input_use_perf_maps(source);
    stacks->focus = source->focus;
    stacks->ignore = source->ignore;
    int status = gp_choice_find(&arguments->choice, source->dataset, source->symbolizer, source->path, &source->chosen);
    source->options.selection = source->chosen.selection;
    return status;
}

static bool input_is_chosen(const gp_selection_t *selection, const gp_request_t *request)
{
    const gp_dataset_share_t share = {.coro = request->coro, .trace = request->trace};
    return gp_selection_has_share(selection, &share);
}

// Requests are chosen by their trace, and by the coroutine that they began on.
static int input_find_requests(gp_input_t *source)
{
    gp_by_t by = source->options.by;
    size_t count = 0;
    if (by != GP_BY_TRACE && by != GP_BY_REQUEST && by != GP_BY_CRITICAL_PATH)
        return 0;
    source->requests = gp_requests_create(source->dataset, by == GP_BY_REQUEST);
    if (source->requests == NULL)
        return gp_input_fail(source, errno);
    source->requests_chosen = calloc(source->requests->count + 1, sizeof(bool));
    if (source->requests_chosen == NULL)
        return gp_input_fail(source, ENOMEM);
    for (size_t i = 0; i < source->requests->count; i++)
        count += source->requests_chosen[i] = input_is_chosen(&source->options.selection, &source->requests->items[i]);
    source->options.requests = source->requests;
    source->options.requests_chosen = source->requests_chosen;
    source->options.path_sums = &source->path_sums;
    if (count > 0 || by == GP_BY_TRACE)
        return 0;
    if (source->requests->count > 0 || source->requests->left_out > 0)
        return gp_fail(source->path, "no whole request is left by %s", source->choice);
    return gp_fail(source->path, "has no requests: %s say what is one",
                   source->dataset->facts.functions.count > 0 // of a language: Python's
                       ? "greenprof.span() and greenprof.wsgi.Tracing"
                       : "prof_span_begin() and prof_trace_set() (<greenprof/trace.h>)");
}

static void input_put_choice(FILE *out, const gp_option_t *option, const char *value)
{
    fprintf(out, "%s--%s %s", ftell(out) > 0 ? " " : "", option->name, value);
}

// The chosen part, for messages. Returns NULL when memory is short.
static char *input_choice_text(const gp_arguments_t *arguments)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (const gp_option_t *option = gp_options; option->name != NULL && out != NULL; option++) {
        const void *field = (const char *)arguments + option->offset;
        if (!option->chooses || !gp_option_applies(option, arguments->command) || strcmp(option->name, "clock") == 0)
            continue;
        const char *one = option->kind == GP_OPTION_TEXT ? *(const char *const *)field : NULL;
        const gp_texts_t *texts = option->kind == GP_OPTION_TEXT ? NULL : field;
        if (one != NULL)
            input_put_choice(out, option, one);
        for (size_t i = 0; texts != NULL && i < texts->count; i++)
            input_put_choice(out, option, texts->items[i]);
    }
    if (out != NULL && !gp_stream_close(out)) {
        free(text);
        text = NULL;
    }
    return text;
}

int gp_input_open(gp_input_t *source, const gp_arguments_t *arguments, unsigned wants)
{
    if (arguments->operand_count == 0)
        return gp_usage_error(arguments->command->name, "%s", arguments->command->missing);
    memset(source, 0, sizeof(*source));
    source->path = arguments->operands[0];
    source->options.wants = wants;
    source->options.by =
        wants & GP_WANT_TIMELINE ? GP_BY_NONE : input_by_of(arguments->by); // a timeline has no stacks to group
    source->options.stitch = arguments->stitch;
    bool is_root =
        arguments->by != NULL && (strcmp(arguments->by, "coroutine") == 0 || strcmp(arguments->by, "trace") == 0);
    source->root_by = is_root ? arguments->by : NULL;
    source->with_source = arguments->source;
    source->choice = input_choice_text(arguments);
    int status = source->choice != NULL ? gp_choice_check(&arguments->choice, arguments->command->name, "")
                                        : gp_fail("command line", "%s", strerror(ENOMEM));
    gp_by_t by = input_by_of(arguments->by);
    bool is_path = by == GP_BY_CRITICAL_PATH;
    source->has_stored_paths = gp_store_has_paths(arguments);
    if (status == 0 && source->has_stored_paths && wants & GP_WANT_PAGE)
        status =
            gp_usage_error(arguments->command->name, "--by critical-path: a page is made of captures; take folded, "
                                                     "flamegraph, pprof, ...");
    if (status == 0 && is_path && wants & GP_WANT_TIMELINE)
        status = gp_usage_error(arguments->command->name, "--by critical-path: this format has a timeline, which no "
                                                          "stacks stand for; take folded, flamegraph, pprof, ...");
    if (status == 0 && (is_path || by == GP_BY_REQUEST) && arguments->choice.threads.count > 0)
        status = gp_usage_error(arguments->command->name, "--by %s: --thread chooses no requests", arguments->by);
    if (status == 0 && by == GP_BY_REQUEST && arguments->focus.count + arguments->ignore.count > 0)
        status = gp_usage_error(arguments->command->name, "--by request: --focus and --ignore choose no requests");
    if (status == 0 && by == GP_BY_POOL && source->choice[0] != '\0')
        status = gp_usage_error(arguments->command->name, "--by pool: %s chooses no pools", source->choice);
    if (status == 0 && input_is_whole(arguments->by) &&
        arguments->focus.count + arguments->ignore.count + arguments->choice.traces.count +
                arguments->choice.coroutines.count + arguments->choice.threads.count >
            0)
        status = gp_usage_error(arguments->command->name, "--by %s: %s chooses no %ss", arguments->by, source->choice,
                                arguments->by);
    if (status == 0 && arguments->focus.count > GP_FOCUS_MAX)
        status = gp_usage_error(arguments->command->name, "--focus: more than %d", GP_FOCUS_MAX);
    if (status == 0)
        status = input_open_and_load(source, arguments);
    if (status == 0)
        status = input_prepare(source, arguments);
    if (status == 0)
        status = input_find_requests(source);
    for (size_t i = 0; status == 0 && i < source->dataset->captures.count; i++)
        gp_input_warn_damage(arguments->operands[i], &source->dataset->captures.inputs[i].summary);
    if (status != 0)
        gp_input_close(source);
    return status;
}

uint64_t gp_input_hosts(const gp_input_t *source)
{
    const gp_facts_meta_t *hosts =
        source->options.measure == GP_MEASURE_CPU ? gp_facts_meta(&source->dataset->facts, "hosts") : NULL;
    return hosts != NULL ? strtoull(hosts->value, NULL, 10) : 0;
}

gp_report_t *gp_input_report(const gp_input_t *source, const gp_report_options_t *options)
{
    gp_progress_begin("naming the functions of", source->path, -1);
    gp_report_t *report = gp_report_from_capture(source->dataset, options, source->symbolizer);
    gp_progress_end();
    if (report != NULL && source->has_stored_paths)
        report->measure = GP_MEASURE_LATENCY;
    if (report != NULL) {
        report->source = source->path;
        report->command = gp_command_line();
        report->root_by = source->root_by;
        report->with_source = source->with_source;
    }
    return report;
}

static int input_stop_at_one(void *context, const gp_activity_t *activity, const gp_activity_t *before, size_t number)
{
    (void)context, (void)activity, (void)before, (void)number;
    return -ECANCELED;
}

static bool input_has_activity(const gp_report_t *report)
{
    return report->timeline != NULL &&
           gp_timeline_each_activity(report->timeline, input_stop_at_one, NULL) == -ECANCELED;
}

// Does the ledger know the share of the chosen coroutines and traces, samples or none?
static bool input_has_share(const gp_input_t *source)
{
    const gp_dataset_t *dataset = source->dataset;
    const gp_report_options_t *options = &source->options;
    if (dataset->windowed || options->selection.threads != NULL || options->stacks.focus_count > 0 ||
        options->stacks.ignore_count > 0)
        return false;
    for (size_t i = 0; i < dataset->shares.count; i++)
        if (gp_selection_has_share(&options->selection, &dataset->shares.items[i]))
            return true;
    return false;
}

int gp_input_check_part(const gp_input_t *source, const gp_report_t *report)
{
    if (report->is_unknown || source->options.by == GP_BY_REQUEST)
        return 0; // requests are there, or the capture was refused
    bool by_stacks = source->options.stacks.focus_count > 0 || source->options.stacks.ignore_count > 0;
    bool has_time = input_has_share(source) || (input_has_activity(report) && !by_stacks); // activities have no stacks
    if (source->choice[0] == '\0' || !gp_report_is_empty(report) || has_time)
        return 0;
    return gp_fail(source->path, "nothing is left by %s", source->choice);
}

const char gp_input_unknown_ready[] =
    "nothing says when a coroutine became ready; a scheduler does by prof_coro_ready() "
    "(<greenprof/coro.h>)";

int gp_input_fail(const gp_input_t *source, int error)
{
    if (error == ENOMEM)
        return gp_fail(source->path, "not enough memory");
    return gp_fail(source->path, "%s (temporary files are made in %s, TMPDIR says where)", strerror(error),
                   input_temporary_directory());
}

gp_report_t *gp_input_report_sums(const gp_input_t *source, gp_group_sums_t *sums)
{
    gp_report_options_t options = source->options;
    bool by_trace = options.by == GP_BY_TRACE;
    size_t count = by_trace ? source->dataset->facts.traces.count : source->dataset->facts.coros.count;
    *sums = (gp_group_sums_t){.items = calloc(count + 1, sizeof(*sums->items)), .by_trace = by_trace};
    options.by = GP_BY_NONE; // and no critical paths, which have no sums
    options.sums = sums;
    return sums->items != NULL ? gp_input_report(source, &options) : NULL;
}

void gp_input_warn_changed(const gp_input_t *source)
{
    uint32_t next = 0, unread = 0;
    const char *first = NULL;
    gp_missing_symbols_t module;
    int error = 0;
    while (gp_symbolizer_nameless(source->symbolizer, &next, &module)) {
        if (module.why == GP_NAMELESS_CHANGED)
            gp_warn(module.path, "is another build than the one that was profiled: its functions have no names");
        else if (module.why == GP_NAMELESS_UNSURE)
            gp_warn(module.path, "may be another build than the one that was profiled, of which no build-id is known: "
                                 "its functions have no names");
        else if (module.why == GP_NAMELESS_SPLIT)
            gp_warn(module.path,
                    "%zu of its .dwo files %s missing, or of another build, %s: what is inlined there is "
                    "not shown",
                    module.count, module.count == 1 ? "is" : "are", module.example);
        else if (module.why == GP_NAMELESS_FOLDED)
            gp_warn(module.path,
                    "%s and %s are the same code, folded by the linker or an alias: it has the first name%s",
                    module.example, module.other, module.count == 1 ? "" : "; so have others");
        else if (unread++ == 0) {
            first = module.path;
            error = module.why;
        }
    }
    if (unread == 1)
        gp_warn(first, "%s: its functions have no names", strerror(error));
    else if (unread > 1)
        gp_warn(first, "%s: its functions have no names, nor have those of %" PRIu32 " more files", strerror(error),
                unread - 1);
}

void gp_input_close(gp_input_t *source)
{
    for (size_t i = 0; i < source->options.stacks.focus_count; i++)
        regfree(&source->focus[i]);
    for (size_t i = 0; i < source->options.stacks.ignore_count; i++)
        regfree(&source->ignore[i]);
    free(source->paths);
    free(source->choice);
    free(source->focus);
    free(source->ignore);
    gp_chosen_free(&source->chosen);
    gp_requests_free(source->requests);
    free(source->requests_chosen);
    gp_symbolizer_destroy(source->symbolizer);
    gp_dataset_free(source->dataset);
    memset(source, 0, sizeof(*source));
}
