// SPDX-License-Identifier: MIT
#include "libraries/call_span.h"

#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "settings.h"

static const char *const names[GP_LIBRARIES] = {
    [GP_LIBRARY_SQLITE] = "sqlite",
    [GP_LIBRARY_LIBPQ] = "libpq",
    [GP_LIBRARY_LIBCURL] = "libcurl",
    [GP_LIBRARY_HIREDIS] = "hiredis",
    [GP_LIBRARY_LIBCURL_HEADERS] = "libcurl-headers",
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_on[GP_LIBRARIES];

// "all" stands for libraries whose hooks only look: one that changes what others are told has to be named.
static bool call_span_is_listed(const char *list, gp_library_t library)
{
    const char *name = names[library];
    size_t len = strlen(name);
    for (const char *at = list; *at != '\0';) {
        size_t word = strcspn(at, ",");
        if ((word == len && strncmp(at, name, len) == 0) ||
            (word == 3 && strncmp(at, "all", 3) == 0 && library != GP_LIBRARY_LIBCURL_HEADERS))
            return true;
        at += word + (at[word] == ',');
    }
    return false;
}

static void call_span_read_setting(void)
{
    const char *list = gp_setting(GP_SETTING_SPANS);
    for (gp_library_t i = 0; i < GP_LIBRARIES; i++)
        is_on[i] = list == NULL ? i != GP_LIBRARY_LIBCURL_HEADERS : call_span_is_listed(list, i);
}

bool gp_call_is_on(gp_library_t library)
{
    pthread_once(&once, call_span_read_setting);
    return is_on[library];
}

bool gp_call_is_wanted(gp_library_t library)
{
    return __builtin_expect(prof_span_current() != 0, 0) && gp_call_is_on(library);
}

static void *call_span_find_beside(const void *original, const char *name)
{
    Dl_info info;
    void *library = dladdr(original, &info) != 0 ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *found = library != NULL ? dlsym(library, name) : NULL;
    if (library != NULL)
        dlclose(library);
    return found;
}

void *gp_call_find_sibling(gp_sibling_t *known, const void *original, const char *name)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    void *found = call_span_find_beside(original, name);
    pthread_mutex_lock(&lock);
    if (known->original == NULL) { // of two copies of a library, that of the first call is kept
        known->found = found;
        __atomic_store_n(&known->original, (void *)(uintptr_t)original, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

prof_span_t *gp_call_begin(gp_library_t library, prof_span_kind_t kind, const char *verb)
{
    return gp_call_begin_since(library, kind, verb, NULL);
}

prof_span_t *gp_call_begin_since(gp_library_t library, prof_span_kind_t kind, const char *verb,
                                 const gp_span_since_t *since)
{
    char name[64];
    snprintf(name, sizeof(name), "%s %s", names[library], verb);
    return since != NULL ? gp_span_begin_since(kind, name, since) : prof_span_begin(kind, name, NULL);
}

const char *gp_call_verb(const char *text, const char *otherwise, char verb[16])
{
    size_t len = 0;
    while (text != NULL && isspace((unsigned char)*text))
        text++;
    for (; text != NULL && isalpha((unsigned char)text[len]); len++) {
        if (len == 15)
            return otherwise;
        verb[len] = (char)toupper((unsigned char)text[len]);
    }
    verb[len] = '\0';
    return len > 0 ? verb : otherwise;
}
