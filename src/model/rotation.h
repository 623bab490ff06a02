// SPDX-License-Identifier: MIT
// When a capture is put aside and another one begun, as users write it: a size (500M), a time (30s, 10m, 6h), or both
// with a comma between, and then what comes first.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/size_limit.h"

#define GP_ROTATION_WORDS "a size from 64K on, as 500M, a time, as 30s, 10m or 6h, or both: 500M,6h"

typedef struct gp_rotation {
    uint64_t bytes, ns; // 0 = whatever it has, takes
} gp_rotation_t;

// From a second to ten years.
static inline bool gp_rotation_parse_time(const char *text, uint64_t *ns)
{
    enum { YEARS = 10 };
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    uint64_t number = strtoull(text, &end, 10);
    uint64_t seconds = *end == 's' ? 1 : *end == 'm' ? 60 : *end == 'h' ? 3600 : 0;
    if (seconds == 0 || end[1] != '\0' || number == 0 || number > YEARS * 365ull * 86400 / seconds)
        return false;
    *ns = number * seconds * 1000000000u;
    return true;
}

// Returns whether `text` is one.
static inline bool gp_rotation_parse(const char *text, gp_rotation_t *rotation)
{
    char words[64], *comma;
    *rotation = (gp_rotation_t){0};
    if (strlen(text) >= sizeof(words))
        return false;
    strcpy(words, text);
    for (char *word = words; word != NULL; word = comma) {
        comma = strchr(word, ',');
        if (comma != NULL)
            *comma++ = '\0';
        bool is_time = rotation->ns == 0 && gp_rotation_parse_time(word, &rotation->ns);
        if (!is_time && (rotation->bytes != 0 || !gp_size_limit_parse(word, &rotation->bytes)))
            return false;
    }
    return true;
}
