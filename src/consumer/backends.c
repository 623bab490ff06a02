// SPDX-License-Identifier: MIT
#include "consumer/backends.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include "base/descriptors.h"
#include "consumer/backends/plugin.h"
#include "consumer/beside.h"
#include "consumer/url.h"
#include "consumer_backends.h"

enum { ADDED_MAX = 8 };

#define NONE(...)
#define DECLARE(scheme, name) extern const prof_consumer_t gp_consumer_##name;
GP_BACKENDS(DECLARE, NONE)

// Exactly one of the last two.
typedef struct row {
    const char *scheme;
    const prof_consumer_t *backend;
    const char *library;
} row_t;

#define BUILTIN(scheme, name)    {scheme, &gp_consumer_##name, NULL},
#define LIBRARY(scheme, library) {scheme, NULL, library},
static const row_t rows[] = {GP_BACKENDS(BUILTIN, LIBRARY)};
static _Atomic(const prof_consumer_t *) added[ADDED_MAX];

static const char plugin_scheme[] = "plugin";

static bool backends_is_of(const char *known, const char *scheme, size_t len)
{
    return strncmp(known, scheme, len) == 0 && known[len] == '\0';
}

static const row_t *backends_row_of(const char *scheme, size_t len)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (backends_is_of(rows[i].scheme, scheme, len))
            return &rows[i];
    return NULL;
}

static const prof_consumer_t *backends_added_of(const char *scheme, size_t len)
{
    for (size_t i = 0; i < ADDED_MAX; i++) {
        const prof_consumer_t *backend = atomic_load_explicit(&added[i], memory_order_acquire);
        if (backend != NULL && backends_is_of(backend->scheme, scheme, len))
            return backend;
    }
    return NULL;
}

static size_t backends_scheme_len(const char *text)
{
    return text[0] >= 'a' && text[0] <= 'z' ? strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+-.") : 0;
}

static bool backends_is_whole(const prof_consumer_t *backend)
{
    return backend != NULL && backend->size >= sizeof(*backend) && backend->version == PROF_CONSUMER_VERSION &&
           backend->scheme != NULL && backends_scheme_len(backend->scheme) == strlen(backend->scheme) &&
           backend->scheme[0] != '\0' && backend->open != NULL && backend->send != NULL && backend->close != NULL;
}

int gp_backend_add(const prof_consumer_t *backend)
{
    if (!backends_is_whole(backend))
        return -EINVAL;
    size_t len = strlen(backend->scheme);
    if (strcmp(backend->scheme, plugin_scheme) == 0 || backends_row_of(backend->scheme, len) != NULL ||
        backends_added_of(backend->scheme, len) != NULL)
        return -EEXIST;
    for (size_t i = 0; i < ADDED_MAX; i++) {
        const prof_consumer_t *none = NULL;
        if (atomic_compare_exchange_strong(&added[i], &none, backend))
            return 0;
    }
    return -ENOSPC;
}

// Shared objects stay loaded: consumers may be open when the process ends.
static const prof_consumer_t *backends_load(const char *url)
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
    return backends_is_whole(backend) ? backend : NULL;
}

static int backends_open_socket(int family)
{
    gp_descriptor_low_begins();
    return gp_descriptor_lift(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

static const prof_consumer_t *backends_backend_of_library(const char *name)
{
    static const gp_backend_host_t host = {.size = sizeof(host), .socket = backends_open_socket};
    void *library = gp_beside_load(name);
    prof_backend_plugin_t *plugin =
        library != NULL ? (prof_backend_plugin_t *)(uintptr_t)dlsym(library, "prof_backend_plugin") : NULL;
    const prof_consumer_t *backend = plugin != NULL ? plugin(&host) : NULL;
    errno = ELIBACC;
    return backends_is_whole(backend) ? backend : NULL;
}

const char *gp_backend_library(const char *url)
{
    const row_t *row = backends_row_of(url, backends_scheme_len(url));
    return row != NULL ? row->library : NULL;
}

const prof_consumer_t *gp_backend_of(const char *url)
{
    size_t len = backends_scheme_len(url);
    if (len == 0 || url[len] != ':') {
        errno = EINVAL;
        return NULL;
    }
    if (len == strlen(plugin_scheme) && strncmp(url, plugin_scheme, len) == 0)
        return backends_load(url);
    const row_t *row = backends_row_of(url, len);
    if (row != NULL)
        return row->backend != NULL ? row->backend : backends_backend_of_library(row->library);
    errno = ENOTSUP;
    return backends_added_of(url, len);
}
