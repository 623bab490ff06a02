// SPDX-License-Identifier: MIT
// Requests over HTTP, by libcurl: its settings for proxies (https_proxy, no_proxy) and certificates hold.
//
// Model: a client keeps its connection. A token file is read again for each request, as tokens are renewed. Every step
// has a limit: time to connect, time in all, time without progress, bytes of an answer.
//
// Order of calls: create -> send... -> free. Threads: a client belongs to one thread at a time. Signals: not safe;
// SIGPIPE is ignored by libcurl for its time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ship/send/url.h"

typedef struct gp_http gp_http_t;

typedef struct gp_http_options {
    const char *user, *password;      // basic authentication; NULL or "" = none
    const char *token_file;           // "Authorization: Bearer" and what the file has; NULL = none
    const char *ca_file;              // certificates to trust instead of the system's; NULL = the system's
    const char *cert_file, *key_file; // of this end; NULL = none
    bool insecure;                    // any certificate will do
    unsigned connect_ms, total_ms;    // 0 = 10 s, 300 s
} gp_http_options_t;

// Take `token_file`, `ca_file`, `cert_file`, `key_file`, `insecure` and `timeout` (seconds) out of an URL's options,
// and its user and password.
gp_http_options_t gp_http_options_of(const gp_fleet_url_t *url);
// The names of these options, ended by NULL.
extern const char *const gp_http_option_names[];

typedef struct gp_http_request {
    const char *url;            // http:// or https://: POST with a body, GET without
    const char *const *headers; // "Name: value", ended by NULL; NULL = none
    const void *body;
    size_t body_len;
    bool gzip; // compress the body: Content-Encoding: gzip
    // Send the body only when the other end has begun to handle the request (Expect: 100-continue), however late: a
    // request given up while it waits in a queue can then not be carried out later.
    bool wait_for_continue;
    size_t answer_max; // bytes, 0 = 64 KiB; more fails with -EMSGSIZE
} gp_http_request_t;

typedef struct gp_http_answer { // zero-initialized = empty
    long status;                // 200; 0 = there was none
    char *text;                 // ended by NUL behind `len` bytes; NULL = none
    size_t len;
} gp_http_answer_t;

// Returns NULL and errno.
gp_http_t *gp_http_create(const gp_http_options_t *options);

// The text of a negative errno value.
const char *gp_http_why(int error);

// Send a request and wait for the answer. Returns 0 for an answer of any status; a negative errno value and what is
// wrong where none came: -ECONNREFUSED where nothing was sent; with others, -ETIMEDOUT, -EIO, what the other end did is
// not known.
int gp_http_send(gp_http_t *http, const gp_http_request_t *request, gp_http_answer_t *answer,
                 char error[GP_FLEET_ERROR_SIZE]);

// Until when the other end has asked to be left alone (Retry-After, of an answer that is no success), CLOCK_MONOTONIC;
// 0 = it has not. An hour at most.
uint64_t gp_http_not_before_ns(const gp_http_t *http);

// The result for a status: 0 for 2xx, -EACCES for 401 and 403, -EAGAIN for 408, 429 and 5xx, -EINVAL for others.
int gp_http_result(long status);

// Bytes sent and received so far, headers included.
uint64_t gp_http_bytes(const gp_http_t *http);

void gp_http_answer_free(gp_http_answer_t *answer);
void gp_http_free(gp_http_t *http); // NULL is allowed

// Append `text` to `url`, what is special as %XX. Returns where the NUL is, or NULL when it does not fit.
char *gp_http_escape(char *at, const char *end, const char *text);
