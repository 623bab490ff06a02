// SPDX-License-Identifier: MIT
#include "run_last_word.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/read/reader.h"

typedef struct facts {
    pid_t pid;
    uint64_t samples;
    gp_losses_t lost;
    char not_known[512]; // of runtimes
    bool has_counters;
    bool has_end;
    gp_end_record_t end;
} facts_t;

static int run_last_word_take_header(void *context, const gp_file_header_t *header)
{
    const facts_t *facts = context;
    return header->pid == (uint32_t)facts->pid ? 0 : -ESRCH;
}

static int run_last_word_take_meta(void *context, const char *key, size_t key_len, const char *value, size_t value_len)
{
    facts_t *facts = context;
    size_t used = strlen(facts->not_known);
    if (key_len == strlen(GP_NOT_KNOWN_KEY) && memcmp(key, GP_NOT_KNOWN_KEY, key_len) == 0)
        snprintf(facts->not_known + used, sizeof(facts->not_known) - used, "%.*s, ", (int)value_len, value);
    for (char *at = facts->not_known + used; *at != '\0'; at++)
        *at = (unsigned char)*at < ' ' || *at == '\x7f' ? '?' : *at; // the file may be anyone's by now
    return 0;
}

static int run_last_word_take_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    facts_t *facts = context;
    for (size_t i = 0; i < count; i++)
        facts->samples += samples[i].kind == GP_KIND_CPU;
    return 0;
}

static int run_last_word_take_counters(void *context, const gp_counters_record_t *record, const uint64_t *values)
{
    facts_t *facts = context; // counters are cumulative
    facts->has_counters = true;
    facts->lost = gp_losses_of(values, record->count);
    return 0;
}

static int run_last_word_take_end(void *context, const gp_end_record_t *end)
{
    facts_t *facts = context;
    facts->has_end = true;
    facts->end = *end;
    return 0;
}

static bool run_last_word_read_facts(const char *file, facts_t *facts)
{
    static const gp_reader_handlers_t handlers = {.header = run_last_word_take_header,
                                                  .meta = run_last_word_take_meta,
                                                  .samples = run_last_word_take_samples,
                                                  .counters = run_last_word_take_counters,
                                                  .end = run_last_word_take_end};
    gp_reader_summary_t summary;
    char error[GP_READER_ERROR_SIZE];
    struct stat status;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool is_read = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                   gp_reader_read(fd, &handlers, facts, &summary, error) == 0;
    if (fd >= 0)
        close(fd);
    return is_read;
}

static const char *run_last_word_killed_by(const char *not_known, int number, char *text, size_t size)
{
    const char *name = sigabbrev_np(number);
    int length = name != NULL ? snprintf(text, size, "%skilled by SIG%s", not_known, name)
                              : snprintf(text, size, "%skilled by signal %d", not_known, number);
    snprintf(text + length, size - (size_t)length, ": what came after the last write is missing");
    return text;
}

// Does the end stand where it belongs? A program that ended in order is not kept waiting for a look at all of the file.
static bool run_last_word_has_end_at_end(const char *file)
{
    struct {
        gp_chunk_header_t chunk;
        gp_end_record_t end;
    } last = {0};
    struct stat status;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool is_read = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                   status.st_size >= (off_t)sizeof(last) &&
                   pread(fd, &last, sizeof(last), status.st_size - (off_t)sizeof(last)) == (ssize_t)sizeof(last);
    if (fd >= 0)
        close(fd);
    return is_read && last.chunk.magic == GP_CHUNK_MAGIC && last.chunk.type == GP_CHUNK_END;
}

static size_t run_last_word_of_killed(char *line, const char *name, const facts_t *facts, int number)
{
    char note[sizeof(facts->not_known) + 128];
    if (facts->has_end && facts->end.reason == GP_END_FULL)
        return gp_end_summary_failed(line, name, "not all of it", GP_CLOSING_FULL);
    if (facts->has_end && facts->end.reason == GP_END_FAILED)
        return gp_end_summary_failed(line, name, "not all of it", strerror((int)facts->end.error));
    if (facts->has_end && facts->end.reason != GP_END_EXEC && facts->end.reason != GP_END_TURNED)
        return 0; // killed at its end
    if (!facts->has_counters)
        return gp_end_summary_failed(line, name, "nothing", "the program was killed before the first write");
    return gp_end_summary(line, name, facts->samples, &facts->lost,
                          run_last_word_killed_by(facts->not_known, number, note, sizeof(note)));
}

size_t gp_run_last_word(char line[GP_CLOSING_LINE_SIZE], const char *file, const char *name, pid_t pid, int number)
{
    facts_t facts = {.pid = pid};
    char note[sizeof(facts.not_known) + 128];
    if ((number <= 0 && run_last_word_has_end_at_end(file)) || !run_last_word_read_facts(file, &facts))
        return 0;
    if (number > 0)
        return run_last_word_of_killed(line, name, &facts, number);
    if (facts.has_end || !facts.has_counters) // all was said
        return 0;
    snprintf(note, sizeof(note), "%s%s", facts.not_known,
             number == 0 ? "the program left by a system call of its own: what came after the last write is missing"
                         : "the end of it is missing");
    return gp_end_summary(line, name, facts.samples, &facts.lost, note);
}
