// SPDX-License-Identifier: MIT
#include "capture/several/captures.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <greenprof/prof.h>

#include "base/memory.h"
#include "capture/read/reader_records.h"
#include "capture/several/captures_private.h"

enum {
    EXE_SIZE = 256,
    SAME_BOOT_NS = 1000000000, // clocks of one boot are at most this much apart
    SEEN_ENOUGH = -ECANCELED,
};

int gp_captures_add(gp_captures_t *captures, int fd, const char *path)
{
    if (gp_grow(&captures->inputs, &captures->capacity, captures->count, sizeof(*captures->inputs)) < 0)
        return -ENOMEM;
    gp_capture_input_t *input = &captures->inputs[captures->count];
    *input = (gp_capture_input_t){.path = path, .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0), .start = lseek(fd, 0, SEEK_CUR)};
    if (input->fd < 0)
        return -errno;
    captures->count++;
    return 0;
}

static int captures_fail(int result, char error[GP_READER_ERROR_SIZE])
{
    snprintf(error, GP_READER_ERROR_SIZE, "%s", strerror(-result));
    return result;
}

static int captures_rewind_input(const gp_capture_input_t *input, char error[GP_READER_ERROR_SIZE])
{
    if (input->start < 0)
        return captures_fail(-ESPIPE, error);
    return lseek(input->fd, input->start, SEEK_SET) < 0 ? captures_fail(-errno, error) : 0;
}

// --- headers

static int captures_first_header(void *context, const gp_file_header_t *header)
{
    *(gp_file_header_t *)context = *header;
    return SEEN_ENOUGH;
}

static bool captures_is_same_capture(const gp_file_header_t *a, const gp_file_header_t *b)
{
    return a->pid == b->pid && a->start_realtime_ns == b->start_realtime_ns &&
           a->start_monotonic_ns == b->start_monotonic_ns && memcmp(a->session, b->session, sizeof(a->session)) == 0;
}

static int captures_read_header(gp_captures_t *captures, char error[GP_READER_ERROR_SIZE])
{
    static const gp_reader_handlers_t handlers = {.header = captures_first_header};
    const gp_capture_input_t *inputs = captures->inputs;
    gp_capture_input_t *input = &captures->inputs[captures->at];
    gp_reader_summary_t summary;
    int result = gp_reader_read(input->fd, &handlers, &input->header, &summary, error);
    if (result == SEEN_ENOUGH)
        result = captures_rewind_input(input, error);
    if (result != 0)
        return result;
    if (input->header.elf_machine != inputs->header.elf_machine) {
        snprintf(error, GP_READER_ERROR_SIZE, "is of another kind of machine than %.100s", inputs->path);
        return -EINVAL;
    }
    for (size_t i = 0; i < captures->at; i++)
        if (captures_is_same_capture(&input->header, &inputs[i].header)) {
            snprintf(error, GP_READER_ERROR_SIZE, "is the same capture as %.100s", inputs[i].path);
            return -EINVAL;
        }
    return 0;
}

static bool captures_is_same_boot(const gp_file_header_t *a, const gp_file_header_t *b)
{
    uint64_t first = a->start_realtime_ns - a->start_monotonic_ns;
    uint64_t second = b->start_realtime_ns - b->start_monotonic_ns;
    uint64_t apart = first > second ? first - second : second - first;
    return a->start_monotonic_ns != 0 && b->start_monotonic_ns != 0 && apart <= SAME_BOOT_NS;
}

// The header of all, and how far the times of each are from it.
static void captures_make_header(gp_captures_t *captures)
{
    static const uint8_t none[16];
    gp_file_header_t *header = &captures->header;
    *header = captures->inputs[0].header;
    header->features = 0;
    if (captures->recordings > 1)
        header->part = UINT32_MAX; // nothing goes on behind it
    for (size_t i = 1; i < captures->count; i++) {
        const gp_file_header_t *other = &captures->inputs[i].header;
        if (other->start_realtime_ns < header->start_realtime_ns) {
            header->start_realtime_ns = other->start_realtime_ns;
            header->start_monotonic_ns = other->start_monotonic_ns;
        }
        if (other->frequency_hz > header->frequency_hz)
            header->frequency_hz = other->frequency_hz;
        if (other->engine != header->engine)
            header->engine = GP_ENGINE_NONE;
        if (memcmp(other->session, header->session, sizeof(none)) != 0)
            memcpy(header->session, none, sizeof(none));
        bool is_same = other->pid == header->pid && memcmp(header->session, none, sizeof(none)) != 0;
        if (!is_same) // else parts of a recording, or images of one process
            header->pid = header->ppid = 0;
    }
    for (size_t i = 0; i < captures->count; i++) {
        const gp_file_header_t *other = &captures->inputs[i].header;
        bool same = captures_is_same_boot(other, header) && other->start_monotonic_ns >= header->start_monotonic_ns;
        captures->inputs[i].shift_ns = same ? other->start_monotonic_ns - header->start_monotonic_ns
                                            : other->start_realtime_ns - header->start_realtime_ns;
    }
}

int gp_captures_open(gp_captures_t *captures, char error[GP_READER_ERROR_SIZE])
{
    int result = 0;
    for (captures->at = 0; captures->at < captures->count && result == 0; captures->at++) {
        result = captures_read_header(captures, error);
        if (result != 0)
            return result;
    }
    gp_captures_find_recordings(captures);
    captures_make_header(captures);
    return 0;
}

// --- what is known when all are read

int gp_captures_pass_meta(const gp_captures_pass_t *pass, const char *key, const char *value, size_t value_len)
{
    size_t key_len = strlen(key), bytes = sizeof(gp_meta_record_t) + key_len + value_len;
    gp_meta_record_t *record = gp_captures_room(pass->captures, bytes);
    if (record == NULL)
        return -ENOMEM;
    *record = (gp_meta_record_t){.key_len = (uint16_t)key_len, .value_len = (uint32_t)value_len};
    memcpy(record + 1, key, key_len);
    memcpy((char *)(record + 1) + key_len, value, value_len);
    return pass->sink(pass->context, GP_CHUNK_META, record, bytes);
}

// Is a text the same in all captures, and known?
static bool captures_is_common(const gp_captures_t *captures, size_t which)
{
    const gp_capture_text_t *first = &captures->inputs[0].texts[which];
    for (size_t i = 0; i < captures->count && first->text != NULL; i++) {
        const gp_capture_text_t *other = &captures->inputs[i].texts[which];
        if (other->text == NULL || other->len != first->len || memcmp(other->text, first->text, first->len) != 0)
            return false;
    }
    return first->text != NULL;
}

const char *gp_captures_exe_of(const gp_capture_input_t *input)
{
    const char *exe = input->texts[GP_TEXT_EXE].text;
    const char *slash = exe != NULL ? strrchr(exe, '/') : NULL;
    return exe == NULL ? "unknown" : slash != NULL ? slash + 1 : exe;
}

// The names of all programs, each once.
static int captures_pass_exes(const gp_captures_pass_t *pass)
{
    const gp_capture_input_t *inputs = pass->captures->inputs;
    char text[EXE_SIZE];
    size_t len = 0;
    for (size_t i = 0; i < pass->captures->count && len < sizeof(text); i++) {
        bool seen = false;
        for (size_t j = 0; j < i && !seen; j++)
            seen = strcmp(gp_captures_exe_of(&inputs[j]), gp_captures_exe_of(&inputs[i])) == 0;
        if (!seen)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", len > 0 ? " + " : "",
                                    gp_captures_exe_of(&inputs[i]));
    }
    return gp_captures_pass_meta(pass, "exe", text, len < sizeof(text) ? len : sizeof(text) - 1);
}

static int captures_pass_origin(const gp_captures_pass_t *pass, const gp_capture_input_t *input)
{
    const gp_capture_ids_t *ids = &input->ids;
    char text[PATH_MAX + 160];
    int len = snprintf(text, sizeof(text),
                       "pid %" PRIu32 ", coroutines %" PRIu64 "-%" PRIu64 ", threads %" PRIu64 "-%" PRIu64 ": %.*s",
                       input->header.pid, ids->first[GP_COUNTED_COROS] + 1, ids->last[GP_COUNTED_COROS],
                       ids->first[GP_COUNTED_THREADS] + 1, ids->last[GP_COUNTED_THREADS], PATH_MAX, input->path);
    return gp_captures_pass_meta(pass, "merged", text, (size_t)len);
}

static int captures_pass_metas(const gp_captures_pass_t *pass)
{
    const gp_captures_t *captures = pass->captures;
    char version[32];
    int len =
        snprintf(version, sizeof(version), "%d.%d.%d", PROF_VERSION_MAJOR, PROF_VERSION_MINOR, PROF_VERSION_PATCH);
    int result = captures_is_common(captures, GP_TEXT_EXE) ? 0 : captures_pass_exes(pass);
    for (size_t i = 0; i < GP_TEXTS && result == 0; i++)
        if (captures_is_common(captures, i))
            result = gp_captures_pass_meta(pass, gp_captures_text_keys[i], captures->inputs[0].texts[i].text,
                                           captures->inputs[0].texts[i].len);
    if (result == 0)
        result = gp_captures_pass_meta(pass, "greenprof", version, (size_t)len);
    for (size_t i = 0; i < captures->count && result == 0; i++)
        result = captures_pass_origin(pass, &captures->inputs[i]);
    for (size_t i = 0; i < captures->count && result == 0; i++)
        result = gp_captures_pass_processes(pass, &captures->inputs[i]);
    return result;
}

static int captures_pass_totals(const gp_captures_pass_t *pass)
{
    struct {
        gp_counters_record_t record;
        uint64_t values[GP_COUNTER_COUNT];
    } sum = {.record = {.count = GP_COUNTER_COUNT}};
    for (size_t i = 0; i < pass->captures->count; i++) {
        const gp_capture_input_t *input = &pass->captures->inputs[i];
        uint64_t time_ns = input->totals.time_ns + input->shift_ns;
        sum.record.time_ns = time_ns > sum.record.time_ns ? time_ns : sum.record.time_ns;
        sum.record.process_cpu_ns += input->totals.process_cpu_ns;
        sum.record.own_cpu_ns += input->totals.own_cpu_ns;
        for (size_t j = 0; j < GP_COUNTER_COUNT; j++)
            sum.values[j] += input->counters[j];
    }
    return pass->sink(pass->context, GP_CHUNK_COUNTERS, &sum, sizeof(sum));
}

static int captures_pass_end(const gp_captures_pass_t *pass)
{
    gp_end_record_t end = {.reason = pass->captures->inputs[0].end.reason};
    for (size_t i = 0; i < pass->captures->count; i++) {
        const gp_capture_input_t *input = &pass->captures->inputs[i];
        uint64_t time_ns = input->end.time_ns + input->shift_ns;
        if (!input->ended)
            return 0;
        end.time_ns = time_ns > end.time_ns ? time_ns : end.time_ns;
        if (end.reason == GP_END_TURNED)
            end.reason = input->end.reason;
        if (input->end.reason == GP_END_FAILED || (input->end.reason == GP_END_FULL && end.reason != GP_END_FAILED)) {
            end.reason = input->end.reason;
            end.error = input->end.error;
        }
    }
    return pass->sink(pass->context, GP_CHUNK_END, &end, sizeof(end));
}

// --- reading

static int captures_pass_input(gp_captures_pass_t *pass, char error[GP_READER_ERROR_SIZE])
{
    gp_captures_t *captures = pass->captures;
    gp_capture_input_t *input = pass->input = &captures->inputs[captures->at];
    memcpy(input->ids.first, captures->ids.last, sizeof(captures->ids.last));
    memcpy(input->ids.last, captures->ids.last, sizeof(captures->ids.last));
    if (gp_captures_goes_on(captures, input))
        input->ids.first[GP_COUNTED_COROS] = input[-1].ids.first[GP_COUNTED_COROS];
    if (captures->on_input != NULL)
        captures->on_input(input);
    int result = gp_reader_read(input->fd, &gp_captures_handlers, pass, &input->summary, error);
    memcpy(captures->ids.last, input->ids.last, sizeof(captures->ids.last));
    return result;
}

int gp_captures_pass(gp_captures_t *captures, gp_captures_sink_t *sink, void *context, char error[GP_READER_ERROR_SIZE])
{
    gp_captures_pass_t pass = {.captures = captures, .sink = sink, .context = context};
    int result;
    for (captures->at = 0; captures->at < captures->count; captures->at++)
        if ((result = captures_pass_input(&pass, error)) != 0)
            return result;
    captures->at = 0; // for messages
    gp_captures_ids_free(&captures->ids);
    result = captures_pass_metas(&pass);
    if (result == 0)
        result = captures_pass_totals(&pass);
    if (result == 0)
        result = captures_pass_end(&pass);
    return result == 0 ? 0 : captures_fail(result, error);
}

static int captures_to_takers(void *context, enum gp_chunk_type type, const void *records, size_t bytes)
{
    bool known;
    return gp_reader_records((uint16_t)type, records, bytes, context, &known);
}

static int captures_read_one(gp_captures_t *captures, const gp_taker_t *takers, char error[GP_READER_ERROR_SIZE])
{
    gp_capture_input_t *input = &captures->inputs[0];
    const gp_reader_handlers_t keeping = {.kept = &input->kept};
    const gp_taker_t keeper = {&keeping, NULL, takers};
    if (captures->on_input != NULL)
        captures->on_input(input);
    if (captures->keep_words != 0)
        gp_reader_kept_begin(&input->kept, captures->keep_words, captures->keep_bytes);
    return gp_reader_take(input->fd, captures->keep_words != 0 ? &keeper : takers, &input->summary, error);
}

int gp_captures_read(gp_captures_t *captures, const gp_taker_t *takers, char error[GP_READER_ERROR_SIZE])
{
    int result = 0;
    if (captures->count == 1)
        return captures_read_one(captures, takers, error);
    for (const gp_taker_t *taker = takers; taker != NULL && result == 0; taker = taker->next)
        result = taker->handlers->header != NULL ? taker->handlers->header(taker->context, &captures->header) : 0;
    return result == 0 ? gp_captures_pass(captures, captures_to_takers, (void *)(uintptr_t)takers, error)
                       : captures_fail(result, error);
}

typedef struct again { // the second reading of one capture
    const gp_taker_t *takers;
    uint64_t samples, activities; // that are left
} again_t;

static int captures_again_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    again_t *again = context;
    if (again->samples == 0)
        return SEEN_ENOUGH;
    if (count > again->samples)
        count = (size_t)again->samples;
    again->samples -= count;
    return gp_takers_give_samples(again->takers, samples, count);
}

static int captures_again_activity(void *context, const gp_activity_record_t *activity)
{
    again_t *again = context;
    if (again->activities == 0)
        return 0;
    again->activities--;
    return gp_takers_give_activity(again->takers, activity);
}

// Read a capture again, what is kept of it from memory.
static int captures_read_kept(gp_capture_input_t *input, const gp_taker_t *takers, char error[GP_READER_ERROR_SIZE])
{
    gp_reader_kept_t *kept = &input->kept;
    gp_reader_summary_t summary;
    gp_reader_part_t rest = {0};
    int result = 0;
    if (input->start == 0 && takers->handlers->activity == NULL &&
        gp_reader_kept_has(kept, takers->handlers->sample_words)) {
        rest.from = kept->to;
        result = gp_reader_kept_take(kept, takers);
    }
    gp_reader_kept_free(kept);
    if (result != 0 || rest.from == UINT64_MAX)
        return result;
    if (rest.from > 0)
        return gp_reader_take_part(input->fd, &rest, takers, &summary, error);
    result = captures_rewind_input(input, error);
    return result == 0 ? gp_reader_take(input->fd, takers, &summary, error) : result;
}

static int captures_read_again(gp_captures_t *captures, const gp_taker_t *takers, char error[GP_READER_ERROR_SIZE])
{
    gp_capture_input_t *input = &captures->inputs[captures->at];
    gp_captures_pass_t pass = {captures, input, captures_to_takers, (void *)(uintptr_t)takers};
    const gp_taker_t all_numbers = {&gp_captures_handlers, &pass, NULL};
    bool several = captures->count > 1;
    uint64_t samples = input->samples, activities = input->activities;
    again_t again = {several ? &all_numbers : takers, samples, activities};
    const gp_reader_handlers_t wrapped = {
        .samples = gp_takers_want_samples(takers) ? captures_again_samples : NULL,
        .sample_words = several ? 0 : gp_takers_sample_words(takers),
        .activity = gp_takers_want_activities(takers) ? captures_again_activity : NULL,
    };
    const gp_taker_t taker = {&wrapped, &again, NULL};
    int result = captures_read_kept(input, &taker, error);
    input->samples = samples; // they were counted again
    input->activities = activities;
    return result == SEEN_ENOUGH ? 0 : result;
}

int gp_captures_read_again(gp_captures_t *captures, const gp_taker_t *takers, char error[GP_READER_ERROR_SIZE])
{
    int result = 0;
    for (captures->at = 0; captures->at < captures->count && result == 0; captures->at++)
        result = captures_read_again(captures, takers, error);
    captures->at = 0;
    return result;
}

static void captures_free_input(gp_capture_input_t *input)
{
    gp_capture_ids_free(&input->ids);
    gp_reader_kept_free(&input->kept);
    for (size_t i = 0; i < GP_TEXTS; i++)
        free(input->texts[i].text);
    gp_captures_free_processes(input);
    close(input->fd);
}

void gp_captures_free(gp_captures_t *captures)
{
    for (size_t i = 0; i < captures->count; i++)
        captures_free_input(&captures->inputs[i]);
    free(captures->inputs);
    free(captures->records);
    gp_captures_ids_free(&captures->ids);
    *captures = (gp_captures_t){0};
}
