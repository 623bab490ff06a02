// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <string.h>

#include "ship/send/sends.h"

static const gp_destination_kind_t *const kinds[] = {
    &gp_destination_clickhouse,     &gp_destination_otlp_http,       &gp_destination_otlp_https,
    &gp_destination_pyroscope_http, &gp_destination_pyroscope_https, &gp_destination_s3_http,
    &gp_destination_s3_https,       &gp_destination_directory,       &gp_destination_slow,
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

const gp_destination_kind_t *gp_destination_find(const char *scheme)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(kinds[i]->scheme, scheme) == 0)
            return kinds[i];
    return NULL;
}

const char *gp_destination_schemes(char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; i < KINDS; i++) {
        size_t len = strlen(text);
        snprintf(text + len, size - len, "%s%s", i == 0 ? "" : i + 1 < KINDS ? ", " : " and ", kinds[i]->scheme);
    }
    return text;
}
