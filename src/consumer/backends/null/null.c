// SPDX-License-Identifier: MIT
// null: - takes everything and keeps nothing: what spans cost by themselves, and a switch for configurations.
#include <errno.h>

#include "consumer/backends.h"
#include "consumer/url.h"

static int null_open_null(const char *url, void **state)
{
    static const char *const options[] = {NULL};
    char rest[GP_URL_MAX];
    static char any;
    *state = &any;
    return gp_url_rest(url, rest) == 0 && gp_url_options_are(url, options) ? 0 : -EINVAL;
}

static int null_send_null(void *state, const prof_span_record_t *spans, size_t count)
{
    (void)state, (void)spans;
    return (int)count;
}

static void null_close_null(void *state)
{
    (void)state;
}

const prof_consumer_t gp_consumer_null = {
    .size = sizeof(gp_consumer_null),
    .version = PROF_CONSUMER_VERSION,
    .scheme = "null",
    .open = null_open_null,
    .send = null_send_null,
    .close = null_close_null,
};
