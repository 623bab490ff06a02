// SPDX-License-Identifier: MIT
#include "top_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "control.h"
#include "export/json_text.h"
#include "model/rested_words.h"
#include "print.h"

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
#define ROW(number, id, key, is_drop, sentence) [number] = {#key, sentence},
    GP_COUNTERS(ROW)
#undef ROW
};

// Signals that are no loss: of an idle thread, or another timer's.
static bool is_loss(int counter)
{
    return losses[counter].sentence != NULL && counter != GP_COUNTER_DROP_IDLE && counter != GP_COUNTER_DROP_FOREIGN;
}

static const char *state_of(const gp_top_row_t *row)
{
    return row->is_blocked ? "blocked" : row->now.state < STATES ? states[row->now.state] : "unknown";
}

static double share(uint64_t ns, uint64_t of_ns)
{
    return of_ns > 0 ? 100.0 * (double)ns / (double)of_ns : 0;
}

static bool is_unknown(const gp_top_t *top)
{
    return top->interval_ns > 0 && top->recorded_ns == 0;
}

// A number, or that it is not known.
static void put(bool is_known, int width, int decimals, double value)
{
    if (is_known)
        printf("%*.*f ", width, decimals, value);
    else
        printf("%*s ", width, "-");
}

// Of the time that is recorded.
static void put_share(const gp_top_t *top, uint64_t ns)
{
    put(!is_unknown(top), 6, 1, share(ns, top->recorded_ns));
}

typedef struct sums {
    size_t by_state[STATES], blocked, hogs;
    const gp_top_row_t *longest;
} sums_t;

// A loop that waits for something to do keeps no other from its thread.
static bool is_hog(const gp_top_row_t *row)
{
    return row->now.longest_ns >= HOG_NS && strcmp(row->now.name, "[hub]") != 0;
}

static void add_up(const gp_top_t *top, sums_t *sums)
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
        if (!is_hog(row))
            continue;
        sums->hogs++;
        if (sums->longest == NULL || row->now.longest_ns > sums->longest->now.longest_ns)
            sums->longest = row;
    }
}

static void print_name(const gp_top_row_t *row, size_t most)
{
    char text[GP_CONTROL_NAME_SIZE + 24];
    if (row->now.tid != 0)
        snprintf(text, sizeof(text), "[thread %s]", row->now.name);
    else if (row->now.name[0] != '\0')
        snprintf(text, sizeof(text), "%s", row->now.name);
    else
        snprintf(text, sizeof(text), "coroutine %" PRIu64, row->now.id);
    if (most != 0 && most < sizeof(text))
        text[most] = '\0';
    gp_print_text(text);
}

static void print_hogs(const sums_t *sums, const char *end)
{
    printf("hogs: %zu coroutines had a slice of 10 ms or more", sums->hogs);
    if (sums->longest != NULL) {
        printf("; the longest, %.1f ms: ", (double)sums->longest->now.longest_ns / 1e6);
        print_name(sums->longest, 0);
    }
    printf("%s\nlosses:", end);
}

static void print_losses(const gp_top_t *top, const char *end)
{
    size_t count = 0;
    for (int i = 0; i < GP_COUNTER_COUNT; i++)
        if (is_loss(i) && top->reply.counters[i] > 0 && count++ < 3)
            printf("%s %" PRIu64 " %s", count > 1 ? ";" : "", top->reply.counters[i], losses[i].sentence);
    printf("%s%s\n", count == 0 ? " none" : count > 3 ? "; and more: greenprof info" : "", end);
}

static void print_rests(const gp_top_t *top, const char *end)
{
    char words[GP_RESTED_WORDS_SIZE];
    if (gp_rested_words(top->reply.counters, top->reply.now_ns - top->reply.start_ns, words))
        printf("%s: %.0f %% of these %.1f s, of which the columns are%s\n", words,
               share(top->recorded_ns, top->interval_ns), (double)top->interval_ns / 1e9, end);
}

static void print_head(const gp_top_t *top, const char *subject, gp_top_order_t order, const char *end)
{
    const gp_control_reply_t *reply = &top->reply;
    sums_t sums;
    add_up(top, &sums);
    printf("%s: %s, %" PRIu64 " samples; %.1f s, %u threads, CPU %.1f %%, greenprof's own %.2f %%; by %s%s\n", subject,
           gp_control_state_name(reply->state), reply->counters[GP_COUNTER_SAMPLES], (double)top->interval_ns / 1e9,
           reply->threads, share(top->process_cpu_ns, top->interval_ns), share(top->own_cpu_ns, top->interval_ns),
           gp_top_orders[order], end);
    printf("%" PRIu64 " coroutines: %zu running, %zu blocked, %zu ready, %zu parked, %zu waiting, %zu new, %zu idle",
           reply->coroutines, sums.by_state[GP_CONTROL_ROW_RUNNING], sums.blocked, sums.by_state[GP_CONTROL_ROW_READY],
           sums.by_state[GP_CONTROL_ROW_PARKED], sums.by_state[GP_CONTROL_ROW_WAITING],
           sums.by_state[GP_CONTROL_ROW_NEW], sums.by_state[GP_CONTROL_ROW_IDLE]);
    if (sums.by_state[GP_CONTROL_ROW_UNKNOWN] > 0)
        printf(", %zu unknown: recording rests", sums.by_state[GP_CONTROL_ROW_UNKNOWN]);
    printf("%s\n", end);
    print_rests(top, end);
    print_hogs(&sums, end);
    print_losses(top, end);
    printf("%s\n%10s %-8s %9s %6s %6s %6s %6s %9s %9s %9s  %s%s\n", end, "ID", "STATE", "FOR s", "CPU%", "READY%",
           "PARK%", "BLOCK%", "SWITCH/s", "LONG ms", "CPU s", "NAME", end);
}

enum { NAME_COLUMN = 89 };

static void print_row(const gp_top_t *top, const gp_top_row_t *row, size_t columns, const char *end)
{
    const gp_control_row_t *change = &row->change;
    double seconds = (double)top->recorded_ns / 1e9;
    printf("%10" PRIu64 " %-8s ", row->now.id, state_of(row));
    put(row->now.state != GP_CONTROL_ROW_UNKNOWN, 9, 3, (double)row->now.state_ns / 1e9);
    put_share(top, change->cpu_ns);
    put_share(top, change->ready_ns);
    put_share(top, change->parked_ns + change->waiting_ns);
    put_share(top, change->blocked_ns);
    put(!is_unknown(top), 9, 0, seconds > 0 ? (double)change->switches / seconds : 0);
    printf("%9.2f %9.3f  ", (double)row->now.longest_ns / 1e6, (double)row->now.cpu_ns / 1e9);
    print_name(row, columns == 0 ? 0 : columns > NAME_COLUMN + 1 ? columns - NAME_COLUMN : 1);
    printf("%s\n", end);
}

void gp_top_print(const gp_top_t *top, const char *subject, gp_top_order_t order, size_t rows, size_t columns,
                  const char *end)
{
    print_head(top, subject, order, end);
    for (size_t i = 0; i < top->count && (rows == 0 || i < rows); i++)
        print_row(top, &top->rows[i], columns, end);
}

static void json_ledger(gp_json_t *json, const gp_control_row_t *row)
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

static void json_row(gp_json_t *json, const gp_top_row_t *row)
{
    char trace[33];
    gp_json_open(json, '{');
    gp_json_key_uint(json, "id", row->now.id);
    gp_json_key_text(json, "name", row->now.name);
    gp_json_key_text(json, "state", state_of(row));
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
    json_ledger(json, &row->change);
    gp_json_key(json, "total");
    json_ledger(json, &row->now);
    gp_json_close(json, '}');
}

static void json_states(gp_json_t *json, const gp_top_t *top)
{
    sums_t sums;
    add_up(top, &sums);
    gp_json_key(json, "states");
    gp_json_open(json, '{');
    for (size_t i = 0; i < STATES; i++)
        gp_json_key_uint(json, states[i], sums.by_state[i]);
    gp_json_key_uint(json, "blocked", sums.blocked);
    gp_json_close(json, '}');
    gp_json_key_uint(json, "hogs", sums.hogs);
}

static void json_losses(gp_json_t *json, const gp_top_t *top)
{
    gp_json_key(json, "losses");
    gp_json_open(json, '{');
    for (int i = 0; i < GP_COUNTER_COUNT; i++)
        if (is_loss(i) && top->reply.counters[i] > 0)
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
    json_states(&json, top);
    json_losses(&json, top);
    gp_json_key(&json, "rows");
    gp_json_open(&json, '[');
    for (size_t i = 0; i < top->count && (rows == 0 || i < rows); i++)
        json_row(&json, &top->rows[i]);
    gp_json_close(&json, ']');
    gp_json_close(&json, '}');
    printf("\n");
}
