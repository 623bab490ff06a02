// SPDX-License-Identifier: MIT
// Source: curl/curl.h of 7.88 (CURLOPT_HTTPHEADER: the list is neither copied nor freed; struct curl_slist), and
// libcurl's lib/easy.c (curl_easy_duphandle() copies the pointer, curl_easy_reset() drops it; curl_easy_perform() may
// call curl_multi_add_handle() through the dynamic linker). All options are of one register: long, pointer, curl_off_t.
#include "libraries/libcurl_headers.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "greenprof/trace.h"
#include "libraries/call_span.h"

enum { BUCKETS = 256 };

typedef struct handle { // made since the headers are on
    struct handle *next;
    void *handle;
    gp_curl_line_t *own;          // the program's; NULL = none
    const gp_curl_lines_t *lines; // ours that it has now; NULL = none
    gp_curl_lines_t *kept;        // of a transfer by curl_multi, to be freed
    bool follows;                 // other hosts get its headers, too
} handle_t;

typedef int perform_t(void *multi, void *handle);
typedef void release_t(void *handle);
typedef void *make_t(void);
typedef void *duplicate_t(void *handle);
typedef ssize_t write_t(const char *format, const prof_context_t *context, char *text, size_t size);

PROF_API gp_curl_setopt_t curl_easy_setopt;
PROF_API release_t curl_easy_reset, curl_easy_cleanup;
PROF_API make_t curl_easy_init;
PROF_API duplicate_t curl_easy_duphandle;
PROF_API perform_t curl_multi_add_handle, curl_multi_remove_handle;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static handle_t *buckets[BUCKETS]; // under the lock; what is in a handle_t is of the thread that uses the handle

bool gp_curl_headers_are_on(void)
{
    return gp_client_is_on(GP_CLIENT_LIBCURL_HEADERS);
}

// --- handles

static handle_t **libcurl_headers_bucket_of(const void *handle)
{
    return &buckets[((uintptr_t)handle >> 4) % BUCKETS];
}

static handle_t *libcurl_headers_find(const void *handle)
{
    pthread_mutex_lock(&lock);
    handle_t *found = *libcurl_headers_bucket_of(handle);
    while (found != NULL && found->handle != handle)
        found = found->next;
    pthread_mutex_unlock(&lock);
    return found;
}

// Where memory is short, or the handle came about unseen, it is left alone for good.
static void libcurl_headers_add(void *handle, gp_curl_line_t *own, bool follows)
{
    handle_t *added = handle != NULL ? calloc(1, sizeof(*added)) : NULL;
    if (added == NULL)
        return;
    added->handle = handle;
    added->own = own;
    added->follows = follows;
    pthread_mutex_lock(&lock);
    added->next = *libcurl_headers_bucket_of(handle);
    *libcurl_headers_bucket_of(handle) = added;
    pthread_mutex_unlock(&lock);
}

// Take it out; the caller frees it. NULL = it is not there.
static handle_t *libcurl_headers_take_out(const void *handle)
{
    handle_t *found = NULL;
    pthread_mutex_lock(&lock);
    for (handle_t **at = libcurl_headers_bucket_of(handle); *at != NULL && found == NULL;
         at = found == NULL ? &(*at)->next : at)
        if ((*at)->handle == handle) {
            found = *at;
            *at = found->next;
        }
    pthread_mutex_unlock(&lock);
    return found;
}

// --- lines

static bool libcurl_headers_has_traceparent(const gp_curl_line_t *line)
{
    static const char name[] = "traceparent";
    for (; line != NULL; line = line->next)
        if (line->text != NULL && strncasecmp(line->text, name, sizeof(name) - 1) == 0 &&
            (line->text[sizeof(name) - 1] == ':' || line->text[sizeof(name) - 1] == ';'))
            return true;
    return false;
}

// Headers signed by libgreenprof, if it is there and has a key; libgreenprof-core has no keys. "Name: value\r\n" each.
static void libcurl_headers_add_signed(char *text, size_t size)
{
    write_t *write = (write_t *)(uintptr_t)dlsym(RTLD_DEFAULT, "prof_context_write");
    if (write == NULL || write("osprofiler", NULL, text, size) <= 0)
        text[0] = '\0';
}

static size_t libcurl_headers_write_text(char *text, size_t size, bool may_sign)
{
    prof_trace_id_t trace;
    if (prof_trace_get(&trace) != 0)
        return 0;
    size_t len = (size_t)snprintf(text, size, "traceparent: 00-");
    for (size_t i = 0; i < sizeof(trace.bytes); i++)
        len += (size_t)snprintf(text + len, size - len, "%02x", trace.bytes[i]);
    len += (size_t)snprintf(text + len, size - len, "-%016" PRIx64 "-01\r\n", prof_span_current());
    if (may_sign)
        libcurl_headers_add_signed(text + len, size - len);
    return len;
}

// Make a list of it that goes on with `rest`. Returns whether there is a trace.
static bool libcurl_headers_fill(gp_curl_lines_t *lines, gp_curl_line_t *rest, bool may_sign)
{
    size_t count = 0;
    lines->text[0] = '\0';
    if (libcurl_headers_write_text(lines->text, sizeof(lines->text), may_sign) == 0)
        return false;
    char *at = lines->text;
    for (char *end; count < GP_CURL_LINES && (end = strstr(at, "\r\n")) != NULL; at = end + 2) {
        *end = '\0';
        lines->items[count] = (gp_curl_line_t){at, rest};
        if (count > 0)
            lines->items[count - 1].next = &lines->items[count];
        count++;
    }
    return count > 0;
}

bool gp_curl_headers_put(void *handle, gp_curl_setopt_t *setopt, gp_curl_lines_t *lines)
{
    handle_t *known = setopt != NULL ? libcurl_headers_find(handle) : NULL;
    if (known == NULL || known->lines != NULL || libcurl_headers_has_traceparent(known->own) ||
        !libcurl_headers_fill(lines, known->own, !known->follows) ||
        setopt(handle, GP_CURL_HTTPHEADER, &lines->items[0]) != 0)
        return false;
    known->lines = lines;
    return true;
}

void gp_curl_headers_take(void *handle, gp_curl_setopt_t *setopt, const gp_curl_lines_t *lines)
{
    handle_t *known = libcurl_headers_find(handle);
    if (known == NULL || known->lines != lines)
        return;
    known->lines = NULL;
    setopt(handle, GP_CURL_HTTPHEADER, known->own);
}

// --- what the program calls

void *curl_easy_init(void)
{
    void *handle = GP_ORIGINAL(make_t, "curl_easy_init")();
    if (gp_curl_headers_are_on())
        libcurl_headers_add(handle, NULL, false);
    return handle;
}

int curl_easy_setopt(void *handle, int option, ...)
{
    gp_curl_setopt_t *real = GP_ORIGINAL(gp_curl_setopt_t, "curl_easy_setopt");
    va_list arguments;
    va_start(arguments, option);
    void *value = va_arg(arguments, void *);
    va_end(arguments);
    int result = real(handle, option, value);
    bool is_list = option == GP_CURL_HTTPHEADER, is_follow = option == GP_CURL_FOLLOWLOCATION;
    handle_t *known =
        (is_list || is_follow) && result == 0 && gp_curl_headers_are_on() ? libcurl_headers_find(handle) : NULL;
    if (known != NULL && is_follow)
        known->follows = value != NULL;
    bool is_late = known != NULL && is_follow && known->follows && known->lines != NULL; // amid a transfer
    if (is_late)
        real(handle, GP_CURL_HTTPHEADER, known->own);
    if (known != NULL && is_list)
        known->own = value;
    if (is_late || (known != NULL && is_list))
        known->lines = NULL;
    return result;
}

void curl_easy_reset(void *handle)
{
    release_t *real = GP_ORIGINAL(release_t, "curl_easy_reset");
    handle_t *known = gp_curl_headers_are_on() ? libcurl_headers_find(handle) : NULL;
    real(handle);
    if (known != NULL) {
        known->own = NULL;
        known->follows = false;
        known->lines = NULL;
    }
}

void curl_easy_cleanup(void *handle)
{
    release_t *real = GP_ORIGINAL(release_t, "curl_easy_cleanup");
    handle_t *known =
        gp_curl_headers_are_on() ? libcurl_headers_take_out(handle) : NULL; // before another one has its address
    real(handle);
    if (known != NULL)
        free(known->kept);
    free(known);
}

void *curl_easy_duphandle(void *handle)
{
    static gp_sibling_t function;
    duplicate_t *real = GP_ORIGINAL(duplicate_t, "curl_easy_duphandle");
    void *copy = real(handle);
    handle_t *known = copy != NULL && gp_curl_headers_are_on() ? libcurl_headers_find(handle) : NULL;
    if (known == NULL)
        return copy;
    libcurl_headers_add(copy, known->own, known->follows);
    gp_curl_setopt_t *setopt =
        (gp_curl_setopt_t *)(uintptr_t)gp_call_sibling(&function, (void *)(uintptr_t)real, "curl_easy_setopt");
    if (known->lines != NULL && setopt != NULL)
        setopt(copy, GP_CURL_HTTPHEADER, known->own);
    return copy;
}

static gp_curl_setopt_t *libcurl_headers_setopt_beside(perform_t *original)
{
    static gp_sibling_t function;
    return (gp_curl_setopt_t *)(uintptr_t)gp_call_sibling(&function, (void *)(uintptr_t)original, "curl_easy_setopt");
}

static void libcurl_headers_take_kept(void *handle, gp_curl_setopt_t *setopt)
{
    handle_t *known = libcurl_headers_find(handle);
    if (known == NULL || known->kept == NULL)
        return;
    gp_curl_headers_take(handle, setopt, known->kept);
    free(known->kept);
    known->kept = NULL;
}

static void libcurl_headers_put_kept(void *handle, gp_curl_setopt_t *setopt)
{
    gp_curl_lines_t *lines = malloc(sizeof(*lines));
    libcurl_headers_take_kept(handle, setopt); // of a transfer before, without an end
    if (lines == NULL || !gp_curl_headers_put(handle, setopt, lines))
        free(lines);
    else
        libcurl_headers_find(handle)->kept = lines;
}

int curl_multi_add_handle(void *multi, void *handle)
{
    perform_t *real = GP_ORIGINAL(perform_t, "curl_multi_add_handle");
    if (handle == NULL || !gp_curl_headers_are_on() || prof_span_current() == 0)
        return real(multi, handle);
    libcurl_headers_put_kept(handle, libcurl_headers_setopt_beside(real));
    int result = real(multi, handle);
    if (result != 0)
        libcurl_headers_take_kept(handle, libcurl_headers_setopt_beside(real));
    return result;
}

int curl_multi_remove_handle(void *multi, void *handle)
{
    perform_t *real = GP_ORIGINAL(perform_t, "curl_multi_remove_handle");
    int result = real(multi, handle);
    if (handle != NULL && result == 0 && gp_curl_headers_are_on())
        libcurl_headers_take_kept(handle, libcurl_headers_setopt_beside(real));
    return result;
}
