// SPDX-License-Identifier: MIT
#include "consumer/backends.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "consumer/url.h"

enum { ADDED_MAX = 8 };

static const prof_consumer_t *const builtin[] = {&gp_consumer_file, &gp_consumer_null, &gp_consumer_redis,
                                                 &gp_consumer_sentinel};
static _Atomic(const prof_consumer_t *) added[ADDED_MAX];

static const char plugin_scheme[] = "plugin";

static bool is_of(const prof_consumer_t *backend, const char *scheme, size_t len)
{
    return strncmp(backend->scheme, scheme, len) == 0 && backend->scheme[len] == '\0';
}

static const prof_consumer_t *find(const char *scheme, size_t len)
{
    for (size_t i = 0; i < sizeof(builtin) / sizeof(builtin[0]); i++)
        if (is_of(builtin[i], scheme, len))
            return builtin[i];
    for (size_t i = 0; i < ADDED_MAX; i++) {
        const prof_consumer_t *backend = atomic_load_explicit(&added[i], memory_order_acquire);
        if (backend != NULL && is_of(backend, scheme, len))
            return backend;
    }
    return NULL;
}

static size_t scheme_len(const char *text)
{
    return text[0] >= 'a' && text[0] <= 'z' ? strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+-.") : 0;
}

static bool is_whole(const prof_consumer_t *backend)
{
    return backend != NULL && backend->size >= sizeof(*backend) && backend->version == PROF_CONSUMER_VERSION &&
           backend->scheme != NULL && scheme_len(backend->scheme) == strlen(backend->scheme) &&
           backend->scheme[0] != '\0' && backend->open != NULL && backend->send != NULL && backend->close != NULL;
}

int gp_backend_add(const prof_consumer_t *backend)
{
    if (!is_whole(backend))
        return -EINVAL;
    if (strcmp(backend->scheme, plugin_scheme) == 0 || find(backend->scheme, strlen(backend->scheme)) != NULL)
        return -EEXIST;
    for (size_t i = 0; i < ADDED_MAX; i++) {
        const prof_consumer_t *none = NULL;
        if (atomic_compare_exchange_strong(&added[i], &none, backend))
            return 0;
    }
    return -ENOSPC;
}

// Shared objects stay loaded: consumers may be open when the process ends.
static const prof_consumer_t *load(const char *url)
{
    char path[GP_URL_MAX];
    errno = EINVAL;
    if (gp_url_rest(url, path) < 0 || !gp_url_decode(path) || path[0] != '/')
        return NULL;
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    errno = ENOENT;
    if (object == NULL)
        return NULL;
    const prof_consumer_t *(*plugin)(void) =
        (const prof_consumer_t *(*)(void))(uintptr_t)dlsym(object, "prof_consumer_plugin");
    const prof_consumer_t *backend = plugin != NULL ? plugin() : NULL;
    errno = EINVAL;
    return is_whole(backend) ? backend : NULL;
}

const prof_consumer_t *gp_backend_of(const char *url)
{
    size_t len = scheme_len(url);
    if (len == 0 || url[len] != ':') {
        errno = EINVAL;
        return NULL;
    }
    if (len == strlen(plugin_scheme) && strncmp(url, plugin_scheme, len) == 0)
        return load(url);
    errno = ENOTSUP;
    return find(url, len);
}
