// SPDX-License-Identifier: MIT
// The change of each function, by the two sides' samples, and how sure it is.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff.h"

enum { SAMPLES_MIN = 10 }; // of both sides together: with fewer the normal distribution is wrong

static const char *diff_compare_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool diff_compare_same_function(const void *owner, uint32_t number, const void *key)
{
    const gp_diff_function_t *a = &((const gp_diff_t *)owner)->functions[number], *b = key;
    return strcmp(a->name, b->name) == 0 &&
           strcmp(diff_compare_base_name(a->file), diff_compare_base_name(b->file)) == 0;
}

static uint32_t diff_compare_function_number(gp_diff_t *diff, const gp_report_frame_t *frame)
{
    gp_diff_function_t key = {.name = frame->function, .file = frame->file, .pseudo = frame->pseudo};
    const char *file = diff_compare_base_name(frame->file);
    uint64_t hash =
        gp_hash_more(gp_hash_bytes(frame->function, strlen(frame->function)), gp_hash_bytes(file, strlen(file)));
    uint32_t number = gp_index_find(&diff->function_index, hash, diff_compare_same_function, diff, &key);
    if (number != GP_INDEX_NONE)
        return number;
    if (gp_grow(&diff->functions, &diff->function_capacity, diff->function_count, sizeof(*diff->functions)) < 0 ||
        gp_index_add(&diff->function_index, hash, (uint32_t)diff->function_count) < 0)
        return GP_INDEX_NONE;
    diff->functions[diff->function_count] = key;
    return (uint32_t)diff->function_count++;
}

static int diff_compare_find_functions(gp_diff_t *diff, gp_diff_side_t *side)
{
    const gp_report_t *report = side->report;
    side->functions = calloc((size_t)report->frame_count + 1, sizeof(*side->functions));
    // -Wanalyzer-malloc-leak: the side of the comparison keeps it.
    if (side->functions == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < report->frame_count; i++) {
        side->functions[i] = diff_compare_function_number(diff, &report->frames[i]);
        if (side->functions[i] == GP_INDEX_NONE)
            return -ENOMEM;
    }
    return 0;
}

void gp_diff_charge(gp_weights_t *weights, const gp_report_row_t *row)
{
    weights->ns += row->weight_ns;
    weights->samples += row->samples;
    weights->squares_ns2 += row->squares_ns2;
}

static int diff_compare_charge_rows(gp_diff_t *diff, size_t which)
{
    gp_diff_side_t *side = &diff->sides[which];
    uint32_t *seen = calloc(diff->function_count + 1, sizeof(*seen)); // the last row, plus 1
    if (seen == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < side->report->row_count; i++) {
        const gp_report_row_t *row = &side->report->rows[i];
        side->squares_ns2 += row->squares_ns2;
        for (uint32_t j = 0; j < row->depth; j++) {
            uint32_t number = side->functions[row->frames[j]];
            if (seen[number] != i + 1)
                gp_diff_charge(&diff->functions[number].total[which], row);
            seen[number] = i + 1;
            if (j + 1 == row->depth)
                gp_diff_charge(&diff->functions[number].own[which], row);
        }
    }
    free(seen);
    return 0;
}

// Variance of a side's value. For a share p of an exactly known whole:
//   ((1-p)^2 * squares within + p^2 * squares outside) / whole^2.
// Where the whole is the sum of the samples, and no share is asked for, the variance is a sum's: the squares.
static double diff_compare_variance(const gp_diff_t *diff, size_t which, const gp_weights_t *weights)
{
    const gp_diff_side_t *side = &diff->sides[which];
    double within = weights->squares_ns2, outside = side->squares_ns2 - within;
    double whole = (double)side->report->total_ns, p = whole > 0 ? (double)weights->ns / whole : 0;
    bool is_share = side->report->basis == GP_BASIS_EXACT || strcmp(diff->unit, "%") == 0;
    if (outside < 0) // rounding
        outside = 0;
    double sum = is_share ? (1 - p) * (1 - p) * within + p * p * outside : within;
    return sum * side->factor * side->factor;
}

gp_change_t gp_diff_change(const gp_diff_t *diff, const gp_weights_t weights[GP_SIDES])
{
    gp_change_t change = {.difference = 0};
    double sum = 0;
    for (size_t i = 0; i < GP_SIDES; i++) {
        change.value[i] = (double)weights[i].ns * diff->sides[i].factor;
        sum += diff_compare_variance(diff, i, &weights[i]);
    }
    change.difference = change.value[GP_FILE] - change.value[GP_BASE];
    change.error = sqrt(sum);
    if (change.error > 0)
        change.z = change.difference / change.error;
    else if (fabs(change.difference) > 1e-9 * change.value[GP_BASE])
        change.z = copysign(INFINITY, change.difference); // both are known exactly
    change.is_significant =
        fabs(change.z) >= diff->z_critical && weights[GP_BASE].samples + weights[GP_FILE].samples >= SAMPLES_MIN;
    return change;
}

// The z that is exceeded, on either side, with probability 0.05 by at least one of `count`
// independent standard normal values (Sidak).
static double diff_compare_critical_z(size_t count)
{
    double each = -expm1(log1p(-0.05) / (double)(count > 0 ? count : 1));
    double lo = 0, hi = 40;
    for (int i = 0; i < 100; i++) { // erfc() falls with z
        double middle = (lo + hi) / 2;
        if (erfc(middle / sqrt(2)) > each)
            lo = middle;
        else
            hi = middle;
    }
    return (lo + hi) / 2;
}

void gp_diff_compare_all(gp_diff_t *diff, size_t comparisons)
{
    diff->comparisons = comparisons;
    diff->z_critical = diff_compare_critical_z(comparisons);
}

int gp_diff_compare(gp_diff_t *diff)
{
    for (size_t i = 0; i < GP_SIDES; i++)
        if (diff_compare_find_functions(diff, &diff->sides[i]) < 0)
            return -ENOMEM;
    for (size_t i = 0; i < GP_SIDES; i++)
        if (diff_compare_charge_rows(diff, i) < 0)
            return -ENOMEM;
    gp_diff_compare_all(diff, 2 * diff->function_count);
    for (size_t i = 0; i < diff->function_count; i++) {
        gp_diff_function_t *function = &diff->functions[i];
        function->own_change = gp_diff_change(diff, function->own);
        function->total_change = gp_diff_change(diff, function->total);
    }
    return 0;
}

void gp_diff_free(gp_diff_t *diff)
{
    for (size_t i = 0; i < GP_SIDES; i++) {
        free(diff->sides[i].functions);
        gp_report_free(diff->sides[i].report);
        gp_input_close(&diff->sides[i].source);
    }
    free(diff->functions);
    gp_index_free(&diff->function_index);
}
