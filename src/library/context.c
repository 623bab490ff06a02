// SPDX-License-Identifier: MIT
// prof_context_*(), prof_hmac_keys(), prof_policy(): the one file that knows both the core, which begins requests, and
// the formats, keys and policies of src/wire.
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "greenprof/trace.h"
#include "interface.h"
#include "settings.h"
#include "wire/formats.h"
#include "wire/keys.h"
#include "wire/nonces.h"
#include "wire/policy.h"

static const gp_wire_format_t *const formats[] = {&gp_wire_greenprof, &gp_wire_osprofiler, &gp_wire_w3c};
enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };

static struct {
    _Atomic uint64_t accepted, is_signed, malformed, oversized, signature, late, replayed, full;
} counts;

static void context_count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static void context_count_refused(int error)
{
    context_count(error == -E2BIG      ? &counts.oversized
                  : error == -EACCES   ? &counts.signature
                  : error == -ETIME    ? &counts.late
                  : error == -EALREADY ? &counts.replayed
                  : error == -ENOSPC   ? &counts.full
                                       : &counts.malformed);
}

static uint64_t context_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

// --- reading

static void context_add_tracestate(const prof_header_t *headers, size_t count, uint64_t now, prof_context_t *context)
{
    prof_context_t w3c = {0};
    if (gp_wire_w3c.read(headers, count, now, &w3c) == 0 && memcmp(&w3c.trace, &context->trace, sizeof(w3c.trace)) == 0)
        memcpy(context->tracestate, w3c.tracestate, sizeof(w3c.tracestate));
}

// Returns 0, -ENOENT or -EACCES.
static int context_read_format(const gp_wire_format_t *format, const prof_header_t *headers, size_t count_of_them,
                               uint64_t now, prof_context_t *context)
{
    if (format->is_signed && !gp_keys_exist())
        return -ENOENT;
    int error = format->read(headers, count_of_them, now, context);
    if (error != 0 && error != -ENOENT)
        context_count_refused(error);
    if (error != 0)
        return error == -ENOENT || !format->is_signed ? -ENOENT : -EACCES;
    context_count(&counts.accepted);
    if (format->is_signed) {
        context_count(&counts.is_signed);
        context->flags |= gp_policy_obeys_signed() ? PROF_CONTEXT_PROFILE : 0;
        context_add_tracestate(headers, count_of_them, now, context);
    }
    return 0;
}

PROF_API int prof_context_read(const prof_header_t *headers, size_t count_of_them, prof_context_t *context)
{
    int saved = errno, error = -ENOENT;
    bool is_refused = false;
    if (context == NULL || context->size != sizeof(*context) || (headers == NULL && count_of_them > 0))
        return -EINVAL;
    uint64_t now = context_now_ms();
    for (size_t i = 0; i < FORMATS && error != 0; i++) {
        *context = (prof_context_t)PROF_CONTEXT_INIT;
        error = context_read_format(formats[i], headers, count_of_them, now, context);
        is_refused = is_refused || error == -EACCES;
    }
    if (error != 0)
        *context = (prof_context_t)PROF_CONTEXT_INIT;
    errno = saved;
    return context->flags & PROF_CONTEXT_SIGNED ? 0 : is_refused ? -EACCES : error;
}

PROF_API int prof_context_counts(prof_context_counts_t *to)
{
    if (to == NULL || to->size != sizeof(*to))
        return -EINVAL;
    to->accepted = counts.accepted;
    to->is_signed = counts.is_signed;
    to->malformed = counts.malformed;
    to->oversized = counts.oversized;
    to->signature = counts.signature;
    to->late = counts.late;
    to->replayed = counts.replayed;
    to->full = counts.full;
    return 0;
}

// --- writing

static bool context_is_text(const char *text, size_t size)
{
    size_t len = strnlen(text, size);
    for (size_t i = 0; i < len; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return len < size;
}

static int context_of_caller(prof_context_t *context)
{
    *context = (prof_context_t)PROF_CONTEXT_INIT;
    context->parent_id = prof_span_current();
    context->flags = context->parent_id != 0 ? PROF_CONTEXT_SAMPLED : 0;
    return prof_trace_get(&context->trace);
}

static int context_write_context(const gp_wire_format_t *format, const prof_context_t *context, char *text)
{
    prof_context_t own;
    if (context == NULL) {
        int error = context_of_caller(&own);
        return error != 0 ? error : format->write(&own, context_now_ms(), text);
    }
    if (context->size != sizeof(*context) || !context_is_text(context->tracestate, sizeof(context->tracestate)) ||
        !context_is_text(context->parent_uuid, sizeof(context->parent_uuid)))
        return -EINVAL;
    return gp_trace_is_none(&context->trace) ? -ENOENT : format->write(context, context_now_ms(), text);
}

PROF_API ssize_t prof_context_write(const char *name, const prof_context_t *context, char *text, size_t size)
{
    char lines[PROF_CONTEXT_TEXT_SIZE];
    const gp_wire_format_t *format = NULL;
    for (size_t i = 0; i < FORMATS; i++)
        if (name != NULL && strcmp(name, formats[i]->name) == 0)
            format = formats[i];
    if (format == NULL || (text == NULL && size > 0))
        return -EINVAL;
    int saved = errno, error = context_write_context(format, context, lines);
    errno = saved;
    if (error != 0)
        return error;
    size_t len = strlen(lines);
    if (len >= size)
        return -ENOSPC;
    memcpy(text, lines, len + 1);
    return (ssize_t)len;
}

// --- requests

static const char *context_foreign_parent(const prof_context_t *context)
{
    static const char ours[] = "00000000-0000-0000-";
    return context->parent_uuid[0] != '\0' && strncmp(context->parent_uuid, ours, sizeof(ours) - 1) != 0
               ? context->parent_uuid
               : NULL;
}

PROF_API prof_span_t *prof_request_begin(prof_span_kind_t kind, const char *name, const prof_context_t *context,
                                         const prof_span_options_t *given)
{
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    if (given != NULL)
        memcpy(&options, given, given->size < sizeof(options) ? given->size : sizeof(options));
    options.size = sizeof(options);
    options.flags |= PROF_SPAN_REMOTE_PARENT;
    options.trace = NULL;
    options.parent_id = 0;
    if (context != NULL && context->size == sizeof(*context) && !gp_trace_is_none(&context->trace)) {
        options.trace = &context->trace;
        options.parent_id = context->parent_id;
        if (context->flags & PROF_CONTEXT_PROFILE)
            options.flags |= PROF_SPAN_PROFILE;
    }
    prof_span_t *span = prof_span_begin(kind, name, &options);
    if (options.trace != NULL && context_foreign_parent(context) != NULL)
        prof_span_set(span, "osprofiler.parent", context_foreign_parent(context));
    return span;
}

// --- keys and policy

static int context_prepare(void)
{
    static atomic_bool is_told;
    if (!atomic_exchange_explicit(&is_told, true, memory_order_relaxed))
        prof_core_interface()->spans->policy(gp_policy_chooses);
    return gp_nonces_prepare();
}

PROF_API int prof_hmac_keys(const char *keys)
{
    const gp_core_interface_t *core = prof_core_interface();
    const char *text = keys != NULL ? keys : "";
    size_t len = strnlen(text, GP_KEYS_TEXT_MAX + 1);
    int saved = errno, error = context_prepare();
    if (error == 0)
        error = gp_keys_set(text, len);
    if (error == 0 && core->size >= sizeof(*core))
        core->capture->control_keys(text, len);
    errno = saved;
    return error;
}

PROF_API int prof_policy(const char *policy)
{
    int saved = errno, error = context_prepare();
    errno = saved;
    return error == 0 ? gp_policy_set(policy) : error;
}

// --- what the environment asks for

static void context_say(const char *variable, const char *what, const char *why)
{
    char text[512];
    int len =
        snprintf(text, sizeof(text), "greenprof: %s: %.300s%s%s\n", variable, what, what[0] != '\0' ? ": " : "", why);
    (void)!write(STDERR_FILENO, text, (size_t)len);
}

static const char *context_why(int error)
{
    return error == -E2BIG     ? "more than 16 keys, or one of more than 256 bytes"
           : error == -ENOTSUP ? "OpenSSL has no HMAC with SHA-1 and SHA-256 here"
                               : strerrordesc_np(-error);
}

// Returns false where there should be keys, and are none.
static bool context_read_keys(void)
{
    const char *keys = gp_setting(GP_SETTING_HMAC_KEYS), *path = gp_setting(GP_SETTING_HMAC_KEYS_FILE);
    int error = keys != NULL ? prof_hmac_keys(keys) : path != NULL ? context_prepare() : 0;
    if (error == 0 && keys == NULL && path != NULL)
        error = gp_keys_set_file(path);
    if (error != 0)
        context_say(keys != NULL ? "GREENPROF_HMAC_KEYS" : "GREENPROF_HMAC_KEYS_FILE", keys != NULL ? "" : path,
                    context_why(error));
    else if ((keys != NULL || path != NULL) && !gp_keys_exist())
        context_say(keys != NULL ? "GREENPROF_HMAC_KEYS" : "GREENPROF_HMAC_KEYS_FILE", keys != NULL ? "" : path,
                    "no keys");
    return (keys == NULL && path == NULL) || gp_keys_exist();
}

__attribute__((constructor)) static void context_read_environment(void)
{
    const char *policy = gp_setting(GP_SETTING_POLICY);
    bool is_safe = context_read_keys();
    if (policy != NULL && prof_policy(policy) != 0) {
        context_say("GREENPROF_POLICY", policy, "none of always, never, signed, 1/N, slower=20ms");
        policy = NULL;
        is_safe = false;
    }
    if (policy == NULL && !is_safe) // a capture meant to be restricted is not free to all
        prof_policy("signed");
}
