#include "trace_text.h"

#include <stddef.h>
#include <string.h>

static int digit(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) % 16 : -1;
}

// Read 32 digits that come in the groups of `groups`, '-' between them. Returns what is behind
// them, NULL if it is no id.
static const char *read_groups(const char *text, const int *groups, uint8_t id[16])
{
    size_t count = 0;

    for (size_t group = 0; groups[group] != 0; group++) {
        if (group > 0 && *text++ != '-')
            return NULL;
        for (int i = 0; i < groups[group]; i++, count++, text++) {
            int value = digit(*text);
            if (value < 0)
                return NULL;
            id[count / 2] = (uint8_t)(count % 2 == 0 ? value << 4 : id[count / 2] | value);
        }
    }
    return text;
}

static bool all_digits(const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (digit(text[i]) < 0)
            return false;
    return true;
}

// "00-<32>-<16>-<2>"; a later version may go on behind another '-', and ff is no version.
// Source: W3C Trace Context, 3.2.
static bool read_traceparent(const char *text, uint8_t id[16])
{
    static const int plain[] = {32, 0};
    enum { TRACEPARENT_LEN = 55 };

    if (strlen(text) < TRACEPARENT_LEN || !all_digits(text, 2) || strncmp(text, "ff", 2) == 0)
        return false;
    const char *rest = text[2] == '-' ? read_groups(text + 3, plain, id) : NULL;
    if (rest == NULL || rest[0] != '-' || !all_digits(rest + 1, 16) || rest[17] != '-' ||
        !all_digits(rest + 18, 2))
        return false;
    return rest[20] == '\0' || (rest[20] == '-' && strncmp(text, "00", 2) != 0);
}

bool gp_trace_text_parse(const char *text, uint8_t id[16])
{
    static const int plain[] = {32, 0}, uuid[] = {8, 4, 4, 4, 12, 0};
    static const uint8_t none[16];

    if (!read_traceparent(text, id)) {
        const char *rest = read_groups(text, strlen(text) == 36 ? uuid : plain, id);
        if (rest == NULL || *rest != '\0')
            return false;
    }
    return memcmp(id, none, sizeof(none)) != 0;
}
