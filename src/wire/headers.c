// SPDX-License-Identifier: MIT
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "wire/formats.h"

static bool headers_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool gp_text(const char *value, size_t max, gp_header_text_t *text)
{
    size_t len = strnlen(value, max + 1);
    if (len > max)
        return false;
    while (len > 0 && headers_is_blank(value[len - 1]))
        len--;
    while (len > 0 && headers_is_blank(*value))
        value++, len--;
    *text = (gp_header_text_t){value, len};
    return true;
}

bool gp_header_is(const prof_header_t *header, const char *name)
{
    return header->name != NULL && header->value != NULL && strcasecmp(header->name, name) == 0;
}

int gp_header_find(const prof_header_t *headers, size_t count, const char *name, size_t max, gp_header_text_t *value)
{
    const prof_header_t *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!gp_header_is(&headers[i], name))
            continue;
        if (found != NULL)
            return -EINVAL;
        found = &headers[i];
    }
    if (found == NULL)
        return -ENOENT;
    return gp_text(found->value, max, value) ? 0 : -E2BIG;
}

bool gp_trace_is_none(const prof_trace_id_t *id)
{
    static const prof_trace_id_t none;
    return memcmp(id, &none, sizeof(none)) == 0;
}
