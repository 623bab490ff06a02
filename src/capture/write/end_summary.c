// SPDX-License-Identifier: MIT
#include "capture/write/end_summary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "capture/ring_file.h"

// As a shell takes it back: in quotes where it is not plain.
static const char *end_summary_quoted(const char *name, char *text, size_t size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-=:,@%";
    size_t length = 0;
    if (name[strspn(name, plain)] == '\0')
        return name;
    text[length++] = '\'';
    for (; *name != '\0' && length + 6 < size; name++)
        if (*name == '\'')
            length += (size_t)snprintf(text + length, size - length, "'\\''");
        else
            text[length++] = *name;
    text[length++] = '\'';
    text[length] = '\0';
    return text;
}

static size_t end_summary_cut(int length)
{
    if (length < 0)
        return 0;
    return length < GP_CLOSING_LINE_SIZE ? (size_t)length : GP_CLOSING_LINE_SIZE - 1;
}

// CPU time of threads that no signal can reach; where there is no sample at all, all CPU time. CPU time since each
// thread's last sample is not lost.
static uint64_t end_summary_losses_unsampled(const uint64_t *values, uint64_t count)
{
    enum { WORTH_NS = 10000000 };
    uint64_t known[GP_COUNTER_COUNT] = {0}; // a capture of an older version has fewer
    memcpy(known, values, (count < GP_COUNTER_COUNT ? count : GP_COUNTER_COUNT) * sizeof(*values));
    uint64_t ns = known[GP_COUNTER_UNSAMPLED_NS];
    if (known[GP_COUNTER_SAMPLES] == 0)
        ns += known[GP_COUNTER_PENDING_NS];
    return ns >= WORTH_NS ? ns : 0;
}

gp_losses_t gp_losses_of(const uint64_t *values, uint64_t count)
{
    return (gp_losses_t){
        .samples = gp_counters_lost(values, count, GP_LOST_SIGNAL) + gp_counters_lost(values, count, GP_LOST_SAMPLES),
        .unsampled_ns = end_summary_losses_unsampled(values, count),
        .spans = gp_counters_lost(values, count, GP_LOST_SPANS),
        .coroutines = gp_counters_lost(values, count, GP_LOST_COROUTINES),
        .others = gp_counters_lost(values, count, GP_LOST_OTHERS),
    };
}

static void end_summary_put_losses(char *text, size_t size, const gp_losses_t *losses)
{
    const struct {
        uint64_t count;
        const char *what;
    } more[] = {
        {losses->spans, "spans lost"},
        {losses->coroutines, "times of coroutines lost"},
        {losses->others, "other records lost: see greenprof info"},
    };
    bool any = losses->spans != 0 || losses->coroutines != 0 || losses->others != 0;
    size_t len = losses->samples != 0 ? (size_t)snprintf(text, size, "%" PRIu64 " lost", losses->samples)
                                      : (size_t)snprintf(text, size, any ? "no sample lost" : "none lost");
    char seconds[GP_NUMBER_SIZE];
    if (losses->unsampled_ns != 0)
        len += (size_t)snprintf(text + len, size - len, ", but %s s of CPU time not sampled",
                                gp_number_write(seconds, losses->unsampled_ns / 1000000, 3));
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
        if (more[i].count != 0)
            len += (size_t)snprintf(text + len, size - len, ", %" PRIu64 " %s", more[i].count, more[i].what);
}

size_t gp_end_summary(char line[GP_CLOSING_LINE_SIZE], const char *name, uint64_t samples, const gp_losses_t *lost,
                      const char *note)
{
    char quotes[GP_CLOSING_NAME_SIZE * 2], losses[256];
    end_summary_put_losses(losses, sizeof(losses), lost);
    return end_summary_cut(snprintf(line, GP_CLOSING_LINE_SIZE,
                                    "greenprof: %s: %" PRIu64 " samples, %s%s%s; next: greenprof explain %s\n", name,
                                    samples, losses, note != NULL ? "; " : "", note != NULL ? note : "",
                                    end_summary_quoted(name, quotes, sizeof(quotes))));
}

size_t gp_end_summary_failed(char line[GP_CLOSING_LINE_SIZE], const char *name, const char *what, const char *why)
{
    return end_summary_cut(
        snprintf(line, GP_CLOSING_LINE_SIZE, "greenprof: %s: %s is recorded: %s\n", name, what, why));
}

size_t gp_end_summary_no_rings(char line[GP_CLOSING_LINE_SIZE], const char *name, int error)
{
    return end_summary_cut(snprintf(line, GP_CLOSING_LINE_SIZE,
                                    "greenprof: %s" GP_RING_FILE_SUFFIX
                                    ": %s: a kill may take more than --flush says\n",
                                    name, error == EEXIST ? "is there, and no such file" : strerror(error)));
}
