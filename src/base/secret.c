// SPDX-License-Identifier: MIT
#include "base/secret.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/stream.h"

typedef struct url {
    const char *scheme, *authority, *end;
} url_t;

static bool secret_is_scheme(char c)
{
    return isalnum((unsigned char)c) || c == '+' || c == '-' || c == '.';
}

// The next URL in a text. Returns false: there is none.
static bool secret_next_url(const char *text, const char *from, url_t *url)
{
    const char *mark = strstr(from, "://");
    if (mark == NULL)
        return false;
    url->authority = mark + 3;
    for (url->scheme = mark; url->scheme > from && secret_is_scheme(url->scheme[-1]);)
        url->scheme--;
    bool is_all = url->scheme == text;
    url->end = url->authority + (is_all ? strlen(url->authority) : strcspn(url->authority, " \t\r\n\"'<>"));
    return true;
}

static const char *secret_last(const char *from, const char *to, char c)
{
    for (; to > from; to--)
        if (to[-1] == c)
            return to - 1;
    return NULL;
}

// A number between a host and a path is a port, wherever an '@' follows.
static bool secret_is_port(const url_t *url, const char *colon, const char *at)
{
    size_t digits = strspn(colon + 1, "0123456789");
    const char *behind = colon + 1 + digits;
    bool is_behind_options = memchr(behind, '?', (size_t)(at - behind)) != NULL;
    return colon > url->authority && digits > 0 && (*behind == '/' || *behind == '?') &&
           (is_behind_options || strncasecmp(url->scheme, "http", 4) == 0);
}

// The '@' before the host; `*colon` is where the password begins. A password may hold any character, also '/' and '?'.
// Returns the '@', or NULL: there is no password.
static const char *secret_password(const url_t *url, const char **colon)
{
    size_t len = (size_t)(url->end - url->authority);
    const char *options = memchr(url->authority, '?', len);
    const char *at = secret_last(url->authority, options != NULL ? options : url->end, '@');
    at = at != NULL ? at : secret_last(url->authority, url->end, '@');
    if (at == NULL)
        return NULL;
    *colon = memchr(url->authority, ':', (size_t)(at - url->authority));
    if (*colon == NULL) {
        *colon = url->authority; // redis://PASSWORD@HOST, as its clients take it
        return strncasecmp(url->scheme, "redis", 5) == 0 && at > url->authority ? at : NULL;
    }
    return secret_is_port(url, *colon, at) ? NULL : at;
}

// Does [at, ...) begin with the name of an option that is a secret, and '='? Returns the length of both, or 0.
static size_t secret_option(const char *at)
{
    static const char *const names[] = {"password",   "passwd",       "pass",       "pwd",  "secret",
                                        "token",      "api_key",      "apikey",     "auth", "secret_key",
                                        "access_key", "access_token", "sslpassword"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t len = strlen(names[i]);
        if (strncasecmp(at, names[i], len) == 0 && at[len] == '=')
            return len + 1;
    }
    return 0;
}

static void secret_copy(FILE *out, const char *from, const char *to)
{
    fwrite(from, 1, (size_t)(to - from), out);
}

static void secret_copy_options(FILE *out, const char *from, const char *end, const char *instead)
{
    for (const char *at = from; at < end; at++) {
        size_t name = *at == '?' || *at == '&' ? secret_option(at + 1) : 0;
        if (name == 0)
            continue;
        secret_copy(out, from, at + 1 + name);
        fputs(instead, out);
        from = at + 1 + name;
        while (from < end && *from != '&')
            from++;
        at = from - 1;
    }
    secret_copy(out, from, end);
}

static void secret_copy_url(FILE *out, const url_t *url, const char *instead)
{
    const char *colon = url->authority, *at = secret_password(url, &colon);
    if (at != NULL) {
        secret_copy(out, url->authority, colon);
        if (instead[0] != '\0')
            fprintf(out, ":%s", instead);
        // A user that has no name is left out, with the '@'.
        at += instead[0] == '\0' && colon == url->authority;
    }
    secret_copy_options(out, at != NULL ? at : url->authority, url->end, instead);
}

char *gp_secret_masked(const char *text, const char *instead)
{
    char *copy = NULL;
    const char *from = text;
    size_t size;
    FILE *out = open_memstream(&copy, &size);
    if (out == NULL)
        return NULL;
    for (url_t url; secret_next_url(text, from, &url); from = url.end) {
        secret_copy(out, from, url.authority);
        secret_copy_url(out, &url, instead);
    }
    fputs(from, out);
    if (gp_stream_close(out))
        return copy;
    free(copy);
    return NULL;
}

void gp_secret_remove(char *text)
{
    if (strstr(text, "://") == NULL)
        return;
    char *masked = gp_secret_masked(text, "");
    strcpy(text, masked != NULL ? masked : "");
    free(masked);
}
