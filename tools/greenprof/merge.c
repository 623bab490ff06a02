// SPDX-License-Identifier: MIT
#include "merge.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <greenprof/prof.h>

#include "merge_records.h"
#include "message.h"
#include "progress.h"
#include "source.h"

enum {
    EXE_SIZE = 256,
    SAME_BOOT_NS = 1000000000, // clocks of one boot are at most this much apart
};

static int first_header(void *context, const gp_file_header_t *header)
{
    *(gp_file_header_t *)context = *header;
    return -ECANCELED; // that is all we want to know
}

// Returns 0 or a negative errno value, and what is wrong in words.
static int read_capture(const char *path, const gp_reader_handlers_t *handlers, void *context,
                        gp_reader_summary_t *summary, char error[GP_READER_ERROR_SIZE])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        snprintf(error, GP_READER_ERROR_SIZE, "%s", strerror(errno));
        return -errno;
    }
    if (lseek(fd, 0, SEEK_CUR) < 0) {
        snprintf(error, GP_READER_ERROR_SIZE, "is read twice: it cannot be a pipe");
        close(fd);
        return -ESPIPE;
    }
    gp_progress_begin("merging", path, fd);
    int result = gp_reader_read(fd, handlers, context, summary, error);
    gp_progress_begin("merging", path, -1); // the descriptor's number has another use by now
    close(fd);
    return result == -ECANCELED ? 0 : result;
}

static bool is_same_capture(const gp_file_header_t *a, const gp_file_header_t *b)
{
    return a->pid == b->pid && a->start_realtime_ns == b->start_realtime_ns &&
           a->start_monotonic_ns == b->start_monotonic_ns && memcmp(a->session, b->session, sizeof(a->session)) == 0;
}

static int read_headers(gp_merge_t *merge)
{
    static const gp_reader_handlers_t handlers = {.header = first_header};
    char error[GP_READER_ERROR_SIZE] = "";
    gp_reader_summary_t summary;
    for (size_t i = 0; i < merge->count; i++) {
        gp_merge_input_t *input = &merge->inputs[i];
        if (read_capture(input->path, &handlers, &input->header, &summary, error) < 0)
            return gp_fail(input->path, "%s", error);
        if (input->header.elf_machine != merge->inputs[0].header.elf_machine)
            return gp_fail(input->path, "is of another kind of machine than %s", merge->inputs[0].path);
        for (size_t j = 0; j < i; j++)
            if (is_same_capture(&input->header, &merge->inputs[j].header))
                return gp_fail(input->path, "is the same capture as %s", merge->inputs[j].path);
    }
    return 0;
}

static bool is_same_boot(const gp_file_header_t *a, const gp_file_header_t *b)
{
    uint64_t first = a->start_realtime_ns - a->start_monotonic_ns;
    uint64_t second = b->start_realtime_ns - b->start_monotonic_ns;
    uint64_t apart = first > second ? first - second : second - first;
    return a->start_monotonic_ns != 0 && b->start_monotonic_ns != 0 && apart <= SAME_BOOT_NS;
}

// The merged header, and how far each input's times are from it. Within one boot of the machine the
// monotonic clock says so, which no program sets; else the time of day.
static void make_header(gp_merge_t *merge)
{
    static const uint8_t none[16];
    gp_file_header_t *header = &merge->header;
    *header = merge->inputs[0].header;
    header->features = 0;
    for (size_t i = 1; i < merge->count; i++) {
        const gp_file_header_t *other = &merge->inputs[i].header;
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
        header->pid = header->ppid = 0; // several
    }
    for (size_t i = 0; i < merge->count; i++) {
        gp_file_header_t *other = &merge->inputs[i].header;
        bool same = is_same_boot(other, header) && other->start_monotonic_ns >= header->start_monotonic_ns;
        merge->inputs[i].shift_ns = same ? other->start_monotonic_ns - header->start_monotonic_ns
                                         : other->start_realtime_ns - header->start_realtime_ns;
    }
}

static int merge_input(gp_merge_t *merge, gp_merge_input_t *input)
{
    char error[GP_READER_ERROR_SIZE] = "";
    gp_reader_summary_t summary;
    gp_merge_ids_next(&merge->ids);
    merge->input = input;
    int result = read_capture(input->path, &gp_merge_handlers, merge, &summary, error);
    int write_error = atomic_load_explicit(&merge->writer.error, memory_order_relaxed);
    if (write_error != 0)
        return gp_fail(merge->name, "%s", strerror(-write_error));
    if (result < 0)
        return gp_fail(input->path, "%s", error[0] != '\0' ? error : strerror(-result));
    gp_source_warn_damage(input->path, &summary);
    input->coro_first = merge->ids.coro_base + 1;
    input->coro_last = merge->ids.coro_last;
    input->thread_first = merge->ids.thread_base + 1;
    input->thread_last = merge->ids.thread_last;
    return 0;
}

static int write_meta(gp_merge_t *merge, const char *key, const char *value, size_t value_len)
{
    size_t key_len = strlen(key);
    gp_meta_record_t *record = gp_merge_room(merge, GP_CHUNK_META, sizeof(*record) + key_len + value_len);
    if (record == NULL)
        return gp_merge_error(merge);
    record->key_len = (uint16_t)key_len;
    record->value_len = (uint32_t)value_len;
    memcpy(record + 1, key, key_len);
    memcpy((char *)(record + 1) + key_len, value, value_len);
    return 0;
}

// Is a text the same in all inputs, and known?
static bool is_common(const gp_merge_t *merge, size_t which)
{
    const gp_merge_text_t *first = &merge->inputs[0].texts[which];
    for (size_t i = 0; i < merge->count && first->text != NULL; i++) {
        const gp_merge_text_t *other = &merge->inputs[i].texts[which];
        if (other->text == NULL || other->len != first->len || memcmp(other->text, first->text, first->len) != 0)
            return false;
    }
    return first->text != NULL;
}

static const char *exe_of(const gp_merge_input_t *input)
{
    const char *exe = input->texts[GP_MERGE_EXE].text;
    const char *slash = exe != NULL ? strrchr(exe, '/') : NULL;
    return exe == NULL ? "unknown" : slash != NULL ? slash + 1 : exe;
}

// The names of all programs, each once.
static int write_exes(gp_merge_t *merge)
{
    char text[EXE_SIZE];
    size_t len = 0;
    for (size_t i = 0; i < merge->count && len < sizeof(text); i++) {
        const char *exe = exe_of(&merge->inputs[i]);
        bool seen = false;
        for (size_t j = 0; j < i && !seen; j++)
            seen = strcmp(exe_of(&merge->inputs[j]), exe) == 0;
        if (!seen)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", len > 0 ? " + " : "", exe);
    }
    return write_meta(merge, "exe", text, len < sizeof(text) ? len : sizeof(text) - 1);
}

// Which capture what comes from, one text each.
static int write_origins(gp_merge_t *merge)
{
    int result = 0;
    for (size_t i = 0; i < merge->count && result == 0; i++) {
        const gp_merge_input_t *input = &merge->inputs[i];
        char text[PATH_MAX + 160];
        int len = snprintf(text, sizeof(text),
                           "pid %" PRIu32 ", coroutines %" PRIu64 "-%" PRIu64 ", threads %" PRIu32 "-%" PRIu32 ": %s",
                           input->header.pid, input->coro_first, input->coro_last, input->thread_first,
                           input->thread_last, input->path);
        result = write_meta(merge, "merged", text, (size_t)len);
    }
    return result;
}

static int write_metas(gp_merge_t *merge)
{
    char version[32];
    int len = snprintf(version, sizeof(version), "%d.%d", PROF_VERSION_MAJOR, PROF_VERSION_MINOR);
    int result = is_common(merge, GP_MERGE_EXE) ? 0 : write_exes(merge);
    for (size_t i = 0; i < GP_MERGE_TEXTS && result == 0; i++)
        if (is_common(merge, i))
            result =
                write_meta(merge, gp_merge_text_keys[i], merge->inputs[0].texts[i].text, merge->inputs[0].texts[i].len);
    if (result == 0)
        result = write_meta(merge, "greenprof", version, (size_t)len);
    return result != 0 ? result : write_origins(merge);
}

static int write_totals(gp_merge_t *merge)
{
    size_t bytes = GP_COUNTER_COUNT * sizeof(uint64_t);
    gp_counters_record_t *record = gp_merge_room(merge, GP_CHUNK_COUNTERS, sizeof(*record) + bytes);
    if (record == NULL)
        return gp_merge_error(merge);
    uint64_t *values = (uint64_t *)(record + 1);
    record->count = GP_COUNTER_COUNT;
    for (size_t i = 0; i < merge->count; i++) {
        const gp_merge_input_t *input = &merge->inputs[i];
        uint64_t time_ns = input->totals.time_ns + input->shift_ns;
        record->time_ns = time_ns > record->time_ns ? time_ns : record->time_ns;
        record->process_cpu_ns += input->totals.process_cpu_ns;
        record->own_cpu_ns += input->totals.own_cpu_ns;
        for (size_t j = 0; j < GP_COUNTER_COUNT; j++)
            values[j] += input->counters[j];
    }
    return 0;
}

// The merged capture has an end where all have one.
static int write_end(gp_merge_t *merge)
{
    gp_end_record_t end = merge->inputs[0].end;
    end.time_ns = 0;
    for (size_t i = 0; i < merge->count; i++) {
        const gp_merge_input_t *input = &merge->inputs[i];
        uint64_t time_ns = input->end.time_ns + input->shift_ns;
        if (!input->ended)
            return 0;
        end.time_ns = time_ns > end.time_ns ? time_ns : end.time_ns;
        if (input->end.reason == GP_END_FAILED) {
            end.reason = input->end.reason;
            end.error = input->end.error;
        }
    }
    gp_end_record_t *record = gp_merge_room(merge, GP_CHUNK_END, sizeof(*record));
    if (record == NULL)
        return gp_merge_error(merge);
    *record = end;
    return 0;
}

static int merge_all(gp_merge_t *merge)
{
    int status = read_headers(merge);
    if (status != 0)
        return status;
    make_header(merge);
    int result = gp_writer_open(&merge->writer, merge->path, &merge->header);
    if (result != 0)
        return gp_fail(merge->name, "%s", strerror(-result));
    for (size_t i = 0; i < merge->count && status == 0; i++)
        status = merge_input(merge, &merge->inputs[i]);
    if (status != 0)
        return status;
    result = write_metas(merge);
    if (result == 0)
        result = write_totals(merge);
    if (result == 0)
        result = write_end(merge);
    if (result == 0)
        result = gp_writer_flush(&merge->writer);
    return result == 0 ? 0 : gp_fail(merge->name, "%s", strerror(-result));
}

int gp_merge(const char *path, const char *name, char *const *inputs, size_t count)
{
    gp_merge_t merge = {.inputs = calloc(count, sizeof(gp_merge_input_t)),
                        .count = count,
                        .path = path,
                        .name = name,
                        .writer = GP_WRITER_INIT};
    int status = EXIT_FAILED;
    if (merge.inputs == NULL)
        return gp_fail(name, "%s", strerror(ENOMEM));
    for (size_t i = 0; i < count; i++)
        merge.inputs[i].path = inputs[i];
    status = merge_all(&merge);
    gp_progress_end();
    gp_writer_abandon(&merge.writer);
    gp_merge_ids_free(&merge.ids);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < GP_MERGE_TEXTS; j++)
            free(merge.inputs[i].texts[j].text);
    free(merge.inputs);
    free(merge.locs);
    return status;
}
