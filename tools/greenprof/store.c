// SPDX-License-Identifier: MIT
#include "store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "fleet/ask.h"
#include "message.h"
#include "progress.h"

static const char *const groups[] = {"service", "host", "version", "endpoint"};

bool gp_store_is_url(const char *operand)
{
    return gp_ask_is_url(operand);
}

// What --by divides a store's samples into, as only a store can; else NULL.
static const char *group_of(const gp_arguments_t *arguments)
{
    for (size_t i = 0; arguments->by != NULL && i < sizeof(groups) / sizeof(groups[0]); i++)
        if (strcmp(arguments->by, groups[i]) == 0)
            return groups[i];
    return NULL;
}

static bool needs_spans(const char *by)
{
    return by != NULL &&
           (strcmp(by, "request") == 0 || strcmp(by, "critical-path") == 0 || strcmp(by, "victim-time") == 0);
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
    if (!all && group_of(arguments) != NULL)
        return gp_usage_error(command, "--by %s needs a store, clickhouse://...: a capture is of one process",
                              arguments->by);
    if (!any && filters > 0)
        return gp_usage_error(command, "--service, --host, --version, --endpoint and --label choose in a store, "
                                       "clickhouse://...");
    if (any && needs_spans(arguments->by))
        return gp_usage_error(command, "--by %s needs captures: a store has sums of samples", arguments->by);
    return 0;
}

static void add_filters(gp_row_pair_t *filters, size_t *count, const char *name, const gp_texts_t *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        filters[(*count)++] = (gp_row_pair_t){name, texts->items[i]};
}

int gp_store_open(const gp_arguments_t *arguments, int operand)
{
    const struct {
        const char *name;
        const gp_texts_t *texts;
    } all[] = {{"service", &arguments->service},   {"host", &arguments->host},   {"version", &arguments->version},
               {"endpoint", &arguments->endpoint}, {"label", &arguments->label}, {"trace", &arguments->choice.traces}};
    enum { COUNT = sizeof(all) / sizeof(all[0]) };
    char error[GP_FLEET_ERROR_SIZE] = "";
    const char *url = arguments->operands[operand];
    size_t room = 1;
    for (size_t i = 0; i < COUNT; i++)
        room += all[i].texts->count;
    gp_row_pair_t *filters = calloc(room, sizeof(*filters));
    char *shown = gp_ask_shown(url);
    if (filters == NULL || shown == NULL) {
        free(filters);
        free(shown);
        gp_fail("command line", "%s", strerror(ENOMEM));
        return -1;
    }
    gp_ask_t ask = {
        .by = group_of(arguments),
        .with_traces =
            arguments->choice.traces.count > 0 || (arguments->by != NULL && strcmp(arguments->by, "trace") == 0),
        .with_times = arguments->choice.from != NULL || arguments->choice.to != NULL,
        .is_wall = arguments->clock != NULL && strcmp(arguments->clock, "wall") == 0,
        .filters = filters,
    };
    for (size_t i = 0; i < COUNT; i++)
        add_filters(filters, &ask.filter_count, all[i].name, all[i].texts);
    gp_progress_begin("asking", shown, -1);
    int fd = gp_ask(url, &ask, error);
    gp_progress_end();
    free(filters);
    arguments->operands[operand] = shown; // for all messages and pages from here on; as long as the process
    if (fd < 0)
        gp_fail(shown, "%s", error);
    return fd < 0 ? -1 : fd;
}
