// SPDX-License-Identifier: MIT
#include "consumer/url.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/number.h"

static const char *const common[] = {"queue", "slower", "spool", "spool_size", NULL};

static const char *url_options_of(const char *url)
{
    const char *mark = strchr(url, '?');
    return mark != NULL ? mark + 1 : "";
}

int gp_url_rest(const char *url, char rest[GP_URL_MAX])
{
    const char *begin = strchr(url, ':');
    if (begin == NULL)
        return -EINVAL;
    size_t len = strcspn(++begin, "?");
    if (len >= GP_URL_MAX)
        return -EINVAL;
    memcpy(rest, begin, len);
    rest[len] = '\0';
    return (int)len;
}

bool gp_url_option(const char *url, const char *name, char value[GP_URL_MAX])
{
    size_t name_len = strlen(name);
    for (const char *at = url_options_of(url); *at != '\0';) {
        size_t len = strcspn(at, "&");
        if (len > name_len && len - name_len < GP_URL_MAX && strncmp(at, name, name_len) == 0 && at[name_len] == '=') {
            memcpy(value, at + name_len + 1, len - name_len - 1);
            value[len - name_len - 1] = '\0';
            return gp_url_decode(value);
        }
        at += len + (at[len] == '&');
    }
    return false;
}

static bool url_is_among(const char *name, size_t len, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strlen(*names) == len && strncmp(*names, name, len) == 0)
            return true;
    return false;
}

bool gp_url_options_are(const char *url, const char *const *names)
{
    for (const char *at = url_options_of(url); *at != '\0';) {
        size_t len = strcspn(at, "&"), name_len = strcspn(at, "=&");
        if (name_len + 1 >= len || (!url_is_among(at, name_len, names) && !url_is_among(at, name_len, common)))
            return false;
        at += len + (at[len] == '&');
    }
    return true;
}

bool gp_url_decode(char *text)
{
    return gp_hex_decode_percent(text, strlen(text)) == 0;
}

bool gp_url_duration(const char *text, uint64_t *ns)
{
    const char *unit;
    double number = gp_number_read(text, &unit);
    double scale = strcmp(unit, "s") == 0 ? 1e9 : strcmp(unit, "ms") == 0 ? 1e6 : strcmp(unit, "us") == 0 ? 1e3 : 0;
    if (unit == text || scale == 0 || !(number >= 0 && number <= 86400))
        return false;
    *ns = (uint64_t)(number * scale);
    return true;
}

bool gp_url_size(const char *text, uint64_t *bytes)
{
    char *unit;
    if (text[0] < '0' || text[0] > '9')
        return false;
    uint64_t number = strtoull(text, &unit, 10);
    unsigned shift = *unit == 'K' ? 10 : *unit == 'M' ? 20 : *unit == 'G' ? 30 : 0;
    if (unit[shift != 0] != '\0' || number > UINT64_MAX >> shift >> 1)
        return false;
    *bytes = number << shift;
    return true;
}
