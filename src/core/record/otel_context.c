// SPDX-License-Identifier: MIT
#include "record/otel_context.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collect/sampler.h"
#include "coro/otel_thread_context.h"
#include "model/identity.h"
#include "otel/otel.h"
#include "settings.h"
#include "trace/context.h"
#include "trace/span.h"

// No samples are needed, only reports of switches; as for listeners to spans.
enum { SHOWING_HZ = 100 };

static prof_otel_publish_t *publish_context;

static void otel_context_read_context(prof_coro_t *coro, uint64_t trace[2], uint64_t *span_id)
{
    gp_trace_of(coro, trace);
    *span_id = gp_span_shown_id(coro);
}

static gp_otel_thread_source_t source = {.read = otel_context_read_context};

static void otel_context_say(const char *what)
{
    char text[PATH_MAX];
    int len = snprintf(text, sizeof(text), "greenprof: GREENPROF_OTEL_CONTEXT: %s\n", what);
    (void)!write(STDERR_FILENO, text, len < (int)sizeof(text) ? (size_t)len : sizeof(text) - 1);
}

// Load the library from beside this one.
static void *otel_context_load(void)
{
    char path[PATH_MAX];
    Dl_info own;
    const char *slash = NULL;
    if (dladdr(&source, &own) != 0)
        slash = strrchr(own.dli_fname, '/');
    int len = slash != NULL ? (int)(slash + 1 - own.dli_fname) : 0;
    int bytes = snprintf(path, sizeof(path), "%.*s" GP_OTEL_LIBRARY, len, len > 0 ? own.dli_fname : "");
    return bytes < (int)sizeof(path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
}

static int otel_context_publish(void)
{
    char name[GP_IDENTITY_MAX];
    const char *service = gp_setting(GP_SETTING_SERVICE);
    gp_identity_name(name, service != NULL ? service : program_invocation_short_name);
    return publish_context(name);
}

// Returns NULL, or what is wrong.
static const char *otel_context_start(void)
{
    if (dlsym(RTLD_DEFAULT, GP_OTEL_POINTER) != NULL)
        return "the program has such contexts itself";
    void *library = otel_context_load();
    if (library == NULL)
        return dlerror();
    source.pointer = (prof_otel_pointer_t *)(uintptr_t)dlsym(library, "prof_otel_pointer");
    publish_context = (prof_otel_publish_t *)(uintptr_t)dlsym(library, "prof_otel_publish");
    if (source.pointer == NULL || publish_context == NULL)
        return "another version of " GP_OTEL_LIBRARY;
    gp_otel_thread_begin(&source);
    int error = gp_sampler_acquire_patiently(SHOWING_HZ);
    if (error == 0)
        error = otel_context_publish();
    if (error != 0)
        return strerrordesc_np(-error);
    gp_spans_want(GP_SPANS_SHOWN, true);
    return NULL;
}

void gp_otel_context_start(void)
{
    int saved = errno;
    const char *wrong = gp_setting_is(GP_SETTING_OTEL_CONTEXT, "1") ? otel_context_start() : NULL;
    if (wrong != NULL)
        otel_context_say(wrong);
    errno = saved;
}

void gp_otel_context_in_child(void)
{
    if (atomic_load_explicit(&gp_otel_thread_is_on, memory_order_relaxed))
        otel_context_publish();
}
