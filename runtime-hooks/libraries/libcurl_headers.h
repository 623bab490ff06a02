// SPDX-License-Identifier: MIT
// The trace in the headers of libcurl's transfers, where GREENPROF_SPANS names it: "libcurl-headers".
//
// Model: libcurl does not say which list of headers a handle has, so it is remembered as the program sets it. For a
// transfer, ours stand before the program's, in a list that ends in its own; behind the transfer the handle has its own
// again. Nothing is added where the program sends a traceparent itself. A list set meanwhile holds as it is. libcurl
// sends such a list to every host of a redirection, so a handle that follows redirections gets no signed headers.
// Threads: any, a handle in one at a time, as libcurl asks. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef int gp_curl_setopt_t(void *handle, int option, ...);

enum { GP_CURL_HTTPHEADER = 10000 + 23, GP_CURL_FOLLOWLOCATION = 52 }; // CURLOPT_...

typedef struct gp_curl_line { // struct curl_slist
    char *text;
    struct gp_curl_line *next;
} gp_curl_line_t;

enum { GP_CURL_LINES = 3 }; // traceparent, X-Trace-Info, X-Trace-HMAC

typedef struct gp_curl_lines {
    gp_curl_line_t items[GP_CURL_LINES];
    char text[1280];
} gp_curl_lines_t;

// Are headers to be added?
bool gp_curl_headers_are_on(void);

// Put the trace of the caller into a handle's headers. `lines` is in use until it is taken back. Returns whether it
// was.
bool gp_curl_headers_put(void *handle, gp_curl_setopt_t *setopt, gp_curl_lines_t *lines);

// Give a handle its own list back, if `lines` is what it has.
void gp_curl_headers_take(void *handle, gp_curl_setopt_t *setopt, const gp_curl_lines_t *lines);
