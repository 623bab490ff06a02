// SPDX-License-Identifier: MIT
// A destination's or a store's URL: scheme://[user[:password]@]host[:port][/path][?name=value&...], %XX decoded.
//
// Threads: an URL belongs to one at a time. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ship/rows/row.h"

typedef struct gp_fleet_url {
    char *text;                          // as it was given
    char *shown;                         // the same without the password: for messages
    char *scheme;                        // "clickhouse", "otlp+http"
    char *user, *password, *host, *path; // "" where there is none; the path begins with '/'
    unsigned port;                       // 0 = none
    gp_row_pair_t *options;              // [option_count], in their order
    size_t option_count;
} gp_fleet_url_t;

enum { GP_FLEET_ERROR_SIZE = 256 };

// Take a text apart. Returns 0, or -EINVAL and what is wrong; free it in both cases.
int gp_fleet_url_parse(gp_fleet_url_t *url, const char *text, char error[GP_FLEET_ERROR_SIZE]);

// The last value of an option; NULL where it is not there.
const char *gp_fleet_url_option(const gp_fleet_url_t *url, const char *name);

// Whether all options are among `names` (ended by NULL). Returns the first that is not, or NULL.
const char *gp_fleet_url_unknown(const gp_fleet_url_t *url, const char *const *names);

void gp_fleet_url_free(gp_fleet_url_t *url);
