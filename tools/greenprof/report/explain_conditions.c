// SPDX-License-Identifier: MIT
#include "explain_conditions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"

typedef struct condition {
    char name[32];
    double value; // ns, or a number
    bool is_time;
} condition_t;

// Conditions on time, and on numbers; a kind of finding is a time where it has a unit, else a number.
static const char known[] =
    "victim, p99, findings, held-loop, blocking-call, full-pool, starved, repeated-call, retries, growing, "
    "deadlock, lock-held, gil-held, lost-data, no-names, start-up or hot-code";

static bool explain_conditions_is_known(const char *name)
{
    size_t length = strlen(name);
    for (const char *at = known; (at = strstr(at, name)) != NULL; at++)
        if ((at == known || at[-1] == ' ') && (at[length] == ',' || at[length] == ' ' || at[length] == '\0') &&
            strcmp(name, "or") != 0)
            return true;
    return false;
}

static double explain_conditions_unit(const char *text)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"", 1}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(units[i].name, text) == 0)
            return units[i].ns;
    return 0;
}

// "NAME>VALUE", `length` bytes of it.
static bool explain_conditions_parse(const char *text, size_t length, condition_t *condition)
{
    char copy[64], *end;
    if (length >= sizeof(copy))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    char *sign = strchr(copy, '>');
    if (sign == NULL || sign == copy || (size_t)(sign - copy) >= sizeof(condition->name) || sign[1] < '0' ||
        sign[1] > '9')
        return false;
    *sign = '\0';
    memcpy(condition->name, copy, (size_t)(sign - copy) + 1);
    condition->value = strtod(sign + 1, &end);
    condition->is_time = *end != '\0';
    double unit = explain_conditions_unit(end);
    condition->value *= unit;
    bool must_be_time = strcmp(condition->name, "victim") == 0 || strcmp(condition->name, "p99") == 0;
    bool must_be_number = strcmp(condition->name, "findings") == 0;
    return unit > 0 && explain_conditions_is_known(condition->name) && (!must_be_time || condition->is_time) &&
           (!must_be_number || !condition->is_time);
}

int gp_explain_conditions_check(const char *conditions)
{
    condition_t condition;
    size_t count = 0;
    for (const char *at = conditions;; at++) {
        size_t length = strcspn(at, ",");
        if (count++ == GP_CONDITIONS_MAX)
            return gp_usage_error("explain", "--fail-on: more than %d conditions", GP_CONDITIONS_MAX);
        if (!explain_conditions_parse(at, length, &condition))
            return gp_usage_error(
                "explain",
                "--fail-on '%.*s': must be NAME>VALUE, such as victim>1s, p99>250ms, findings>0; NAME "
                "is %s",
                (int)length, at, known);
        at += length;
        if (*at == '\0')
            return 0;
    }
}

// Cost of the findings of a kind, or their number.
static double explain_conditions_of_kind(const condition_t *condition, const gp_findings_t *findings)
{
    bool any = strcmp(condition->name, "findings") == 0;
    double cost_ns = 0, count = 0;
    for (size_t i = 0; i < findings->count; i++) {
        const gp_finding_t *finding = &findings->items[i];
        if (any ? finding->rank != GP_FINDING_FAULT : strcmp(finding->kind, condition->name) != 0)
            continue;
        cost_ns += (double)finding->cost_ns;
        count++;
    }
    return condition->is_time ? cost_ns : count;
}

// Returns false where it is not known.
static bool explain_conditions_value(const condition_t *condition, const gp_findings_t *findings, double *value)
{
    if (strcmp(condition->name, "victim") == 0) {
        *value = (double)findings->victim_ns;
        return findings->is_victim_known;
    }
    if (strcmp(condition->name, "p99") == 0) {
        *value = (double)findings->p99_ns;
        return findings->requests > 0;
    }
    *value = explain_conditions_of_kind(condition, findings);
    return true;
}

static void explain_conditions_judge(const condition_t *condition, const gp_findings_t *findings,
                                     gp_condition_outcome_t *outcome)
{
    double value = 0;
    outcome->is_known = explain_conditions_value(condition, findings, &value);
    outcome->holds = outcome->is_known && value > condition->value;
    if (!outcome->is_known)
        snprintf(outcome->why, sizeof(outcome->why), "is not known: %s",
                 strcmp(condition->name, "p99") == 0 ? "there are no requests"
                                                     : "nothing says when a coroutine became ready");
    else if (outcome->holds && condition->is_time)
        snprintf(outcome->why, sizeof(outcome->why), "it is %.3f s", value / 1e9);
    else if (outcome->holds)
        snprintf(outcome->why, sizeof(outcome->why), "there are %.0f", value);
}

size_t gp_explain_conditions(const char *conditions, const gp_findings_t *findings,
                             gp_condition_outcome_t outcomes[GP_CONDITIONS_MAX])
{
    size_t count = 0;
    condition_t condition;
    for (const char *at = conditions; count < GP_CONDITIONS_MAX; at++) {
        size_t length = strcspn(at, ",");
        if (explain_conditions_parse(at, length, &condition)) {
            gp_condition_outcome_t *outcome = &outcomes[count++];
            *outcome = (gp_condition_outcome_t){.is_known = false};
            snprintf(outcome->text, sizeof(outcome->text), "%.*s", (int)length, at);
            explain_conditions_judge(&condition, findings, outcome);
        }
        at += length;
        if (*at == '\0')
            break;
    }
    return count;
}
