// SPDX-License-Identifier: MIT
// libcurl: transfers that block. Secret parts of the address are left out: the user, the query, the fragment.
//
// Source: curl/curl.h of 7.88 (CURLINFO_EFFECTIVE_URL, CURLINFO_RESPONSE_CODE; CURLE_OK is 0).
#include "libraries/call_span.h"
#include "libraries/libcurl_headers.h"

#include <stdio.h>
#include <string.h>

enum { EFFECTIVE_URL = 0x100000 + 1, RESPONSE_CODE = 0x200000 + 2, URL_MAX = 256 };

typedef int perform_t(void *handle);
typedef int getinfo_t(void *handle, int what, ...);

PROF_API perform_t curl_easy_perform;

static void libcurl_add_address(prof_span_t *span, const char *url)
{
    char plain[URL_MAX];
    const char *host = strstr(url, "://"), *start = host != NULL ? host + 3 : url;
    const char *at = start + strcspn(start, "@/?#");
    int scheme = (int)(start - url);
    if (*at == '@')
        start = at + 1;
    snprintf(plain, sizeof(plain), "%.*s%.*s", scheme, url, (int)strcspn(start, "?#"), start);
    prof_span_set(span, "http.url", plain);
}

// original: a function of the library.
static void libcurl_add_answer(prof_span_t *span, void *handle, int result, const void *original)
{
    static gp_sibling_t function;
    getinfo_t *getinfo = (getinfo_t *)(uintptr_t)gp_call_sibling(&function, original, "curl_easy_getinfo");
    char text[24], *url = NULL;
    long status = 0;
    if (getinfo != NULL && getinfo(handle, EFFECTIVE_URL, &url) == 0 && url != NULL)
        libcurl_add_address(span, url);
    if (getinfo != NULL && getinfo(handle, RESPONSE_CODE, &status) == 0 && status != 0) {
        snprintf(text, sizeof(text), "%ld", status);
        prof_span_set(span, "http.status_code", text);
    }
    snprintf(text, sizeof(text), "curl %d", result);
    if (result != 0)
        prof_span_fail(span, text, NULL);
}

static int libcurl_perform(perform_t *real, void *handle)
{
    static gp_sibling_t function;
    gp_curl_lines_t lines;
    if (!gp_curl_headers_are_on())
        return real(handle);
    gp_curl_setopt_t *setopt =
        (gp_curl_setopt_t *)(uintptr_t)gp_call_sibling(&function, (void *)(uintptr_t)real, "curl_easy_setopt");
    bool is_put = gp_curl_headers_put(handle, setopt, &lines);
    int result = real(handle);
    if (is_put)
        gp_curl_headers_take(handle, setopt, &lines);
    return result;
}

int curl_easy_perform(void *handle)
{
    perform_t *real = GP_ORIGINAL(perform_t, "curl_easy_perform");
    if (handle == NULL || prof_span_current() == 0)
        return real(handle);
    if (!gp_client_may_call(GP_CLIENT_LIBCURL, PROF_SPAN_REST_CALL))
        return libcurl_perform(real, handle);
    prof_span_t *span = gp_call_begin(GP_CLIENT_LIBCURL, PROF_SPAN_REST_CALL, "transfer");
    int result = libcurl_perform(real, handle);
    libcurl_add_answer(span, handle, result, (void *)(uintptr_t)real);
    prof_span_end(span);
    return result;
}
