// SPDX-License-Identifier: MIT
// Whose spans they are: names that are safe as parts of a file name.
#pragma once

#include <stdint.h>
#include <string.h>

enum { GP_IDENTITY_MAX = 64 };

typedef struct gp_identity {
    char service[GP_IDENTITY_MAX], host[GP_IDENTITY_MAX]; // as gp_identity_name() leaves them
    int32_t pid;
} gp_identity_t;

// Keep letters, digits, '_', '-' and, but for the first place, '.'; anything else becomes '_'.
static inline void gp_identity_name(char name[GP_IDENTITY_MAX], const char *text)
{
    size_t len = strnlen(text, GP_IDENTITY_MAX - 1);
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        int is_kept =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
        name[i] = is_kept || (c == '.' && i > 0) ? c : '_';
    }
    if (len == 0)
        name[len++] = '_';
    name[len] = '\0';
}
