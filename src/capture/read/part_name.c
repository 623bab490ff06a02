// SPDX-License-Identifier: MIT
#include "capture/read/part_name.h"

#include <string.h>

enum { DIGITS_MIN = 4 };

size_t gp_part_stem_len(const char *name)
{
    size_t len = strlen(name), suffix = strlen(GP_CAPTURE_SUFFIX), at;
    if (len > suffix && strcmp(name + len - suffix, GP_CAPTURE_SUFFIX) == 0)
        len -= suffix;
    for (at = len; at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9';)
        at--;
    return at > 1 && len - at >= DIGITS_MIN && name[at - 1] == '-' ? at - 1 : len;
}

bool gp_part_is_beside(const char *name, const char *other)
{
    size_t len = gp_part_stem_len(name);
    return len == gp_part_stem_len(other) && strncmp(name, other, len) == 0;
}
