// SPDX-License-Identifier: MIT
#include "store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "message.h"
#include "progress.h"
#include "report/report.h"
#include "ship/ask/ask.h"

static const char *const groups[] = {"service", "host", "version", "endpoint"};

bool gp_store_is_url(const char *operand)
{
    return gp_ask_is_url(operand);
}

// The group of --by, as only a store can divide its samples; else NULL.
static const char *store_group_of(const gp_arguments_t *arguments)
{
    for (size_t i = 0; arguments->by != NULL && i < sizeof(groups) / sizeof(groups[0]); i++)
        if (strcmp(arguments->by, groups[i]) == 0)
            return groups[i];
    return NULL;
}

static bool store_is_by(const gp_arguments_t *arguments, const char *by)
{
    return arguments->by != NULL && strcmp(arguments->by, by) == 0;
}

bool gp_store_has_paths(const gp_arguments_t *arguments)
{
    return arguments->operand_count > 0 && gp_ask_is_url(arguments->operands[0]) &&
           store_is_by(arguments, "critical-path");
}

int gp_store_check(const gp_arguments_t *arguments)
{
    const char *command = arguments->command->name;
    bool any = false, all = arguments->operand_count > 0;
    for (int i = 0; i < arguments->operand_count; i++) {
        any |= gp_ask_is_url(arguments->operands[i]);
        all &= gp_ask_is_url(arguments->operands[i]);
    }
    size_t filters = arguments->service.count + arguments->host.count + arguments->version.count +
                     arguments->endpoint.count + arguments->label.count;
    if (!all && store_group_of(arguments) != NULL)
        return gp_usage_error(command, "--by %s needs a store, clickhouse://...: a capture is of one process",
                              arguments->by);
    if (!any && filters > 0)
        return gp_usage_error(command, "--service, --host, --version, --endpoint and --label choose in a store, "
                                       "clickhouse://...");
    if (any && (!all || arguments->operand_count > 1) &&
        (store_is_by(arguments, "request") || store_is_by(arguments, "critical-path")))
        return gp_usage_error(command, "--by %s takes captures or one store, not both", arguments->by);
    return 0;
}

// Only what shows coroutines asks for their names: a question about all of a fleet is faster without.
static const char *store_divided_by(const gp_arguments_t *arguments, unsigned wants)
{
    const char *group = store_group_of(arguments);
    bool names = wants & (GP_WANT_LABELS | GP_WANT_HEAVIEST | GP_WANT_TIMELINE | GP_WANT_PAGE) ||
                 store_is_by(arguments, "coroutine") || arguments->choice.names.count > 0 ||
                 arguments->choice.coroutines.count > 0;
    return group != NULL ? group : names ? "coroutine" : NULL;
}

static enum gp_row_measure store_measure_of(const gp_arguments_t *arguments)
{
    return store_is_by(arguments, "critical-path") ? GP_ROW_CRITICAL_PATH
           : store_is_by(arguments, "victim-time") ? GP_ROW_VICTIM_TIME
                                                   : GP_ROW_TIME;
}

static void store_add_filters(gp_row_pair_t *filters, size_t *count, const char *name, const gp_texts_t *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        filters[(*count)++] = (gp_row_pair_t){name, texts->items[i]};
}

int gp_store_filters(const gp_arguments_t *arguments, gp_store_filters_t *filters)
{
    const struct {
        const char *name;
        const gp_texts_t *texts;
    } all[] = {{"service", &arguments->service},   {"host", &arguments->host},   {"version", &arguments->version},
               {"endpoint", &arguments->endpoint}, {"label", &arguments->label}, {"trace", &arguments->choice.traces}};
    enum { COUNT = sizeof(all) / sizeof(all[0]) };
    size_t room = 1;
    for (size_t i = 0; i < COUNT; i++)
        room += all[i].texts->count;
    *filters = (gp_store_filters_t){.items = calloc(room, sizeof(*filters->items))};
    if (filters->items == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < COUNT; i++)
        store_add_filters(filters->items, &filters->count, all[i].name, all[i].texts);
    return 0;
}

int gp_store_open(const gp_arguments_t *arguments, int operand, unsigned wants)
{
    char error[GP_FLEET_ERROR_SIZE] = "";
    const char *url = arguments->operands[operand];
    gp_store_filters_t filters;
    char *shown = gp_ask_shown(url);
    if (gp_store_filters(arguments, &filters) < 0 || shown == NULL) {
        free(filters.items);
        free(shown);
        gp_fail("command line", "%s", strerror(ENOMEM));
        return -1;
    }
    bool is_report = arguments->command == &gp_commands[GP_COMMAND_REPORT];
    bool is_diff = arguments->command == &gp_commands[GP_COMMAND_DIFF];
    gp_ask_t ask = {
        .by = store_divided_by(arguments, wants),
        .measure = store_measure_of(arguments),
        .with_traces = arguments->choice.traces.count > 0 || store_is_by(arguments, "trace"),
        .with_times = arguments->choice.from != NULL || arguments->choice.to != NULL,
        .with_errors = is_report || is_diff || wants & GP_WANT_PAGE,
        .with_hosts = is_report && store_measure_of(arguments) == GP_ROW_TIME,
        .is_wall = arguments->clock != NULL && strcmp(arguments->clock, "wall") == 0,
        .filters = filters.items,
        .filter_count = filters.count,
    };
    gp_progress_begin("asking", shown, -1);
    int fd = gp_ask(url, &ask, error);
    gp_progress_end();
    free(filters.items);
    arguments->operands[operand] = shown; // for all messages and pages from here on; as long as the process
    if (fd < 0)
        gp_fail(shown, "%s", error);
    return fd < 0 ? -1 : fd;
}
