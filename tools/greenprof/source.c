// SPDX-License-Identifier: MIT
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "merge.h"
#include "message.h"
#include "progress.h"
#include "report/spill.h"

// A killed process' capture ends up to 0.2 s before it did.
#define PERF_MAP_SLACK_NS 1000000000u

static gp_by_t by_of(const char *by)
{
    if (by != NULL && strcmp(by, "coroutine") == 0)
        return GP_BY_COROUTINE;
    return by != NULL && strcmp(by, "trace") == 0 ? GP_BY_TRACE : GP_BY_NONE;
}

// Which clock to show: what was asked for, else the one that the capture was made for.
static bool is_wall(int fd, const gp_arguments_t *arguments)
{
    gp_file_header_t header;
    if (arguments->clock != NULL)
        return strcmp(arguments->clock, "wall") == 0;
    return pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) && header.clock == PROF_CLOCK_WALL;
}

static int compile(const gp_texts_t *texts, regex_t **compiled, size_t *count)
{
    *compiled = calloc(texts->count + 1, sizeof(**compiled));
    for (size_t i = 0; i < texts->count && *compiled != NULL; i++) {
        if (regcomp(&(*compiled)[i], texts->items[i], REG_EXTENDED | REG_NOSUB) != 0)
            return -ENOMEM; // it has been checked
        ++*count;
    }
    return *compiled != NULL ? 0 : -ENOMEM;
}

static int load(gp_source_t *source, int fd, const gp_arguments_t *arguments)
{
    bool windowed = gp_choice_has_window(&arguments->choice);
    char error[GP_READER_ERROR_SIZE];
    gp_dataset_window_t window;
    int status = windowed ? gp_choice_window(&arguments->choice, fd, source->path, &window) : 0;
    if (status != 0)
        return status;
    source->options.measure = arguments->by != NULL && strcmp(arguments->by, "victim-time") == 0 ? GP_MEASURE_DELAY
                              : is_wall(fd, arguments)                                           ? GP_MEASURE_WALL
                                                                                                 : GP_MEASURE_CPU;
    gp_progress_begin("reading", source->path, fd);
    source->dataset = gp_dataset_load_window(fd, source->options.measure == GP_MEASURE_DELAY ? GP_KEEP_HOGS : 0u,
                                             windowed ? &window : NULL, error);
    gp_progress_end();
    return source->dataset != NULL ? 0 : gp_fail(source->path, "%s", error);
}

void gp_source_warn_damage(const char *path, const gp_reader_summary_t *summary)
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

static const char *temporary_directory(void)
{
    const char *directory = getenv("TMPDIR");
    return directory != NULL && directory[0] != '\0' ? directory : "/tmp";
}

// Several captures are merged into a file without a name.
static int load_merged(gp_source_t *source, const gp_arguments_t *arguments)
{
    int fd = gp_temporary_file();
    char name[64], subject[PATH_MAX + 64];
    if (asprintf(&source->paths, "%s and %d more", arguments->operands[0], arguments->operand_count - 1) < 0)
        source->paths = NULL;
    if (source->paths != NULL)
        source->path = source->paths;
    if (fd < 0)
        return gp_source_fail(source, -fd);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    snprintf(subject, sizeof(subject), "a temporary file in %s (TMPDIR says where)", temporary_directory());
    int status = gp_merge(name, subject, arguments->operands, (size_t)arguments->operand_count);
    if (status == 0)
        status = load(source, fd, arguments);
    close(fd);
    return status;
}

// A capture is read more than once: what a pipe brings is copied to a temporary file.
static int copy_pipe(int from, const char *path)
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
    gp_fail(path, "cannot be copied to a temporary file in %s (TMPDIR says where): %s", temporary_directory(),
            strerror(-result));
    if (to >= 0)
        close(to);
    return -1;
}

static int open_and_load(gp_source_t *source, const gp_arguments_t *arguments)
{
    int fd;
    if (arguments->operand_count > 1)
        return load_merged(source, arguments);
    fd = open(source->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return gp_fail(source->path, "%s", strerror(errno));
    if (lseek(fd, 0, SEEK_CUR) < 0 && errno == ESPIPE) {
        int copy = copy_pipe(fd, source->path);
        close(fd);
        fd = copy;
    }
    int status = fd >= 0 ? load(source, fd, arguments) : EXIT_FAILURE;
    if (fd >= 0)
        close(fd);
    return status;
}

// Just-in-time compiled code has its names in a file: beside the capture, else where it was
// written.
static void use_perf_maps(const gp_source_t *source)
{
    const gp_file_header_t *header = &source->dataset->header;
    const char *slash = strrchr(source->path, '/');
    uint64_t end_ns = header->start_realtime_ns + source->dataset->end_ns + PERF_MAP_SLACK_NS;
    char path[PATH_MAX];
    int len;
    if (source->paths != NULL) // of several processes: an address says nothing
        return;
    len = snprintf(path, sizeof(path), "%.*sperf-%" PRIu32 ".map", slash ? (int)(slash - source->path) + 1 : 0,
                   source->path, header->pid);

    if (len > 0 && len < (int)sizeof(path))
        gp_symbolizer_perf_map(source->symbolizer, path, 0, UINT64_MAX);
    snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", header->pid);
    gp_symbolizer_perf_map(source->symbolizer, path, header->start_realtime_ns, end_ns);
}

static int prepare(gp_source_t *source, const gp_arguments_t *arguments)
{
    gp_stack_filter_t *stacks = &source->options.stacks;
    source->symbolizer = gp_symbolizer_create();
    if (source->symbolizer == NULL || compile(&arguments->focus, &source->focus, &stacks->focus_count) < 0 ||
        compile(&arguments->ignore, &source->ignore, &stacks->ignore_count) < 0)
        return gp_fail(source->path, "%s", strerror(ENOMEM));
    use_perf_maps(source);
    stacks->focus = source->focus;
    stacks->ignore = source->ignore;
    int status = gp_choice_find(&arguments->choice, source->dataset, source->symbolizer, source->path, &source->chosen);
    source->options.selection = source->chosen.selection;
    return status;
}

int gp_source_open(gp_source_t *source, const gp_arguments_t *arguments, unsigned wants)
{
    if (arguments->operand_count == 0)
        return gp_usage_error(arguments->command->name, "%s", arguments->command->missing);
    memset(source, 0, sizeof(*source));
    source->path = arguments->operands[0];
    source->options.wants = wants;
    source->options.by = wants & GP_WANT_TIMELINE ? GP_BY_NONE : by_of(arguments->by); // it has no stacks to group
    source->options.stitch = arguments->stitch;
    int status = gp_choice_check(&arguments->choice, arguments->command->name, "");
    if (status == 0 && arguments->focus.count > GP_FOCUS_MAX)
        status = gp_usage_error(arguments->command->name, "--focus: more than %d", GP_FOCUS_MAX);
    if (status == 0)
        status = open_and_load(source, arguments);
    if (status == 0)
        status = prepare(source, arguments);
    if (status == 0)
        gp_source_warn_damage(source->path, &source->dataset->summary);
    else
        gp_source_close(source);
    return status;
}

gp_report_t *gp_source_report(const gp_source_t *source, const gp_report_options_t *options)
{
    gp_progress_begin("naming the functions of", source->path, -1);
    gp_report_t *report = gp_report_from_capture(source->dataset, options, source->symbolizer);
    gp_progress_end();
    return report;
}

int gp_source_fail(const gp_source_t *source, int error)
{
    if (error == ENOMEM)
        return gp_fail(source->path, "not enough memory");
    return gp_fail(source->path, "%s (temporary files are made in %s, TMPDIR says where)", strerror(error),
                   temporary_directory());
}

gp_report_t *gp_source_report_sums(const gp_source_t *source, gp_group_sums_t *sums)
{
    gp_report_options_t options = source->options;
    bool by_trace = options.by == GP_BY_TRACE;
    size_t count = by_trace ? source->dataset->trace_count : source->dataset->coro_count;
    *sums = (gp_group_sums_t){.items = calloc(count + 1, sizeof(*sums->items)), .by_trace = by_trace};
    options.by = GP_BY_NONE;
    options.sums = sums;
    return sums->items != NULL ? gp_source_report(source, &options) : NULL;
}

void gp_source_warn_changed(const gp_source_t *source)
{
    uint32_t next = 0;
    const char *path;
    while ((path = gp_symbolizer_changed(source->symbolizer, &next)) != NULL)
        gp_warn(path, "is another build than the one that was profiled: its functions have no names");
}

void gp_source_close(gp_source_t *source)
{
    for (size_t i = 0; i < source->options.stacks.focus_count; i++)
        regfree(&source->focus[i]);
    for (size_t i = 0; i < source->options.stacks.ignore_count; i++)
        regfree(&source->ignore[i]);
    free(source->paths);
    free(source->focus);
    free(source->ignore);
    gp_chosen_free(&source->chosen);
    gp_symbolizer_destroy(source->symbolizer);
    gp_dataset_free(source->dataset);
    memset(source, 0, sizeof(*source));
}
