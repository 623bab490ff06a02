// SPDX-License-Identifier: MIT
#include "explain_conditions.h"

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
    "lost-data, no-names, start-up or hot-code";

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
    if (sign == NULL || (size_t)(sign - copy) >= sizeof(condition->name) || sign[1] < '0' || sign[1] > '9')
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
    for (const char *at = conditions;; at++) {
        size_t length = strcspn(at, ",");
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

int gp_explain_conditions(const char *conditions, const gp_findings_t *findings, const char *path)
{
    int holds = 0;
    double value;
    condition_t condition;
    for (const char *at = conditions;; at++) {
        size_t length = strcspn(at, ",");
        if (!explain_conditions_parse(at, length, &condition))
            return -1; // it has been checked
        if (!explain_conditions_value(&condition, findings, &value)) {
            gp_fail(path, "--fail-on %.*s: is not known: %s", (int)length, at,
                    strcmp(condition.name, "p99") == 0 ? "there are no requests"
                                                       : "nothing says when a coroutine became ready");
            return -1;
        }
        if (value > condition.value) {
            holds++;
            if (condition.is_time)
                gp_fail(path, "--fail-on %.*s: it is %.3f s", (int)length, at, value / 1e9);
            else
                gp_fail(path, "--fail-on %.*s: there are %.0f", (int)length, at, value);
        }
        at += length;
        if (*at == '\0')
            return holds;
    }
}
