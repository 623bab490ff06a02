// SPDX-License-Identifier: MIT
#include "tables.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "message.h"
#include "nearest.h"
#include "print.h"
#include "report_json.h"
#include "row_limits.h"
#include "store/store.h"

static const char *report_known_keys(char *text, size_t size, bool of_groups)
{
    size_t len = 0;
    for (const gp_sort_key_t *key = gp_group_sort_keys; of_groups && key->name != NULL && len < size; key++)
        len += (size_t)snprintf(text + len, size - len, " %s", key->name);
    for (const gp_sort_key_t *key = gp_sort_keys; key->name != NULL && len < size; key++)
        len += (size_t)snprintf(text + len, size - len, " %s", key->name);
    return text;
}

// Keys and commas.
static int report_set_sorts(gp_sorts_t *sorts, const char *keys, bool of_groups)
{
    char text[256];
    char *copy = strdup(keys), *save = NULL;
    int status = copy != NULL ? 0 : gp_fail("command line", "%s", strerror(ENOMEM));
    for (char *key = status == 0 ? strtok_r(copy, ",", &save) : NULL; key != NULL && status == 0;
         key = strtok_r(NULL, ",", &save)) {
        const char *meaning = gp_nearest_meaning("sort", key);
        const gp_sort_key_t *found = of_groups ? gp_group_sort_key_find(key) : gp_sort_key_find(key);
        if (found == NULL)
            status = gp_usage_error("report", "--sort %s: unknown or ambiguous key%s%s (known:%s)", key,
                                    meaning != NULL ? "; did you mean " : "", meaning != NULL ? meaning : "",
                                    report_known_keys(text, sizeof(text), of_groups));
        else if (sorts->count == GP_SORTS_MAX)
            status = gp_usage_error("report", "--sort %s: more than %d keys", keys, GP_SORTS_MAX);
        else
            sorts->keys[sorts->count++] = found;
    }
    if (status == 0 && sorts->count == 0)
        status = gp_usage_error("report", "--sort: missing key");
    free(copy);
    return status;
}

typedef struct tables { // to be printed
    gp_sorts_t sorts;
    gp_restriction_list_t rows, callers, callees;
    bool print_callers, print_callees, of_locks;
    size_t path_rows; // segments of a critical path; 0 = all
    const char *by;   // NULL = functions
    gp_json_t *json;  // NULL = text
} tables_t;

static void report_free_tables(tables_t *tables)
{
    gp_restriction_list_free(&tables->rows);
    gp_restriction_list_free(&tables->callers);
    gp_restriction_list_free(&tables->callees);
}

static int report_prepare(tables_t *tables, const gp_arguments_t *arguments)
{
    bool of_functions = arguments->by == NULL || strcmp(arguments->by, "function") == 0 ||
                        strcmp(arguments->by, "victim-time") == 0 || strcmp(arguments->by, "critical-path") == 0;
    int status = report_set_sorts(&tables->sorts, arguments->sort ? arguments->sort : "tottime", !of_functions);
    tables->of_locks = arguments->by != NULL && strcmp(arguments->by, "lock") == 0;
    tables->path_rows = (size_t)arguments->rows;
    tables->print_callers = arguments->callers.count > 0;
    tables->print_callees = arguments->callees.count > 0;
    tables->by = arguments->by;
    if (status == 0 && arguments->json && (tables->print_callers || tables->print_callees))
        status =
            gp_usage_error("report", "--callers and --callees have no --json: 'export --format json' has whole stacks");
    if (status == 0 && (tables->print_callers || tables->print_callees) && arguments->by != NULL &&
        strcmp(arguments->by, "function") != 0)
        status = gp_usage_error("report", "--callers and --callees need --by function, not --by %s", arguments->by);
    if (status == 0)
        status = gp_restriction_list_make(&tables->rows, arguments, "-r", NULL);
    if (status == 0)
        status = gp_restriction_list_make(&tables->callers, arguments, "--callers", &arguments->callers);
    if (status == 0)
        status = gp_restriction_list_make(&tables->callees, arguments, "--callees", &arguments->callees);
    return status;
}

static void report_print_title(const gp_report_t *report, const gp_stats_t *stats)
{
    if (report->exact_calls)
        printf("         %" PRIu64 " function calls (%" PRIu64 " primitive calls) in ", stats->calls,
               stats->primitive_calls);
    else
        printf("         %" PRIu64 " samples in ", report->samples);
    gp_print_seconds(report->total_ns, 0);
    printf(" seconds\n\n");
}

static int report_print_functions(const gp_input_t *source, const gp_report_t *report, const tables_t *tables)
{
    gp_stats_t stats = {.cores_s = gp_input_hosts(source) > 0 ? (double)report->duration_ns / 1e9 : 0};
    if (report->is_unknown && tables->json != NULL)
        gp_json_close(tables->json, ']');
    if (report->is_unknown)
        return tables->json != NULL ? 0 : gp_report_print_slices(source);
    int result = gp_stats_add_report(&stats, report);
    if (result == 0)
        result = gp_stats_sort(&stats, &tables->sorts);
    if (result == 0 && tables->json != NULL) {
        result = gp_report_json_functions(tables->json, &stats, gp_restriction_list_items(&tables->rows));
        gp_stats_free(&stats);
        return result;
    }
    if (result == 0)
        report_print_title(report, &stats);
    if (result == 0 && tables->print_callers)
        result = gp_stats_print_callers(&stats, gp_restriction_list_items(&tables->callers));
    if (result == 0 && tables->print_callees)
        result = gp_stats_print_callees(&stats, gp_restriction_list_items(&tables->callees));
    if (result == 0 && !tables->print_callers && !tables->print_callees)
        result = gp_stats_print(&stats, gp_restriction_list_items(&tables->rows));
    gp_stats_free(&stats);
    return result;
}

static int report_print_table(const gp_input_t *source, const gp_report_t *report, const gp_group_sum_t *sums,
                              const tables_t *tables)
{
    gp_table_options_t options = {tables->sorts, gp_restriction_list_items(&tables->rows), tables->json};
    if (tables->of_locks)
        return gp_report_print_locks(source, &options);
    if (tables->by != NULL && strcmp(tables->by, "thread") == 0)
        return gp_report_print_threads(source, &options);
    if (source->has_stored_paths)
        return report_print_functions(source, report, tables);
    switch (source->options.by) {
    case GP_BY_COROUTINE:
        return gp_report_print_coroutines(source, sums, &options);
    case GP_BY_TRACE:
        return gp_report_print_traces(source, sums, &options);
    case GP_BY_REQUEST:
        return gp_report_print_requests(source, &options);
    case GP_BY_POOL:
        return gp_report_print_pools(source, &options);
    case GP_BY_CRITICAL_PATH:
    case GP_BY_NONE:
    case GP_BY_SPAN:
        break;
    }
    return report_print_functions(source, report, tables);
}

static int report_print(const gp_input_t *source, const tables_t *tables, int *status)
{
    gp_group_sums_t sums = {0};
    bool is_path = source->options.by == GP_BY_CRITICAL_PATH || source->has_stored_paths;
    gp_report_options_t options = source->options;
    gp_shown_paths_t *shown = is_path ? gp_shown_paths_begin(source, &options) : NULL;
    gp_report_t *report = shown != NULL ? gp_input_report(source, &options)
                          : is_path     ? NULL
                                        : gp_input_report_sums(source, &sums);
    int result = report != NULL ? 0 : -errno;
    if (report != NULL) {
        *status = gp_input_check_part(source, report);
        if (*status == 0) {
            if (tables->json != NULL)
                gp_report_json_begin(tables->json, source, report, tables->by);
            else
                gp_report_print_header(source, report);
            if (is_path && tables->json == NULL)
                result = gp_shown_paths_print(shown, source, report, tables->path_rows);
            if (result == 0)
                result = report_print_table(source, report, sums.items, tables);
            if (tables->json != NULL)
                gp_report_json_end(tables->json);
        }
    }
    gp_report_free(report);
    gp_shown_paths_free(shown);
    free(sums.items);
    return result;
}

int gp_command_report(const gp_arguments_t *arguments)
{
    tables_t tables = {0};
    gp_json_t json = {.out = stdout};
    gp_input_t source;
    int status = report_prepare(&tables, arguments);
    const char *of_store =
        arguments->by != NULL && arguments->operand_count == 1 && gp_store_is_url(arguments->operands[0])
            ? arguments->by
            : "";
    tables.json = arguments->json ? &json : NULL;
    if (status == 0 &&
        (strcmp(of_store, "pool") == 0 || strcmp(of_store, "lock") == 0 || strcmp(of_store, "thread") == 0))
        status = gp_usage_error("report", "--by %s: a store has no %ss; take the captures", of_store, of_store);
    if (status == 0 && arguments->json && strcmp(of_store, "victim-time") == 0)
        status = gp_usage_error("report", "--by %s has no --json of a store", of_store);
    if (status == 0 && strcmp(of_store, "victim-time") == 0)
        status = gp_store_print_delays(arguments);
    if (status == 0 && strcmp(of_store, "request") == 0) {
        const gp_table_options_t options = {tables.sorts, gp_restriction_list_items(&tables.rows), tables.json};
        status = gp_store_print_requests(arguments, &options);
        report_free_tables(&tables);
        return status != 0 ? status : gp_finish_stdout();
    }
    if (status == 0)
        status = gp_input_open(&source, arguments, 0);
    if (status == 0) {
        int result = report_print(&source, &tables, &status);
        if (result < 0)
            status = gp_input_fail(&source, -result);
        else if (status == 0 && gp_row_limit_left_none() != NULL)
            status = gp_fail(source.path, "no row matches '%s'", gp_row_limit_left_none());
        gp_input_warn_changed(&source);
        gp_input_close(&source);
    }
    report_free_tables(&tables);
    return status != 0 ? status : gp_finish_stdout();
}
