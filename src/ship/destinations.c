// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <string.h>

#include "ship/send/destination.h"
#include "ship_destinations.h"

#define DECLARE(scheme, name) extern const gp_destination_kind_t gp_destination_##name;
GP_DESTINATIONS(DECLARE)

static const struct {
    const char *scheme;
    const gp_destination_kind_t *kind;
} rows[] = {
#define ROW(scheme, name) {scheme, &gp_destination_##name},
    GP_DESTINATIONS(ROW)};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

const gp_destination_kind_t *gp_destination_find(const char *scheme)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].scheme, scheme) == 0)
            return rows[i].kind;
    return NULL;
}

const char *gp_destination_schemes(char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; i < ROWS; i++) {
        size_t len = strlen(text);
        snprintf(text + len, size - len, "%s%s", i == 0 ? "" : i + 1 < ROWS ? ", " : " and ", rows[i].scheme);
    }
    return text;
}
