// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/secret.h"
#include "export/write/text.h"
#include "traces/write.h"

const char *gp_tree_field(const gp_tree_span_t *span, const char *key)
{
    for (uint32_t i = 0; i < span->record.field_count; i++)
        if (strcmp(span->record.fields[i].key, key) == 0)
            return span->record.fields[i].value;
    return "";
}

// Remark how much of a span's time is not recorded.
static void write_words_put_rested(const gp_tree_span_t *span, void (*put)(void *context, const char *remark),
                                   void *context)
{
    const prof_span_record_t *record = &span->record;
    uint64_t known = record->cpu_ns + record->ready_ns + record->parked_ns + record->blocked_ns + record->preempted_ns +
                     record->waiting_ns;
    uint64_t lasted = gp_tree_span_ns(span), unknown = lasted > known ? lasted - known : 0;
    char ms[32], remark[96];
    if (span->record.flags & GP_SPAN_NO_TIMES) {
        put(context, "not recorded, by budget");
        return;
    }
    gp_text_decimal(ms, unknown, 1000000, 3);
    snprintf(remark, sizeof(remark), "%s ms of it not recorded, by budget", ms);
    put(context, remark);
}

void gp_tree_each_remark(const gp_tree_span_t *span, void (*put)(void *context, const char *remark), void *context)
{
    static const struct {
        uint32_t flag;
        const char *text;
    } remarks[] = {{GP_SPAN_FAILED, "failed"},       {GP_SPAN_OPEN, "open"},
                   {GP_SPAN_REPAIRED, "repaired"},   {GP_SPAN_IMPLICIT, "implicit"},
                   {GP_TREE_LOST, "parent missing"}, {GP_TREE_CIRCLE, "its own ancestor"},
                   {GP_TREE_TWICE, "id used twice"}, {GP_TREE_BACKWARDS, "ended before it began"}};
    for (size_t i = 0; i < sizeof(remarks) / sizeof(remarks[0]); i++)
        if (span->record.flags & remarks[i].flag)
            put(context, remarks[i].text);
    if (span->record.flags & GP_SPAN_RESTED)
        write_words_put_rested(span, put, context);
}

bool gp_tree_clock_words(const gp_tree_process_t *process, char *text, size_t size)
{
    char offset[32], within[32];
    bool minus = process->offset_ns < 0;
    gp_text_decimal(offset, (uint64_t)(minus ? -process->offset_ns : process->offset_ns), 1000000, 3);
    gp_text_decimal(within, process->within_ns, 1000000, 3);
    text[0] = '\0';
    if (process->clock == GP_CLOCK_MOVED)
        snprintf(text, size, "moved by %c%s ms, +-%s ms, by %" PRIu32 " pair%s of call and dispatch", minus ? '-' : '+',
                 offset, within, process->pairs, process->pairs == 1 ? "" : "s");
    else if (process->clock == GP_CLOCK_CONTRADICTS)
        snprintf(text, size, "moved by %c%s ms; no offset puts each of %" PRIu32 " dispatches within its call",
                 minus ? '-' : '+', offset, process->pairs);
    return text[0] != '\0';
}

const char *gp_tree_moment(int64_t ns, char text[GP_TREE_MOMENT_SIZE])
{
    time_t seconds = (time_t)(ns / 1000000000);
    int milliseconds = (int)(ns / 1000000 % 1000);
    struct tm tm;
    char date[32] = "?";
    if (milliseconds < 0) {
        milliseconds += 1000;
        seconds--;
    }
    if (gmtime_r(&seconds, &tm) != NULL)
        strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm);
    snprintf(text, GP_TREE_MOMENT_SIZE, "%s.%03d UTC", date, milliseconds);
    return text;
}

static void write_words_put_quoted(FILE *out, const char *text)
{
    if (text[0] != '\0' &&
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=") == strlen(text)) {
        fputs(text, out);
        return;
    }
    putc('\'', out);
    for (; *text != '\0'; text++)
        if (*text == '\'')
            fputs("'\\''", out);
        else
            putc(*text, out);
    putc('\'', out);
}

// A password stays where it is.
static void write_words_put_source(FILE *out, const char *source)
{
    char *shown = gp_secret_masked(source, "PASSWORD");
    write_words_put_quoted(out, shown != NULL ? shown : "...");
    free(shown);
}

void gp_tree_put_command(FILE *out, const char *id, const char *const *sources, size_t source_count)
{
    fprintf(out, "greenprof trace show %s", id);
    for (size_t i = 0; i < source_count; i++) {
        putc(' ', out);
        write_words_put_source(out, sources[i]);
    }
}

const char *gp_tree_trace_name(const gp_tree_trace_t *trace, char text[GP_ID128_SIZE])
{
    char hex[GP_ID128_SIZE];
    if (trace->text != NULL)
        return trace->text;
    gp_id128_of_trace(trace->id, hex);
    snprintf(text, GP_ID128_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
    return text;
}
