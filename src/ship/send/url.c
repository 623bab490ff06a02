// SPDX-License-Identifier: MIT
#include "ship/send/url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/secret.h"

// Decode %XX of [from, to) into memory of its own. NULL: memory is short, or one is no such.
static char *url_decoded(const char *from, const char *to)
{
    char *text = strndup(from, (size_t)(to - from));
    if (text == NULL || gp_hex_decode_percent(text, (size_t)(to - from)) == 0)
        return text;
    free(text);
    return NULL;
}

static int url_wrong(char *error, const char *what)
{
    snprintf(error, GP_FLEET_ERROR_SIZE, "%s", what);
    return -EINVAL;
}

static int url_parse_options(gp_fleet_url_t *url, const char *at, char *error)
{
    size_t count = 1;
    for (const char *c = at; *c != '\0'; c++)
        count += *c == '&';
    url->options = calloc(count, sizeof(*url->options));
    if (url->options == NULL)
        return -ENOMEM;
    while (*at != '\0') {
        size_t len = strcspn(at, "&");
        const char *equals = memchr(at, '=', len);
        if (equals == NULL || equals == at)
            return url_wrong(error, "options behind '?' are NAME=VALUE, with '&' between them");
        gp_row_pair_t *option = &url->options[url->option_count++];
        option->key = url_decoded(at, equals);
        option->value = url_decoded(equals + 1, at + len);
        if (option->key == NULL || option->value == NULL)
            return url_wrong(error, "has a % that no two hex digits follow");
        at += len + (at[len] == '&');
    }
    return 0;
}

// [user[:password]@]host[:port]
static int url_parse_authority(gp_fleet_url_t *url, const char *at, const char *end, char *error)
{
    const char *host = at, *colon = NULL;
    for (const char *c = at; c < end; c++)
        host = *c == '@' ? c + 1 : host;
    if (host > at) {
        const char *user_end = memchr(at, ':', (size_t)(host - 1 - at));
        url->user = url_decoded(at, user_end != NULL ? user_end : host - 1);
        url->password = user_end != NULL ? url_decoded(user_end + 1, host - 1) : strdup("");
    } else {
        url->user = strdup("");
        url->password = strdup("");
    }
    for (const char *c = host; c < end; c++)
        colon = *c == ':' ? c : *c == ']' || *c == ',' ? NULL : colon;
    // Several hosts may each have a port: ports stay in the host.
    bool several = memchr(host, ',', (size_t)(end - host)) != NULL;
    if (colon != NULL && !several) {
        char *rest = NULL;
        unsigned long port = strtoul(colon + 1, &rest, 10);
        if (rest != end || port == 0 || port > 65535)
            return url_wrong(error, "has no port number behind the host");
        url->port = (unsigned)port;
        end = colon;
    }
    url->host = url_decoded(host, end);
    if (url->user == NULL || url->password == NULL || url->host == NULL)
        return url_wrong(error, "has a % that no two hex digits follow");
    return 0;
}

int gp_fleet_url_parse(gp_fleet_url_t *url, const char *text, char error[GP_FLEET_ERROR_SIZE])
{
    *url = (gp_fleet_url_t){.text = strdup(text)};
    const char *authority = strstr(text, "://");
    if (url->text == NULL)
        return -ENOMEM;
    if (authority == NULL || authority == text)
        return url_wrong(error, "is no URL: SCHEME://HOST[:PORT][/PATH][?NAME=VALUE&...]");
    url->scheme = strndup(text, (size_t)(authority - text));
    authority += 3;
    const char *path = authority + strcspn(authority, "/?"), *options = path + strcspn(path, "?");
    int result = url_parse_authority(url, authority, path, error);
    url->path = url_decoded(path, options);
    if (result == 0 && (url->path == NULL || url->scheme == NULL))
        result = url_wrong(error, "has a % that no two hex digits follow");
    if (result == 0)
        result = url_parse_options(url, *options == '?' ? options + 1 : options, error);
    if (result == 0) {
        url->shown = gp_secret_masked(url->text, "");
        result = url->shown == NULL ? -ENOMEM : 0;
    }
    return result;
}

const char *gp_fleet_url_option(const gp_fleet_url_t *url, const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i < url->option_count; i++)
        if (strcmp(url->options[i].key, name) == 0)
            value = url->options[i].value;
    return value;
}

const char *gp_fleet_url_unknown(const gp_fleet_url_t *url, const char *const *names)
{
    for (size_t i = 0; i < url->option_count; i++) {
        size_t n = 0;
        while (names[n] != NULL && strcmp(names[n], url->options[i].key) != 0)
            n++;
        if (names[n] == NULL)
            return url->options[i].key;
    }
    return NULL;
}

void gp_fleet_url_free(gp_fleet_url_t *url)
{
    for (size_t i = 0; i < url->option_count; i++) {
        free((char *)url->options[i].key);
        free((char *)url->options[i].value);
    }
    free(url->options);
    free(url->text);
    free(url->shown);
    free(url->scheme);
    free(url->user);
    free(url->password);
    free(url->host);
    free(url->path);
    *url = (gp_fleet_url_t){0};
}
