// SPDX-License-Identifier: MIT
// The restrictions of a command line: -r, --callers, --callees, -n.
#pragma once

#include "options.h"
#include "row_limit.h"

typedef struct gp_restriction_list {
    gp_row_limit_t *items;
    size_t count;
} gp_restriction_list_t;

// Make the list: first `first`, then -r, then -n.
//   option, first: an option and its values, which come first; NULL = none.
// Returns 0 or an exit status, with a message. Free the list in both cases.
int gp_restriction_list_make(gp_restriction_list_t *list, const gp_arguments_t *arguments, const char *option,
                             const gp_texts_t *first);

gp_row_limits_t gp_restriction_list_items(const gp_restriction_list_t *list);

void gp_restriction_list_free(gp_restriction_list_t *list);
