// SPDX-License-Identifier: MIT
// A store's URL where a FILE may stand: what it has is asked for, and read as a capture.
#pragma once

#include "options.h"

bool gp_store_is_url(const char *operand);

// Check whether options for stores have one, and whether a store can answer the others.
// Returns 0 or EXIT_USAGE, with a message.
int gp_store_check(const gp_arguments_t *arguments);

// Ask. The operand has no password from then on.
//   wants: enum gp_want bits: what is not wanted is not asked for.
// Returns a descriptor of the capture, or -1 with a message.
int gp_store_open(const gp_arguments_t *arguments, int operand, unsigned wants);

typedef struct gp_store_filters { // as chosen by options
    struct gp_row_pair *items;    // [count]; to be freed, the texts are the arguments'
    size_t count;
} gp_store_filters_t;
// Returns 0 or -ENOMEM.
int gp_store_filters(const gp_arguments_t *arguments, gp_store_filters_t *filters);

// Print requests of a store: `report --by request`. Returns an exit status, with a message.
struct gp_table_options;
int gp_store_print_requests(const gp_arguments_t *arguments, const struct gp_table_options *options);

// Print which coroutines kept a thread from which others: above `report --by victim-time`. Returns as that.
int gp_store_print_delays(const gp_arguments_t *arguments);

// Is it the URL of a store, asked for critical paths? They come as samples of requests, not as requests.
bool gp_store_has_paths(const gp_arguments_t *arguments);
