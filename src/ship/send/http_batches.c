// SPDX-License-Identifier: MIT
#include "ship/send/http_batches.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

enum { SHOWN_MAX = 160 };

static bool http_batches_is_known(const char *name, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

static int http_batches_check_options(const gp_fleet_url_t *url, const char *const *names, char *error)
{
    for (size_t i = 0; i < url->option_count; i++)
        if (!http_batches_is_known(url->options[i].key, names) &&
            !http_batches_is_known(url->options[i].key, gp_http_option_names)) {
            snprintf(error, GP_FLEET_ERROR_SIZE, "%.200s: unknown option", url->options[i].key);
            return -EINVAL;
        }
    return 0;
}

// The URL's path goes as it was given, its special characters as %XX again.
static char *http_batches_put_path(char *at, const char *end, const char *path)
{
    for (const char *rest = path; at != NULL && *rest == '/';) {
        char part[1024];
        size_t len = strcspn(++rest, "/");
        if (len >= sizeof(part) || end - at < 2)
            return NULL;
        memcpy(part, rest, len);
        part[len] = '\0';
        rest += len;
        if (len == 0)
            continue;
        *at++ = '/';
        at = gp_http_escape(at, end, part);
    }
    return at;
}

static int http_batches_set_base(gp_http_batches_t *post, const gp_fleet_url_t *url)
{
    const char *plus = strchr(url->scheme, '+');
    bool is_v6 = strchr(url->host, ':') != NULL && url->host[0] != '[';
    char port[16] = "";
    if (url->port != 0)
        snprintf(port, sizeof(port), ":%u", url->port);
    int len = snprintf(post->base, sizeof(post->base), "%s://%s%s%s%s", plus != NULL ? plus + 1 : "http",
                       is_v6 ? "[" : "", url->host, is_v6 ? "]" : "", port);
    if (len < 0 || (size_t)len >= sizeof(post->base) ||
        http_batches_put_path(post->base + len, post->base + sizeof(post->base), url->path) == NULL)
        return -EINVAL;
    return 0;
}

int gp_http_batches_open(gp_http_batches_t *post, const gp_fleet_url_t *url, const char *const *names,
                         char error[GP_FLEET_ERROR_SIZE])
{
    int result = http_batches_check_options(url, names, error);
    *post = (gp_http_batches_t){0};
    if (result < 0)
        return result;
    if (url->host[0] == '\0' || http_batches_set_base(post, url) < 0) {
        snprintf(error, GP_FLEET_ERROR_SIZE, "needs a host: %s://HOST:PORT/PATH", url->scheme);
        return -EINVAL;
    }
    gp_http_options_t options = gp_http_options_of(url);
    post->http = gp_http_create(&options);
    if (post->http == NULL) {
        snprintf(error, GP_FLEET_ERROR_SIZE, "%s", gp_http_why(errno));
        return -ENOMEM;
    }
    return 0;
}

int gp_http_batches_begin(gp_http_batches_t *post, const gp_batch_t *batch)
{
    post->part = 0;
    for (post->at = 0; post->at < post->count; post->at++)
        if (post->progress[post->at].batch == batch->id)
            return 0;
    if (gp_grow(&post->progress, &post->capacity, post->count, sizeof(*post->progress)) < 0)
        return -ENOMEM;
    post->progress[post->count++] = (gp_http_batches_progress_t){.batch = batch->id};
    return 0;
}

bool gp_http_batches_is_due(gp_http_batches_t *post)
{
    return post->part++ >= post->progress[post->at].parts;
}

// The receiver's words about a failure, in one line.
static void http_batches_explain(const gp_http_answer_t *answer, char *error)
{
    char text[SHOWN_MAX] = "";
    size_t len = 0;
    for (const char *at = answer->text; at != NULL && *at != '\0' && len + 1 < sizeof(text); at++)
        text[len++] = (unsigned char)*at < ' ' || *at == 0x7f ? ' ' : *at;
    text[len] = '\0';
    snprintf(error, GP_FLEET_ERROR_SIZE, "status %ld%s%s", answer->status, len > 0 ? ": " : "", text);
}

int gp_http_batches_send(gp_http_batches_t *post, const gp_http_request_t *request, gp_http_answer_t *answer,
                         char error[GP_FLEET_ERROR_SIZE])
{
    uint64_t now = gp_now_ns(), not_before_ns = gp_http_not_before_ns(post->http);
    *answer = (gp_http_answer_t){0};
    if (now < not_before_ns) {
        snprintf(error, GP_FLEET_ERROR_SIZE, "has asked for a pause of %llu s more",
                 (unsigned long long)(not_before_ns - now) / 1000000000 + 1);
        return -EAGAIN;
    }
    int result = gp_http_send(post->http, request, answer, error);
    if (result < 0)
        return result == -ENOMEM || result == -EACCES ? result : -EAGAIN;
    result = gp_http_result(answer->status);
    if (result == 0) {
        post->progress[post->at].parts = post->part;
        return 0;
    }
    http_batches_explain(answer, error);
    return result;
}

int gp_http_batches_fail(char error[GP_FLEET_ERROR_SIZE], int result)
{
    snprintf(error, GP_FLEET_ERROR_SIZE, "%s", strerror(-result));
    return result;
}

void gp_http_batches_done(gp_http_batches_t *post)
{
    post->count = 0;
}

void gp_http_batches_close(gp_http_batches_t *post)
{
    gp_http_free(post->http);
    free(post->progress);
    *post = (gp_http_batches_t){0};
}
