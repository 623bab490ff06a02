// SPDX-License-Identifier: MIT
// Requests of two runs compared, endpoint by endpoint: one service in two modes, or in two versions.
//
// Model: an endpoint is told by its kind and name. A value is the mean over its requests, p50 and p99 are latencies of
// a request. The error of a mean comes from how far the requests are apart; that of a percentile from the requests one
// standard error of its rank away. Where that rank is beyond the last request there is none, and nothing is said of
// chance.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff.h"
#include "model/span_kind.h"
#include "print.h"
#include "report_json.h"

enum { NAME_SIZE = 512, REQUESTS_MIN = 10 };

typedef struct figure {
    const char *key, *words;
    double divide_by; // what is summed up, for what is shown
    int percent;      // of the latencies; 0 = a mean
    int kind;         // enum gp_sample_kind; -1 = another one
} figure_t;

static const figure_t figures[] = {
    {"p50_ms", "latency p50, ms", 1e6, 50, -1},         {"p99_ms", "latency p99, ms", 1e6, 99, -1},
    {"mean_ms", "latency mean, ms", 1e6, 0, -1},        {"cpu_ms", "cpu, ms a request", 1e6, 0, GP_KIND_CPU},
    {"blocked_ms", "blocked", 1e6, 0, GP_KIND_BLOCKED}, {"preempted_ms", "preempted", 1e6, 0, GP_KIND_PREEMPTED},
    {"ready_ms", "ready", 1e6, 0, GP_KIND_READY},       {"parked_ms", "parked", 1e6, 0, GP_KIND_PARKED},
    {"waiting_ms", "waiting", 1e6, 0, GP_KIND_WAITING}, {"gil_ms", "gil", 1e6, 0, GP_KIND_GIL},
    {"lock_ms", "lock", 1e6, 0, GP_KIND_LOCK},          {"queued_ms", "queued", 1e6, 0, GP_KIND_QUEUED},
    {"switches", "switches a request", 1, 0, -1},       {"coroutines", "coroutines a request", 1, 0, -1},
};

enum { FIGURES = sizeof(figures) / sizeof(figures[0]), SWITCHES = FIGURES - 2, COROUTINES = FIGURES - 1 };

typedef struct endpoint {
    const gp_endpoint_t *is[GP_SIDES]; // NULL = that side has none
    char *name;
    gp_change_t changes[FIGURES];
} endpoint_t;

typedef struct endpoints {
    gp_diff_t *diff;
    endpoint_t *items;
    size_t count;
} endpoints_t;

static double diff_endpoints_value(const gp_request_t *request, size_t figure)
{
    if (figure == SWITCHES)
        return (double)request->ledger.switches;
    if (figure == COROUTINES)
        return request->coros;
    return figures[figure].kind >= 0 ? (double)gp_request_ns(request, (enum gp_sample_kind)figures[figure].kind)
                                     : (double)(request->end_ns - request->start_ns);
}

static int diff_endpoints_compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static double diff_endpoints_error_of_mean(const double *values, size_t count, double mean)
{
    double squares = 0;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return count > 1 ? sqrt(squares / (double)(count - 1) / (double)count) : NAN;
}

// values: sorted. By the nearest rank, as the report has it.
static double diff_endpoints_percentile(const double *values, size_t count, double part, double *error)
{
    double n = (double)count, off = sqrt(n * part * (1 - part)), rank = ceil(part * n);
    double lo = floor(rank - off), hi = ceil(rank + off);
    *error = lo >= 1 && hi <= n ? (values[(size_t)hi - 1] - values[(size_t)lo - 1]) / 2 : NAN;
    return values[(size_t)(rank < 1 ? 1 : rank) - 1];
}

// A side's value of a figure, its standard error, NAN = not known, and of how many requests.
static double diff_endpoints_measure(const gp_diff_side_t *side, const gp_endpoint_t *endpoint, size_t figure,
                                     double *values, double *error, size_t *measured)
{
    const gp_requests_t *requests = side->source.requests;
    size_t count = 0;
    double sum = 0;
    *error = NAN;
    *measured = 0;
    if (endpoint == NULL || (side->source.dataset->windowed && figure > 2))
        return NAN;
    for (size_t i = 0; i < requests->count; i++)
        if (side->source.requests_chosen[i] && !requests->items[i].is_cut &&
            &requests->endpoints[requests->items[i].endpoint] == endpoint)
            sum += values[count++] = diff_endpoints_value(&requests->items[i], figure) / figures[figure].divide_by;
    *measured = count;
    if (count == 0)
        return NAN;
    if (figures[figure].percent == 0) {
        *error = diff_endpoints_error_of_mean(values, count, sum / (double)count);
        return sum / (double)count;
    }
    qsort(values, count, sizeof(*values), diff_endpoints_compare_doubles);
    return diff_endpoints_percentile(values, count, figures[figure].percent / 100.0, error);
}

// Student's quantile for a normal one. Source: Abramowitz and Stegun, 26.7.5, the first two terms.
static double diff_endpoints_students(double z, size_t freedom)
{
    double n = (double)freedom, cube = z * z * z;
    return z + (cube + z) / (4 * n) + (5 * cube * z * z + 16 * cube + 3 * z) / (96 * n * n);
}

static void diff_endpoints_fill_changes(endpoints_t *all, endpoint_t *endpoint, double *values)
{
    const gp_diff_t *diff = all->diff;
    for (size_t i = 0; i < FIGURES; i++) {
        gp_change_t *change = &endpoint->changes[i];
        double errors[GP_SIDES];
        size_t measured[GP_SIDES];
        for (size_t side = 0; side < GP_SIDES; side++)
            change->value[side] = diff_endpoints_measure(&diff->sides[side], endpoint->is[side], i, values,
                                                         &errors[side], &measured[side]);
        change->difference = change->value[GP_FILE] - change->value[GP_BASE];
        change->error = hypot(errors[GP_BASE], errors[GP_FILE]);
        size_t least = measured[GP_BASE] < measured[GP_FILE] ? measured[GP_BASE] : measured[GP_FILE];
        bool is_exact = change->error == 0 && change->difference != 0;
        change->z = is_exact            ? copysign(INFINITY, change->difference)
                    : change->error > 0 ? change->difference / change->error
                                        : NAN;
        change->is_significant =
            least >= REQUESTS_MIN && fabs(change->z) >= diff_endpoints_students(diff->z_critical, least - 1);
    }
}

static int diff_endpoints_add_side(endpoints_t *all, size_t side)
{
    const gp_requests_t *requests = all->diff->sides[side].source.requests;
    char text[NAME_SIZE];
    for (size_t i = 0; i < requests->endpoint_count; i++) {
        const char *name = gp_endpoint_text(&requests->endpoints[i], text, sizeof(text));
        size_t at = 0;
        while (at < all->count && strcmp(all->items[at].name, name) != 0)
            at++;
        // -Wanalyzer-malloc-leak: the endpoint keeps it.
        if (at == all->count && (all->items[all->count++].name = strdup(name)) == NULL)
            return -ENOMEM;
        all->items[at].is[side] = &requests->endpoints[i];
    }
    return 0;
}

static uint64_t diff_endpoints_sum(const endpoint_t *endpoint)
{
    return (endpoint->is[GP_BASE] != NULL ? endpoint->is[GP_BASE]->total_ns : 0) +
           (endpoint->is[GP_FILE] != NULL ? endpoint->is[GP_FILE]->total_ns : 0);
}

static int diff_endpoints_by_sum(const void *left, const void *right)
{
    uint64_t a = diff_endpoints_sum(left), b = diff_endpoints_sum(right);
    return a > b ? -1 : a < b;
}

static int diff_endpoints_fill(endpoints_t *all)
{
    size_t endpoints = 0, requests = 0;
    for (size_t i = 0; i < GP_SIDES; i++) {
        endpoints += all->diff->sides[i].source.requests->endpoint_count;
        requests += all->diff->sides[i].source.requests->count;
    }
    all->items = calloc(endpoints + 1, sizeof(*all->items));
    double *values = calloc(requests + 1, sizeof(*values));
    int result = all->items != NULL && values != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; i < GP_SIDES && result == 0; i++)
        result = diff_endpoints_add_side(all, i);
    if (result == 0) {
        gp_diff_compare_all(all->diff, all->count * FIGURES);
        qsort(all->items, all->count, sizeof(*all->items), diff_endpoints_by_sum);
        for (size_t i = 0; i < all->count; i++)
            diff_endpoints_fill_changes(all, &all->items[i], values);
    }
    free(values);
    return result;
}

static const char *diff_endpoints_name_of(const void *context, uint32_t row)
{
    return ((const endpoints_t *)context)->items[row].name;
}

static uint32_t diff_endpoints_count(const gp_endpoint_t *endpoint, bool failed)
{
    return endpoint == NULL ? 0 : failed ? endpoint->failed : endpoint->count;
}

// Is there any of it on a side? Else the text leaves it out.
static bool diff_endpoints_has(const gp_change_t *change)
{
    return change->value[GP_BASE] > 0 || change->value[GP_FILE] > 0;
}

static void diff_endpoints_print_value(double value, const char *form)
{
    if (isnan(value))
        printf("%*s", (int)strtol(form + (form[1] == '+' ? 2 : 1), NULL, 10), "-");
    else
        printf(form, value); // NOLINT(clang-diagnostic-format-nonliteral)
}

static void diff_endpoints_print(const endpoint_t *endpoint)
{
    gp_print_text(endpoint->name);
    printf("\n  %-22s %11" PRIu32 " %11" PRIu32 "\n", "requests", diff_endpoints_count(endpoint->is[GP_BASE], false),
           diff_endpoints_count(endpoint->is[GP_FILE], false));
    printf("  %-22s %11" PRIu32 " %11" PRIu32 "\n", "failed", diff_endpoints_count(endpoint->is[GP_BASE], true),
           diff_endpoints_count(endpoint->is[GP_FILE], true));
    for (size_t i = 0; i < FIGURES; i++) {
        const gp_change_t *change = &endpoint->changes[i];
        if (!diff_endpoints_has(change))
            continue;
        printf("  %-22s", figures[i].words);
        diff_endpoints_print_value(change->value[GP_BASE], "%12.3f");
        diff_endpoints_print_value(change->value[GP_FILE], "%12.3f");
        diff_endpoints_print_value(change->difference, "%+12.3f");
        printf(" +-");
        diff_endpoints_print_value(change->error, "%10.3f");
        printf("%s\n", change->is_significant ? "*" : "");
    }
    printf("\n");
}

static uint64_t diff_endpoints_threads(const gp_diff_side_t *side)
{
    return side->source.dataset->facts.threads.count;
}

static void diff_endpoints_print_head(const gp_diff_t *diff)
{
    static const char *const names[GP_SIDES] = {"base", "file"};
    for (size_t i = 0; i < GP_SIDES; i++) {
        const gp_diff_side_t *side = &diff->sides[i];
        printf("  %s  ", names[i]);
        gp_print_text(side->source.path);
        printf(": %zu requests in ", side->source.requests->count);
        gp_print_seconds(side->report->duration_ns, 0);
        printf(" s, %" PRIu64 " threads\n", diff_endpoints_threads(side));
    }
    printf("\n  Means over the requests of an endpoint; +- is one standard error, - where too few say it.\n"
           "  * = chance does not explain it: |z| >= %.2f, 95 %% sure for all %zu comparisons together.\n\n"
           "  %-22s%12s%12s%12s\n",
           diff->z_critical, diff->comparisons, "", "base", "file", "change");
}

static void diff_endpoints_json_pair(gp_json_t *json, const char *key, uint64_t base, uint64_t file)
{
    gp_json_key(json, key);
    gp_json_open(json, '{');
    gp_json_key_uint(json, "base", base);
    gp_json_key_uint(json, "file", file);
    gp_json_close(json, '}');
}

static void diff_endpoints_json(const endpoint_t *endpoint, gp_json_t *json)
{
    gp_json_open(json, '{');
    gp_json_key_text(json, "endpoint", endpoint->name);
    diff_endpoints_json_pair(json, "requests", diff_endpoints_count(endpoint->is[GP_BASE], false),
                             diff_endpoints_count(endpoint->is[GP_FILE], false));
    diff_endpoints_json_pair(json, "failed", diff_endpoints_count(endpoint->is[GP_BASE], true),
                             diff_endpoints_count(endpoint->is[GP_FILE], true));
    for (size_t i = 0; i < FIGURES; i++)
        gp_diff_json_change(json, figures[i].key, &endpoint->changes[i]);
    gp_json_close(json, '}');
    gp_json_line(json);
}

int gp_diff_print_endpoints(gp_diff_t *diff, gp_row_limits_t restrictions)
{
    endpoints_t all = {.diff = diff};
    diff->unit = "ms";
    int result = diff_endpoints_fill(&all);
    uint32_t *rows = result == 0 ? calloc(all.count + 1, sizeof(*rows)) : NULL;
    for (uint32_t i = 0; rows != NULL && i < all.count; i++)
        rows[i] = i;
    if (rows != NULL && diff->json != NULL) {
        size_t shown = gp_report_json_restrict(restrictions, rows, all.count, diff_endpoints_name_of, &all);
        gp_diff_json_begin(diff, "endpoint", "total");
        for (size_t i = 0; i < shown; i++)
            diff_endpoints_json(&all.items[rows[i]], diff->json);
        gp_json_close(diff->json, ']');
        diff_endpoints_json_pair(diff->json, "threads", diff_endpoints_threads(&diff->sides[GP_BASE]),
                                 diff_endpoints_threads(&diff->sides[GP_FILE]));
        gp_report_json_end(diff->json);
    } else if (rows != NULL) {
        diff_endpoints_print_head(diff);
        size_t shown = gp_restrictions_apply(restrictions, rows, all.count, diff_endpoints_name_of, &all);
        for (size_t i = 0; i < shown; i++)
            diff_endpoints_print(&all.items[rows[i]]);
    }
    for (size_t i = 0; i < all.count; i++)
        free(all.items[i].name);
    free(all.items);
    free(rows);
    return rows != NULL ? 0 : -ENOMEM;
}
