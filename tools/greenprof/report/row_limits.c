// SPDX-License-Identifier: MIT
#include "row_limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"

static int row_limits_check_restriction(const char *command, const char *option, const gp_row_limit_t *restriction)
{
    char error[128];
    if (restriction->kind == GP_RESTRICT_BAD_FRACTION)
        return gp_usage_error(command, "%s %s: a fraction is from 0 to 1", option, restriction->text);
    if (restriction->kind != GP_RESTRICT_BAD_REGEX)
        return 0;
    regerror(restriction->error, &restriction->regex, error, sizeof(error));
    return gp_usage_error(command, "%s '%s': %s", option, restriction->text, error);
}

static int row_limits_add_texts(gp_restriction_list_t *list, const char *command, const char *option,
                                const gp_texts_t *texts)
{
    int status = 0;
    for (size_t i = 0; i < texts->count && status == 0; i++) {
        gp_row_limit_parse(&list->items[list->count], texts->items[i]);
        status = row_limits_check_restriction(command, option, &list->items[list->count++]);
    }
    return status;
}

int gp_restriction_list_make(gp_restriction_list_t *list, const gp_arguments_t *arguments, const char *option,
                             const gp_texts_t *first)
{
    const char *command = arguments->command->name;
    size_t count = first != NULL ? first->count : 0;
    int status = 0;
    list->count = 0;
    list->items = calloc(count + arguments->restrictions.count + 1, sizeof(*list->items));
    if (list->items == NULL)
        return gp_fail("command line", "%s", strerror(ENOMEM));
    if (first != NULL)
        status = row_limits_add_texts(list, command, option, first);
    if (status == 0)
        status = row_limits_add_texts(list, command, "-r", &arguments->restrictions);
    if (status == 0 && arguments->rows > 0)
        gp_row_limit_count(&list->items[list->count++], (int64_t)arguments->rows);
    return status;
}

gp_row_limits_t gp_restriction_list_items(const gp_restriction_list_t *list)
{
    return (gp_row_limits_t){list->items, list->count};
}

void gp_restriction_list_free(gp_restriction_list_t *list)
{
    for (size_t i = 0; i < list->count; i++)
        gp_row_limit_free(&list->items[i]);
    free(list->items);
    *list = (gp_restriction_list_t){0};
}
