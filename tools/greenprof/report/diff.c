// SPDX-License-Identifier: MIT
// greenprof diff: the command and its table.
#include "diff.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "export/formats.h"
#include "message.h"
#include "output_guard.h"
#include "page/html.h"
#include "print.h"
#include "report/report_words.h"
#include "report_json.h"
#include "row_limits.h"
#include "store/store.h"

// The base is chosen as the file is, but for what --base-... says.
static void diff_choose_base(gp_arguments_t *base)
{
    const gp_choice_t *given = &base->base_choice;
    gp_choice_t *choice = &base->choice;
    if (given->traces.count > 0)
        choice->traces = given->traces;
    if (given->coroutines.count > 0)
        choice->coroutines = given->coroutines;
    if (given->threads.count > 0)
        choice->threads = given->threads;
    if (given->names.count > 0)
        choice->names = given->names;
    if (given->from != NULL || given->to != NULL) { // either is a span of its own
        choice->from = given->from;
        choice->to = given->to;
    }
}

static bool diff_is_chosen(const gp_choice_t *choice)
{
    return choice->traces.count > 0 || choice->coroutines.count > 0 || choice->threads.count > 0 ||
           choice->names.count > 0 || choice->from != NULL || choice->to != NULL;
}

static bool diff_is_by(const gp_arguments_t *arguments, const char *by)
{
    return arguments->by != NULL && strcmp(arguments->by, by) == 0;
}

static int diff_check(const gp_arguments_t *arguments)
{
    int status = gp_choice_check(&arguments->base_choice, "diff", "base-");
    if (status == 0 && arguments->operand_count == 1 && !diff_is_chosen(&arguments->base_choice))
        status = gp_usage_error("diff", "with one FILE, a --base- option must say what it is "
                                        "compared with");
    bool of_endpoints = diff_is_by(arguments, "endpoint");
    if (status == 0 && of_endpoints &&
        (arguments->output != NULL || arguments->per != NULL || arguments->order != NULL))
        status = gp_usage_error("diff", "--by endpoint is a table of its own: without -o, --per and --sort");
    for (int i = 0; status == 0 && of_endpoints && i < arguments->operand_count; i++)
        if (gp_store_is_url(arguments->operands[i]))
            status = gp_usage_error("diff", "--by endpoint is for captures, and %s is a store", arguments->operands[i]);
    if (status == 0 && arguments->output != NULL && arguments->json)
        status = gp_usage_error("diff", "--json and -o: which of them?");
    if (status == 0 && arguments->output != NULL && gp_exporter_has_suffix(arguments->output) &&
        gp_exporter_of_file(arguments->output) != gp_exporter_find("html"))
        status = gp_usage_error("diff", "%s: a page is written as .html", arguments->output);
    return status;
}

static int diff_open_side(gp_diff_side_t *side, const gp_arguments_t *arguments, char *file)
{
    gp_arguments_t one = *arguments;
    char *operands[] = {file, NULL};
    one.operands = operands;
    one.operand_count = 1;
    bool of_endpoints = diff_is_by(arguments, "endpoint");
    if (of_endpoints)
        one.by = "request";
    int status = gp_input_open(&side->source, &one, arguments->output != NULL ? GP_WANT_PAGE : 0);
    if (status != 0)
        return status;
    side->report = gp_input_report(&side->source, &side->source.options);
    if (side->report == NULL)
        return gp_input_fail(&side->source, errno);
    gp_input_warn_changed(&side->source);
    int part = gp_input_check_part(&side->source, side->report);
    if (part != 0)
        return part;
    return side->report->samples > 0 || of_endpoints ? 0 : gp_fail(file, "there are no samples to compare");
}

// Each is shown by the clock that it was made for, unless --clock says otherwise.
static int diff_check_clocks(const gp_diff_side_t sides[GP_SIDES])
{
    gp_measure_t base = sides[GP_BASE].source.options.measure, file = sides[GP_FILE].source.options.measure;
    if (base == file)
        return 0;
    return gp_usage_error("diff", "%s was made for %s, %s for %s: --clock must say which to compare",
                          sides[GP_BASE].source.path, gp_measure_words(base), sides[GP_FILE].source.path,
                          gp_measure_words(file));
}

// How many traces what was chosen worked for.
static size_t diff_count_traces(const gp_input_t *source)
{
    const gp_dataset_t *dataset = source->dataset;
    bool *seen = calloc(dataset->facts.traces.count + 1, sizeof(*seen));
    size_t count = 0;
    for (size_t i = 0; i < dataset->shares.count && seen != NULL; i++) {
        const gp_dataset_share_t *share = &dataset->shares.items[i];
        if (share->trace == 0 || seen[share->trace] || !gp_selection_has_share(&source->options.selection, share))
            continue;
        seen[share->trace] = true;
        count++;
    }
    free(seen);
    return count;
}

// The value of a nanosecond: in percent of the whole, or in milliseconds.
static int diff_set_factor(gp_diff_side_t *side, const char *per, const char *unit)
{
    gp_report_t *report = side->report;
    report->unit = unit;
    if (strcmp(per, "total") == 0) {
        side->factor = 100 / (double)report->total_ns;
        return 0;
    }
    report->per[0] = report->per[1] = 1;
    if (strcmp(per, "second") == 0) {
        report->per[0] = report->duration_ns;
        report->per[1] = 1000000000;
    }
    if (strcmp(per, "trace") == 0)
        report->per[0] = diff_count_traces(&side->source);
    if (report->per[0] == 0)
        return gp_fail(side->source.path, "there is no %s to divide by", per);
    side->factor = 1e-6 * (double)report->per[1] / (double)report->per[0];
    return 0;
}

static const char *diff_unit_of(const char *per)
{
    if (strcmp(per, "total") == 0)
        return "%";
    if (strcmp(per, "second") == 0)
        return "ms a second";
    return strcmp(per, "trace") == 0 ? "ms a trace" : "ms";
}

static void diff_print_side(const char *name, const gp_diff_side_t *side)
{
    printf("  %s  ", name);
    gp_print_text(side->source.path);
    printf(": ");
    gp_print_seconds(side->report->total_ns, 0);
    printf(" s of %s%s, %" PRIu64 " samples\n", gp_measure_words(side->report->measure),
           side->report->basis == GP_BASIS_EXACT ? "" : " by the samples", side->report->samples);
}

void gp_diff_print_header(const gp_diff_t *diff)
{
    diff_print_side("base", &diff->sides[GP_BASE]);
    diff_print_side("file", &diff->sides[GP_FILE]);
    printf("\n  %s in %s", gp_measure_words(diff->sides[GP_FILE].report->measure), diff->unit);
    if (strcmp(diff->unit, "%") == 0)
        printf(" of each side's own");
    printf("; +- is one standard error.\n  * = chance in sampling does not explain it: |z| >= %.2f, "
           "95 %% sure for all %zu comparisons together.\n\n",
           diff->z_critical, diff->comparisons);
}

// qsort() has no context; the command is single-threaded.
static const gp_diff_t *sorting;
static const char *sorting_by;

static double diff_rank(const gp_diff_function_t *function)
{
    double own = fabs(function->own_change.z), total = fabs(function->total_change.z);
    if (strcmp(sorting_by, "total") == 0)
        return fabs(function->total_change.difference);
    if (strcmp(sorting_by, "significance") == 0)
        return own > total ? own : total;
    return fabs(function->own_change.difference);
}

static int diff_compare(const void *left, const void *right)
{
    const gp_diff_function_t *a = &sorting->functions[*(const uint32_t *)left];
    const gp_diff_function_t *b = &sorting->functions[*(const uint32_t *)right];
    double first = diff_rank(a), second = diff_rank(b);
    if (strcmp(sorting_by, "name") != 0 && first != second)
        return first > second ? -1 : 1;
    int result = strcmp(a->name, b->name);
    return result != 0 ? result : strcmp(a->file, b->file);
}

static const char *diff_name_of(const void *context, uint32_t row)
{
    return ((const gp_diff_t *)context)->functions[row].name;
}

void gp_diff_print_change(const gp_change_t *change)
{
    printf("%8.2f %8.2f %+8.2f +-%5.2f%c", change->value[GP_BASE], change->value[GP_FILE], change->difference,
           change->error, change->is_significant ? '*' : ' ');
}

static void diff_print_function(const gp_diff_function_t *function)
{
    gp_diff_print_change(&function->own_change);
    printf("  ");
    gp_diff_print_change(&function->total_change);
    printf("  ");
    gp_print_text(function->name);
    if (!function->pseudo) {
        printf(" (");
        gp_print_text(function->file);
        printf(")");
    }
    printf("\n");
}

// Between versions in a store the question is what changed at all; between two captures, what it costs.
static const char *diff_order_of(const gp_arguments_t *arguments)
{
    return arguments->order != NULL                  ? arguments->order
           : gp_store_is_url(arguments->operands[0]) ? "significance"
                                                     : "own";
}

static int diff_print_table(const gp_diff_t *diff, const gp_arguments_t *arguments, gp_row_limits_t restrictions)
{
    uint32_t *rows = calloc(diff->function_count + 1, sizeof(*rows));
    size_t count = diff->function_count;
    if (rows == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        rows[i] = i;
    sorting = diff;
    sorting_by = diff_order_of(arguments);
    if (count > 0)
        qsort(rows, count, sizeof(*rows), diff_compare);
    if (diff->json != NULL) {
        gp_diff_json_begin(diff, "function", sorting_by);
        count = gp_report_json_restrict(restrictions, rows, count, diff_name_of, diff);
        for (size_t i = 0; i < count; i++)
            gp_diff_json_function(diff->json, &diff->functions[rows[i]]);
        gp_diff_json_end(diff->json);
        free(rows);
        return 0;
    }
    gp_diff_print_header(diff);
    printf("   Ordered by: %s\n", sorting_by);
    count = gp_restrictions_apply(restrictions, rows, count, diff_name_of, diff);
    printf("\n%-36s  %s\n", "own: base     file   change    error",
           "total: base     file   change    error   function");
    for (size_t i = 0; i < count; i++)
        diff_print_function(&diff->functions[rows[i]]);
    printf("\n");
    free(rows);
    return 0;
}

static int diff_write_page(gp_output_t *output, void *context)
{
    const gp_diff_t *diff = context;
    return gp_page_write(diff->sides[GP_BASE].report, diff->sides[GP_FILE].report, output->file);
}

static int diff_show(gp_diff_t *diff, const gp_arguments_t *arguments, gp_row_limits_t restrictions)
{
    if (arguments->output != NULL) {
        int result = gp_output_guarded(arguments->output, diff_write_page, diff);
        return result == 0 ? 0 : gp_fail(arguments->output, "%s", strerror(-result));
    }
    bool of_stacks = diff_is_by(arguments, "stack"), of_endpoints = diff_is_by(arguments, "endpoint");
    int result = of_endpoints ? gp_diff_print_endpoints(diff, restrictions) : gp_diff_compare(diff);
    if (result == 0 && of_stacks)
        result = gp_diff_print_stacks(diff, diff_order_of(arguments), restrictions);
    if (result == 0 && !of_stacks && !of_endpoints)
        result = diff_print_table(diff, arguments, restrictions);
    if (result < 0)
        return gp_fail("diff", "not enough memory");
    if (gp_row_limit_left_none() != NULL)
        return gp_fail("diff", "no row matches '%s'", gp_row_limit_left_none());
    return gp_finish_stdout();
}

int gp_command_diff(const gp_arguments_t *arguments)
{
    const char *per = arguments->per ? arguments->per : "total";
    gp_json_t json = {.out = stdout};
    gp_diff_t diff = {.unit = diff_unit_of(per), .json = arguments->json ? &json : NULL};
    gp_restriction_list_t list = {0};
    gp_arguments_t base = *arguments;
    int count = arguments->operand_count, status = diff_check(arguments);
    diff_choose_base(&base);
    if (status == 0)
        status = gp_restriction_list_make(&list, arguments, "-r", NULL);
    if (status == 0)
        status = diff_open_side(&diff.sides[GP_BASE], &base, arguments->operands[0]);
    if (status == 0)
        status = diff_open_side(&diff.sides[GP_FILE], arguments, arguments->operands[count - 1]);
    if (status == 0)
        status = diff_check_clocks(diff.sides);
    for (size_t i = 0; i < GP_SIDES && status == 0; i++)
        status = diff_set_factor(&diff.sides[i], per, diff.unit);
    if (status == 0)
        status = diff_show(&diff, arguments, gp_restriction_list_items(&list));
    gp_restriction_list_free(&list);
    gp_diff_free(&diff);
    return status;
}
