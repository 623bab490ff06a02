// SPDX-License-Identifier: MIT
#include "libraries/call_span.h"

#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

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

prof_span_t *gp_call_begin(gp_client_t library, prof_span_kind_t kind, const char *verb)
{
    return gp_call_begin_since(library, kind, verb, NULL);
}

prof_span_t *gp_call_begin_since(gp_client_t library, prof_span_kind_t kind, const char *verb,
                                 const gp_span_since_t *since)
{
    static const prof_span_options_t call = {.size = sizeof(call), .flags = PROF_SPAN_CLIENT};
    char name[64];
    snprintf(name, sizeof(name), "%s %s", gp_client_names[library], verb);
    return since != NULL ? gp_span_begin_since(kind, name, since) : prof_span_begin(kind, name, &call);
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
