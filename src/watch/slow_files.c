// SPDX-License-Identifier: MIT
#include "watch/slow_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hex.h"
#include "export/formats.h"
#include "export/output.h"
#include "export/verdict_text.h"
#include "export/write/text.h"
#include "watch/slow_files_private.h"

enum { ENDPOINT_CHARS = 48, STAMP_CHARS = 20, TRACE_SIZE = 33 };

#define JSON_NAME       "request.json"
#define COROUTINES_NAME "coroutines.txt"
#define VERDICT_NAME    "verdict.txt"
#define OPEN            "-open-"
#define SLACK_NS        UINT64_C(1000000000) // records may be on the disk later

typedef gp_slow_view_t view_t;
typedef gp_slow_capture_t capture_t;

static const view_t views[] = {
    {"request.prof", "pstats", GP_BY_NONE, GP_MEASURE_CPU},
    {"wall.prof", "pstats", GP_BY_NONE, GP_MEASURE_WALL},
    {"critical-path.folded", "folded", GP_BY_CRITICAL_PATH, GP_MEASURE_LATENCY},
    {"request.html", "html", GP_BY_NONE, GP_MEASURE_WALL},
};
enum { VIEWS = sizeof(views) / sizeof(views[0]) };

// Besides these, of held threads: see slow_files_held.c.
static const char *const others[] = {JSON_NAME, COROUTINES_NAME, VERDICT_NAME, GP_SLOW_HELD_FILES};
enum { OTHERS = sizeof(others) / sizeof(others[0]) };

// --- names

static void slow_files_put_endpoint(char *text, size_t size, const char *endpoint)
{
    size_t count = 0;
    for (; endpoint[count] != '\0' && count + 1 < size; count++) {
        char c = endpoint[count];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
        text[count] = is_plain ? c : '_';
    }
    text[count] = '\0';
}

void gp_slow_files_name(uint64_t end_ns, uint64_t took_ns, const char *between, const char *words, uint64_t id,
                        char name[GP_SLOW_NAME_SIZE])
{
    char stamp[STAMP_CHARS], endpoint[ENDPOINT_CHARS + 1];
    time_t seconds = (time_t)(end_ns / 1000000000);
    struct tm date;
    gmtime_r(&seconds, &date);
    strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S", &date);
    slow_files_put_endpoint(endpoint, sizeof(endpoint), words);
    snprintf(name, GP_SLOW_NAME_SIZE, "%s.%03uZ-%" PRIu64 "ms%s%s-%016" PRIx64, stamp,
             (unsigned)(end_ns / 1000000 % 1000), took_ns / 1000000, between, endpoint, id);
}

static bool slow_files_is_ours(const char *name)
{
    static const char pattern[] = "dddddddd"
                                  "Tdddddd.dddZ-";
    for (size_t i = 0; i < sizeof(pattern) - 1; i++)
        if (pattern[i] == 'd' ? name[i] < '0' || name[i] > '9' : name[i] != pattern[i])
            return false;
    return true;
}

// --- taking away

static void slow_files_remove_folder(int directory, const char *name)
{
    int folder = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return;
    for (size_t i = 0; i < OTHERS; i++)
        unlinkat(folder, others[i], 0);
    for (size_t i = 0; i < VIEWS; i++)
        unlinkat(folder, views[i].name, 0);
    close(folder);
    unlinkat(directory, name, AT_REMOVEDIR); // fails where others have put files there
}

static int slow_files_ours_only(const struct dirent *entry)
{
    return slow_files_is_ours(entry->d_name);
}

void gp_slow_files_keep(int directory, size_t keep)
{
    struct dirent **entries;
    int count = scandirat(directory, ".", &entries, slow_files_ours_only, alphasort);
    for (int i = 0; i < count; i++) {
        if ((size_t)(count - i) > keep)
            slow_files_remove_folder(directory, entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

bool gp_slow_files_has_open(int directory, uint64_t span)
{
    char suffix[18];
    struct dirent **entries;
    bool found = false;
    snprintf(suffix, sizeof(suffix), "-%016" PRIx64, span);
    int count = scandirat(directory, ".", &entries, slow_files_ours_only, NULL);
    for (int i = 0; i < count; i++) {
        size_t len = strlen(entries[i]->d_name);
        found |= strstr(entries[i]->d_name, "ms" OPEN) != NULL && strcmp(entries[i]->d_name + len - 17, suffix) == 0;
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return found;
}

// --- writing

static uint32_t slow_files_find_request(const capture_t *capture, uint64_t span)
{
    for (size_t i = 0; capture->dataset != NULL && i < capture->requests->count; i++) {
        uint32_t number = capture->requests->items[i].span;
        if (number != GP_INDEX_NONE && capture->dataset->spans.items[number].is.id == span)
            return (uint32_t)i;
    }
    return GP_INDEX_NONE;
}

static void slow_files_put_times(gp_json_t *json, const gp_ledger_t *ledger)
{
    gp_json_key_uint(json, "cpu_ns", gp_ledger_kind_ns(ledger, GP_KIND_CPU));
    gp_json_key_uint(json, "preempted_ns", gp_ledger_kind_ns(ledger, GP_KIND_PREEMPTED));
    gp_json_key_uint(json, "blocked_ns", gp_ledger_kind_ns(ledger, GP_KIND_BLOCKED));
    gp_json_key_uint(json, "ready_ns", gp_ledger_kind_ns(ledger, GP_KIND_READY));
    gp_json_key_uint(json, "parked_ns", gp_ledger_kind_ns(ledger, GP_KIND_PARKED));
    gp_json_key_uint(json, "waiting_ns", gp_ledger_kind_ns(ledger, GP_KIND_WAITING));
    gp_json_key_uint(json, "switches", ledger->switches);
}

static void slow_files_put_trace(const capture_t *capture, const gp_slow_request_t *slow, uint32_t request,
                                 char hex[TRACE_SIZE])
{
    const uint8_t *trace = slow->row->trace;
    if (slow->is_open && request != GP_INDEX_NONE)
        trace = capture->dataset->facts.traces.items[capture->requests->items[request].trace].id;
    gp_hex_write(hex, trace, sizeof(slow->row->trace));
}

static void slow_files_put_request(gp_json_t *json, const capture_t *capture, const gp_slow_request_t *slow,
                                   uint32_t request)
{
    char hex[TRACE_SIZE], span[17];
    const gp_row_process_t *process = capture->batch->process;
    slow_files_put_trace(capture, slow, request, hex);
    snprintf(span, sizeof(span), "%016" PRIx64, slow->row->span);
    gp_json_key_text(json, "endpoint", slow->row->endpoint);
    gp_json_key_text(json, "trace", hex);
    gp_json_key_text(json, "span", span);
    gp_json_key_uint(json, "start_unix_ns", slow->row->start_ns);
    gp_json_key_uint(json, "latency_ns", slow->row->latency_ns);
    gp_json_key_uint(json, slow->is_open ? "stuck_from_ns" : "slow_from_ns", slow->from_ns);
    gp_json_key(json, "open");
    gp_json_bool(json, slow->is_open);
    gp_json_key(json, "failed");
    gp_json_bool(json, slow->row->has_failed);
    gp_json_key_text(json, "service", process->service);
    gp_json_key_text(json, "host", process->host);
    gp_json_key_uint(json, "pid", process->pid);
    gp_json_key_text(json, "capture", capture->batch->capture);
    gp_json_key(json, "in_capture");
    gp_json_bool(json, request != GP_INDEX_NONE);
    if (request == GP_INDEX_NONE)
        return;
    const gp_request_t *item = &capture->requests->items[request];
    gp_json_key(json, "rested"); // then a part of the latency is in none of the times
    gp_json_bool(json,
                 item->span != GP_INDEX_NONE && capture->dataset->spans.items[item->span].is.flags & GP_SPAN_RESTED);
    gp_json_key_uint(json, "coroutines", item->coros);
    slow_files_put_times(json, &capture->requests->items[request].ledger);
}

// NULL and errno.
static FILE *slow_files_create(int folder, const char *name)
{
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    int error = errno;
    if (out == NULL && fd >= 0)
        close(fd);
    errno = error;
    return out;
}

static int slow_files_close(FILE *out)
{
    int error = gp_output_state(out);
    if (fclose(out) != 0 && error == 0)
        error = -errno;
    return error;
}

int gp_slow_files_json(int folder, const char *name, gp_json_t *json)
{
    *json = (gp_json_t){.out = slow_files_create(folder, name)};
    if (json->out == NULL)
        return -errno;
    gp_json_open(json, '{');
    return 0;
}

int gp_slow_files_json_end(gp_json_t *json)
{
    gp_json_close(json, '}');
    fputc('\n', json->out);
    return slow_files_close(json->out);
}

static int slow_files_write_json(int folder, const capture_t *capture, const gp_slow_request_t *slow, uint32_t request)
{
    gp_json_t json;
    int error = gp_slow_files_json(folder, JSON_NAME, &json);
    if (error < 0)
        return error;
    slow_files_put_request(&json, capture, slow, request);
    return gp_slow_files_json_end(&json);
}

int gp_slow_files_view(const capture_t *capture, const view_t *view, const gp_report_options_t *chosen,
                       const char *folder)
{
    const gp_exporter_t *format = gp_exporter_find(view->format);
    gp_report_options_t options = *chosen;
    char path[PATH_MAX];
    options.by = view->by;
    options.measure = view->measure;
    options.wants = format->wants;
    if (snprintf(path, sizeof(path), "%s/%s", folder, view->name) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    gp_report_t *report = gp_report_from_capture(capture->dataset, &options, capture->means->symbolizer);
    if (report == NULL)
        return -errno;
    report->source = capture->batch->capture;
    int result = gp_output_write(format, report, path);
    gp_report_free(report);
    return result;
}

// A request without a trace has none: findings are of traces.
static int slow_files_write_verdict(int folder, const capture_t *capture, const gp_slow_request_t *slow,
                                    uint32_t request)
{
    uint32_t trace = capture->requests->items[request].trace;
    gp_findings_t *findings = trace != 0 ? gp_explain(capture->dataset, capture->means->symbolizer, trace) : NULL;
    FILE *out = findings != NULL ? slow_files_create(folder, VERDICT_NAME) : NULL;
    int error = findings != NULL && out == NULL ? -errno : trace != 0 && findings == NULL ? -errno : 0;
    if (out != NULL) {
        gp_verdict_wrap(out, slow->row->endpoint, 0, SIZE_MAX);
        fprintf(out, ": %s%" PRIu64 " ms\n", slow->is_open ? "open for " : "", slow->row->latency_ns / 1000000);
        gp_verdict_write(out, findings, capture->batch->capture, GP_VERDICT_COLUMNS);
        error = slow_files_close(out);
    }
    gp_findings_free(findings);
    return error;
}

// All that worked for the trace of the request; where it has none, the coroutine on which it began.
static int slow_files_write_views(const capture_t *capture, uint32_t request, const char *folder)
{
    const gp_dataset_t *dataset = capture->dataset;
    const gp_request_t *item = &capture->requests->items[request];
    bool *traces = calloc(dataset->facts.traces.count + 1, sizeof(bool)),
         *coros = calloc(dataset->facts.coros.count + 1, sizeof(bool)),
         *requests = calloc(capture->requests->count + 1, sizeof(bool));
    int result = traces != NULL && coros != NULL && requests != NULL ? 0 : -ENOMEM;
    if (result == 0)
        traces[item->trace] = coros[item->coro] = requests[request] = true;
    const gp_report_options_t options = {
        .selection = {.traces = item->trace != 0 ? traces : NULL, .coros = item->trace == 0 ? coros : NULL},
        .requests = capture->requests,
        .requests_chosen = requests,
    };
    for (size_t i = 0; i < VIEWS && result == 0; i++)
        result = gp_slow_files_view(capture, &views[i], &options, folder);
    free(traces);
    free(coros);
    free(requests);
    return result;
}

static int slow_files_fill_folder(const capture_t *capture, const void *subject, int folder, const char *path)
{
    const gp_slow_request_t *slow = subject;
    uint32_t request = slow_files_find_request(capture, slow->row->span);
    int result = slow_files_write_json(folder, capture, slow, request);
    if (result == 0 && request != GP_INDEX_NONE)
        result = slow_files_write_views(capture, request, path);
    if (result == 0 && request != GP_INDEX_NONE)
        result = slow_files_write_verdict(folder, capture, slow, request);
    if (result == 0 && slow->is_open && capture->means->coroutines != NULL) {
        char trace[TRACE_SIZE];
        slow_files_put_trace(capture, slow, request, trace);
        capture->means->coroutines(capture->batch->process->pid, capture->batch->capture, trace, folder,
                                   COROUTINES_NAME);
    }
    return result;
}

int gp_slow_files_make(const capture_t *capture, const char *name, gp_slow_fill_t *fill, const void *subject)
{
    int directory = capture->means->directory;
    char part[GP_SLOW_NAME_SIZE + 8], whole[PATH_MAX];
    struct stat status;
    snprintf(part, sizeof(part), ".%s.part", name);
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
        return 0; // came before
    if (snprintf(whole, sizeof(whole), "%s/%s", capture->means->path, part) >= (int)sizeof(whole))
        return -ENAMETOOLONG;
    slow_files_remove_folder(directory, part); // of a process that ended meanwhile
    if (mkdirat(directory, part, 0700) < 0)
        return -errno;
    int folder = openat(directory, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int result = folder >= 0 ? fill(capture, subject, folder, whole) : -errno;
    if (folder >= 0)
        close(folder);
    if (result == 0 && renameat(directory, part, directory, name) < 0)
        result = -errno;
    if (result < 0)
        slow_files_remove_folder(directory, part);
    return result;
}

static int slow_files_write_request(const capture_t *capture, const gp_slow_request_t *slow)
{
    const gp_row_request_t *row = slow->row;
    char name[GP_SLOW_NAME_SIZE];
    gp_slow_files_name(row->start_ns + row->latency_ns, row->latency_ns, slow->is_open ? OPEN : "-", row->endpoint,
                       row->span, name);
    return gp_slow_files_make(capture, name, slow_files_fill_folder, slow);
}

int gp_slow_files_recovered(const capture_t *capture, gp_captures_t *captures)
{
    const gp_slow_means_t *means = capture->means;
    char path[64];
    int fd = openat(means->directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), result = fd < 0 ? -errno : 0;
    if (result < 0)
        return result;
    snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
    result = gp_recovery_write(means->recovery, means->fd, path);
    if (result == 0)
        result = gp_captures_add(captures, fd, capture->batch->capture);
    close(fd);
    return result;
}

static int slow_files_add_captures(const capture_t *capture, gp_captures_t *captures)
{
    const gp_slow_parts_t *parts = &capture->parts;
    if (capture->means->recovery == NULL)
        return gp_slow_parts_add(parts, parts->count, captures);
    int result = gp_slow_parts_add(parts, parts->count - 1, captures);
    return result == 0 ? gp_slow_files_recovered(capture, captures) : result;
}

// A capture that has been removed meanwhile has none of the requests.
static int slow_files_load(capture_t *capture, char error[GP_FLEET_ERROR_SIZE])
{
    char text[GP_READER_ERROR_SIZE] = "";
    gp_captures_t captures = {0};
    int result = slow_files_add_captures(capture, &captures);
    bool is_damaged = result == 0 && captures.count > 1 && gp_captures_open(&captures, text) < 0;
    if (result < 0 || is_damaged) {
        gp_captures_free(&captures);
        return result;
    }
    capture->dataset = gp_dataset_load_captures(&captures, GP_KEEP_SPANS | GP_KEEP_HOGS | GP_KEEP_WORKS, NULL, text);
    if (capture->dataset == NULL)
        return errno == ENOMEM ? -ENOMEM : 0;
    capture->requests = gp_requests_create(capture->dataset, true);
    if (capture->requests != NULL)
        return 0;
    result = -errno;
    snprintf(error, GP_FLEET_ERROR_SIZE, "%.180s: %s", capture->batch->capture, strerror(-result));
    return result;
}

static uint64_t slow_files_first_start(const gp_slow_request_t *requests, size_t count)
{
    uint64_t first_ns = UINT64_MAX;
    for (size_t i = 0; i < count; i++)
        first_ns = requests[i].row->start_ns < first_ns ? requests[i].row->start_ns : first_ns;
    return first_ns > SLACK_NS ? first_ns - SLACK_NS : 0;
}

int gp_slow_files_write(const gp_slow_means_t *means, const gp_batch_t *batch, const gp_slow_request_t *requests,
                        size_t count, char error[GP_FLEET_ERROR_SIZE])
{
    capture_t capture = {.means = means, .batch = batch};
    int result = gp_slow_parts_open(&capture.parts, batch, slow_files_first_start(requests, count));
    if (result == 0 && capture.parts.count > 0)
        result = slow_files_load(&capture, error);
    for (size_t i = 0; i < count && result == 0; i++)
        result = slow_files_write_request(&capture, &requests[i]);
    if (result < 0 && error[0] == '\0')
        snprintf(error, GP_FLEET_ERROR_SIZE, "%.180s: %s", means->path, strerror(-result));
    gp_requests_free(capture.requests);
    gp_dataset_free(capture.dataset);
    gp_slow_parts_close(&capture.parts);
    return result;
}
