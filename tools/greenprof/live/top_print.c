// SPDX-License-Identifier: MIT
#include "top_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stream.h"
#include "control.h"
#include "export/write/json_text.h"
#include "export/write/text.h"
#include "model/rested_words.h"
#include "print.h"

enum { NAME_SIZE = GP_CONTROL_NAME_SIZE + 24, FOLD_MIN = 20 };

#define HOG_NS 10000000ull // as GREENPROF_HOG_MS has it

static const char *const states[] = {
    [GP_CONTROL_ROW_RUNNING] = "running", [GP_CONTROL_ROW_READY] = "ready", [GP_CONTROL_ROW_PARKED] = "parked",
    [GP_CONTROL_ROW_WAITING] = "waiting", [GP_CONTROL_ROW_NEW] = "new",     [GP_CONTROL_ROW_IDLE] = "idle",
    [GP_CONTROL_ROW_UNKNOWN] = "unknown",
};
enum { STATES = sizeof(states) / sizeof(states[0]) };

static const struct {
    const char *key, *sentence;
} losses[GP_COUNTER_COUNT] = {
#define ROW(number, id, key, lost, sentence) [number] = {#key, sentence},
    GP_COUNTERS(ROW)
#undef ROW
};

static bool top_print_is_loss(int counter)
{
    enum gp_lost lost = gp_counter_lost((unsigned)counter);
    return lost != GP_LOST_ASIDE && lost != GP_LOST_NO_SAMPLE;
}

static const char *top_print_state_of(const gp_top_row_t *row)
{
    return row->is_blocked ? "blocked" : row->now.state < STATES ? states[row->now.state] : "unknown";
}

static double top_print_share(uint64_t ns, uint64_t of_ns)
{
    return of_ns > 0 ? 100.0 * (double)ns / (double)of_ns : 0;
}

static bool top_print_is_unknown(const gp_top_t *top)
{
    return top->interval_ns > 0 && top->recorded_ns == 0;
}

// A number, or that it is not known.
static void top_print_put(bool is_known, int width, int decimals, double value)
{
    if (is_known)
        printf("%*.*f ", width, decimals, value);
    else
        printf("%*s ", width, "-");
}

// Put a share of the recorded time.
static void top_print_put_share(const gp_top_t *top, uint64_t ns)
{
    top_print_put(!top_print_is_unknown(top), 6, 1, top_print_share(ns, top->recorded_ns));
}

typedef struct sums {
    size_t by_state[STATES], blocked, hogs;
    const gp_top_row_t *longest;
} sums_t;

// A loop that waits for something to do keeps no other from its thread.
static bool top_print_is_hog(const gp_top_row_t *row)
{
    return row->now.longest_ns >= HOG_NS && strcmp(row->now.name, "[hub]") != 0;
}

static void top_print_add_up(const gp_top_t *top, sums_t *sums)
{
    memset(sums, 0, sizeof(*sums));
    for (size_t i = 0; i < top->count; i++) {
        const gp_top_row_t *row = &top->rows[i];
        if (row->now.tid != 0)
            continue;
        if (row->is_blocked)
            sums->blocked++;
        else if (row->now.state < STATES)
            sums->by_state[row->now.state]++;
        if (!top_print_is_hog(row))
            continue;
        sums->hogs++;
        if (sums->longest == NULL || row->now.longest_ns > sums->longest->now.longest_ns)
            sums->longest = row;
    }
}

static const char *top_print_name_of(const gp_top_row_t *row, char text[NAME_SIZE])
{
    if (row->now.tid != 0)
        snprintf(text, NAME_SIZE, "[thread %s]", row->now.name);
    else if (row->now.name[0] != '\0')
        snprintf(text, NAME_SIZE, "%s", row->now.name);
    else
        snprintf(text, NAME_SIZE, "coroutine %" PRIu64, row->now.id);
    return text;
}

static void top_print_put_hogs(const sums_t *sums, FILE *out)
{
    char text[NAME_SIZE];
    fprintf(out, "hogs: %zu coroutines had a slice of 10 ms or more", sums->hogs);
    if (sums->longest != NULL) {
        fprintf(out, "; the longest, %.1f ms: ", (double)sums->longest->now.longest_ns / 1e6);
        gp_text_put_line(out, top_print_name_of(sums->longest, text));
    }
    fprintf(out, "\n");
}

static void top_print_put_losses(const gp_top_t *top, FILE *out)
{
    size_t count = 0;
    fprintf(out, "losses:");
    for (int i = 0; i < GP_COUNTER_COUNT; i++)
        if (top_print_is_loss(i) && top->reply.counters[i] > 0 && count++ < 3)
            fprintf(out, "%s %" PRIu64 " %s", count > 1 ? ";" : "", top->reply.counters[i], losses[i].sentence);
    fprintf(out, "%s\n", count == 0 ? " none" : count > 3 ? "; and more: greenprof info" : "");
}

static void top_print_put_rests(const gp_top_t *top, FILE *out)
{
    char words[GP_RESTED_WORDS_SIZE];
    if (gp_rested_words(top->reply.counters, top->reply.now_ns - top->reply.start_ns, words))
        fprintf(out, "%s: %.0f %% of these %.1f s, of which the columns are\n", words,
                top_print_share(top->recorded_ns, top->interval_ns), (double)top->interval_ns / 1e9);
}

static void top_print_put_head(const gp_top_t *top, const char *subject, gp_top_order_t order, FILE *out)
{
    const gp_control_reply_t *reply = &top->reply;
    sums_t sums;
    top_print_add_up(top, &sums);
    fprintf(out, "%s: %s, %" PRIu64 " samples; %.1f s, %u threads, CPU %.1f %%, greenprof's own %.2f %%; by %s\n",
            subject, gp_control_state_name(reply->state), reply->counters[GP_COUNTER_SAMPLES],
            (double)top->interval_ns / 1e9, reply->threads, top_print_share(top->process_cpu_ns, top->interval_ns),
            top_print_share(top->own_cpu_ns, top->interval_ns), gp_top_orders[order]);
    fprintf(out,
            "%" PRIu64 " coroutines: %zu running, %zu blocked, %zu ready, %zu parked, %zu waiting, %zu new, %zu idle",
            reply->coroutines, sums.by_state[GP_CONTROL_ROW_RUNNING], sums.blocked, sums.by_state[GP_CONTROL_ROW_READY],
            sums.by_state[GP_CONTROL_ROW_PARKED], sums.by_state[GP_CONTROL_ROW_WAITING],
            sums.by_state[GP_CONTROL_ROW_NEW], sums.by_state[GP_CONTROL_ROW_IDLE]);
    if (sums.by_state[GP_CONTROL_ROW_UNKNOWN] > 0)
        fprintf(out, ", %zu unknown: recording rests", sums.by_state[GP_CONTROL_ROW_UNKNOWN]);
    fprintf(out, "\n");
    top_print_put_rests(top, out);
    top_print_put_hogs(&sums, out);
    top_print_put_losses(top, out);
}

// A line of the head, at its spaces as many of the screen as it needs. Returns how many these are.
static size_t top_print_folded(const char *line, size_t len, size_t columns, const char *end)
{
    size_t lines = 0;
    do {
        size_t part = len;
        if (columns > FOLD_MIN && len > columns) {
            part = columns;
            while (part > 0 && line[part] != ' ')
                part--;
            part = part > 0 ? part : columns;
        }
        printf("%.*s%s\n", (int)part, line, end);
        lines++;
        while (part < len && line[part] == ' ')
            part++;
        line += part;
        len -= part;
    } while (len > 0);
    return lines;
}

// Returns how many lines there are.
static size_t top_print_head(const gp_top_t *top, const char *subject, gp_top_order_t order, size_t columns,
                             const char *end)
{
    char *text = NULL;
    size_t size, lines = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return 0;
    top_print_put_head(top, subject, order, out);
    if (gp_stream_close(out))
        for (char *at = text, *line; (line = strsep(&at, "\n")) != NULL && at != NULL;)
            lines += top_print_folded(line, strlen(line), columns, end);
    free(text);
    return lines;
}

typedef struct column {
    const char *head;
    int width;
    unsigned needs; // 0 = always shown; else narrower screens leave those out first that need most
    void (*put)(const gp_top_t *top, const gp_top_row_t *row);
} column_t;

static void top_print_put_id(const gp_top_t *top, const gp_top_row_t *row)
{
    (void)top;
    printf("%10" PRIu64 " ", row->now.id);
}

static void top_print_put_state(const gp_top_t *top, const gp_top_row_t *row)
{
    (void)top;
    printf("%-8s ", top_print_state_of(row));
}

static void top_print_put_for(const gp_top_t *top, const gp_top_row_t *row)
{
    (void)top;
    top_print_put(row->now.state != GP_CONTROL_ROW_UNKNOWN, 9, 3, (double)row->now.state_ns / 1e9);
}

static void top_print_put_cpu(const gp_top_t *top, const gp_top_row_t *row)
{
    top_print_put_share(top, row->change.cpu_ns);
}

static void top_print_put_ready(const gp_top_t *top, const gp_top_row_t *row)
{
    top_print_put_share(top, row->change.ready_ns);
}

static void top_print_put_parked(const gp_top_t *top, const gp_top_row_t *row)
{
    top_print_put_share(top, row->change.parked_ns + row->change.waiting_ns);
}

static void top_print_put_blocked(const gp_top_t *top, const gp_top_row_t *row)
{
    top_print_put_share(top, row->change.blocked_ns);
}

static void top_print_put_switches(const gp_top_t *top, const gp_top_row_t *row)
{
    double seconds = (double)top->recorded_ns / 1e9;
    top_print_put(!top_print_is_unknown(top), 9, 0, seconds > 0 ? (double)row->change.switches / seconds : 0);
}

static void top_print_put_longest(const gp_top_t *top, const gp_top_row_t *row)
{
    (void)top;
    top_print_put(true, 9, 2, (double)row->now.longest_ns / 1e6);
}

static void top_print_put_total(const gp_top_t *top, const gp_top_row_t *row)
{
    (void)top;
    top_print_put(true, 9, 3, (double)row->now.cpu_ns / 1e9);
}

static const column_t columns_all[] = {
    {"ID", 10, 0, top_print_put_id},          {"STATE", -8, 0, top_print_put_state},
    {"FOR s", 9, 3, top_print_put_for},       {"CPU%", 6, 0, top_print_put_cpu},
    {"READY%", 6, 1, top_print_put_ready},    {"PARK%", 6, 1, top_print_put_parked},
    {"BLOCK%", 6, 2, top_print_put_blocked},  {"SWITCH/s", 9, 5, top_print_put_switches},
    {"LONG ms", 9, 1, top_print_put_longest}, {"CPU s", 9, 4, top_print_put_total},
};
enum { COLUMNS = sizeof(columns_all) / sizeof(columns_all[0]), NEEDS_MAX = 5, NAME_WANTED = 18 };

// How many columns of the screen those take that need no more than `most`.
static size_t top_print_width_of(unsigned most)
{
    size_t width = 1;
    for (size_t i = 0; i < COLUMNS; i++)
        if (columns_all[i].needs <= most)
            width += (size_t)abs(columns_all[i].width) + 1;
    return width;
}

// Names are what rows are found by: they have room, whatever else is left out for that.
static unsigned top_print_fitting(size_t columns)
{
    unsigned most = NEEDS_MAX;
    while (columns != 0 && most > 0 && top_print_width_of(most) + NAME_WANTED > columns)
        most--;
    return most;
}

static void top_print_columns_head(unsigned most, const char *end)
{
    printf("%s\n", end);
    for (size_t i = 0; i < COLUMNS; i++)
        if (columns_all[i].needs <= most)
            printf("%*s ", columns_all[i].width, columns_all[i].head);
    printf(" NAME%s\n", end);
}

static void top_print_row(const gp_top_t *top, const gp_top_row_t *row, unsigned most, size_t columns, const char *end)
{
    char text[NAME_SIZE];
    size_t before = top_print_width_of(most);
    for (size_t i = 0; i < COLUMNS; i++)
        if (columns_all[i].needs <= most)
            columns_all[i].put(top, row);
    printf(" ");
    gp_print_tail(top_print_name_of(row, text), columns == 0 ? 0 : columns > before + 1 ? columns - before : 1);
    printf("%s\n", end);
}

void gp_top_print(const gp_top_t *top, const char *subject, gp_top_order_t order, size_t rows, size_t columns,
                  const char *end)
{
    unsigned most = top_print_fitting(columns);
    size_t head = top_print_head(top, subject, order, columns, end) + 2; // an empty line, and the names of the columns
    size_t folded = head > GP_TOP_HEAD_LINES ? head - GP_TOP_HEAD_LINES : 0;
    if (columns != 0 && rows != 0)
        rows = rows > folded ? rows - folded : 1;
    top_print_columns_head(most, end);
    for (size_t i = 0; i < top->count && (rows == 0 || i < rows); i++)
        top_print_row(top, &top->rows[i], most, columns, end);
}

static void top_print_json_ledger(gp_json_t *json, const gp_control_row_t *row)
{
    const struct {
        const char *key;
        uint64_t ns;
    } parts[] = {
        {"cpu_seconds", row->cpu_ns},       {"blocked_seconds", row->blocked_ns}, {"ready_seconds", row->ready_ns},
        {"parked_seconds", row->parked_ns}, {"waiting_seconds", row->waiting_ns},
    };
    gp_json_open(json, '{');
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        gp_json_key(json, parts[i].key);
        gp_json_seconds(json, parts[i].ns);
    }
    gp_json_key_uint(json, "switches", row->switches);
    gp_json_close(json, '}');
}

static void top_print_json_row(gp_json_t *json, const gp_top_row_t *row)
{
    char trace[33];
    gp_json_open(json, '{');
    gp_json_key_uint(json, "id", row->now.id);
    gp_json_key_text(json, "name", row->now.name);
    gp_json_key_text(json, "state", top_print_state_of(row));
    gp_json_key(json, "state_seconds");
    gp_json_seconds(json, row->now.state_ns);
    if (row->now.tid != 0)
        gp_json_key_uint(json, "tid", row->now.tid);
    if (row->now.parent_id != 0)
        gp_json_key_uint(json, "parent", row->now.parent_id);
    if ((row->now.trace[0] | row->now.trace[1]) != 0) {
        const unsigned char *bytes = (const unsigned char *)row->now.trace;
        for (int i = 0; i < 16; i++)
            snprintf(trace + 2 * i, 3, "%02x", bytes[i]);
        gp_json_key_text(json, "trace", trace);
    }
    gp_json_key(json, "longest_seconds");
    gp_json_seconds(json, row->now.longest_ns);
    gp_json_key(json, "interval");
    top_print_json_ledger(json, &row->change);
    gp_json_key(json, "total");
    top_print_json_ledger(json, &row->now);
    gp_json_close(json, '}');
}

static void top_print_json_states(gp_json_t *json, const gp_top_t *top)
{
    sums_t sums;
    top_print_add_up(top, &sums);
    gp_json_key(json, "states");
    gp_json_open(json, '{');
    for (size_t i = 0; i < STATES; i++)
        gp_json_key_uint(json, states[i], sums.by_state[i]);
    gp_json_key_uint(json, "blocked", sums.blocked);
    gp_json_close(json, '}');
    gp_json_key_uint(json, "hogs", sums.hogs);
}

static void top_print_json_losses(gp_json_t *json, const gp_top_t *top)
{
    gp_json_key(json, "losses");
    gp_json_open(json, '{');
    for (int i = 0; i < GP_COUNTER_COUNT; i++)
        if (top_print_is_loss(i) && top->reply.counters[i] > 0)
            gp_json_key_uint(json, losses[i].key, top->reply.counters[i]);
    gp_json_close(json, '}');
}

void gp_top_print_json(const gp_top_t *top, pid_t pid, size_t rows)
{
    gp_json_t json = {.out = stdout};
    gp_json_open(&json, '{');
    gp_json_key_uint(&json, "pid", (uint64_t)pid);
    gp_control_json_state(&json, &top->reply);
    gp_json_key(&json, "interval_seconds");
    gp_json_seconds(&json, top->interval_ns);
    gp_json_key(&json, "recorded_seconds");
    gp_json_seconds(&json, top->recorded_ns);
    gp_json_key(&json, "process_cpu_seconds");
    gp_json_seconds(&json, top->process_cpu_ns);
    gp_json_key(&json, "own_cpu_seconds");
    gp_json_seconds(&json, top->own_cpu_ns);
    gp_json_key_uint(&json, "coroutines", top->reply.coroutines);
    top_print_json_states(&json, top);
    top_print_json_losses(&json, top);
    gp_json_key(&json, "rows");
    gp_json_open(&json, '[');
    for (size_t i = 0; i < top->count && (rows == 0 || i < rows); i++)
        top_print_json_row(&json, &top->rows[i]);
    gp_json_close(&json, ']');
    gp_json_close(&json, '}');
    printf("\n");
}
