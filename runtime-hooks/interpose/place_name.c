// SPDX-License-Identifier: MIT
// Reading a runtime's objects by known layouts: the kernel copies, so that a missing page is no fault.
#include <stdio.h>
#include <string.h>

#include "interpose/interpose.h"

void gp_hook_name_place(char *name, size_t size, const char *path, unsigned long line)
{
    char number[24];
    const char *slash = strrchr(path, '/'), *file = slash != NULL ? slash + 1 : path;
    int digits = snprintf(number, sizeof(number), ":%lu", line);
    size_t room = size - sizeof("fiber at ") - (size_t)digits, len = strlen(file);
    // The end of a long name tells more.
    snprintf(name, size, "fiber at %s%s", len > room ? file + len - room : file, number);
}
