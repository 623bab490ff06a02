// SPDX-License-Identifier: MIT
// HTTP/1.1 messages: reading a request's head, writing a response's.
//
// Model: the head is parsed in place; everything in http_request_t points into the caller's buffer
// and lives as long. No input or output happens here. Source: RFC 9110, RFC 9112.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    HTTP_HEAD_BYTES_MAX = 8192,
    HTTP_HEADERS_MAX = 64,
    HTTP_RESPONSE_HEAD_BYTES = 1024,
};

typedef struct http_header {
    const char *name;
    const char *value;
} http_header_t;

typedef struct http_request {
    const char *method;
    const char *path;
    const char *query; // "" when there is none
    bool keep_alive;
    bool is_http10;
    size_t header_count;
    http_header_t headers[HTTP_HEADERS_MAX];
} http_request_t;

typedef struct http_response {
    int status;
    char *body; // malloc'ed, or NULL
    size_t body_len;
    bool gzipped;
    bool keep_alive;
    char headers[320]; // further lines, each with its \r\n
} http_response_t;

// Length of the head that `data` starts with, up to and including the empty line; 0 while it is incomplete.
size_t http_head_len(const char *data, size_t len);

// Parse a complete head; the buffer is changed.
// Returns 0, or the status to refuse the request with: 400, 405, 413, 431, 501 or 505.
int http_parse(char *head, size_t head_len, http_request_t *request);

// A header's value; NULL when there is none of that name (in any case).
const char *http_header(const http_request_t *request, const char *name);

// Whether a header lists a word, as in "Connection: close, te" (in any case).
bool http_header_has(const http_request_t *request, const char *name, const char *word);

// Copy the decoded value of a query parameter. Returns false when it is absent, malformed or too long.
bool http_query(const http_request_t *request, const char *key, char *value, size_t value_size);

// Add a header line to a response; left out when there is no room.
void http_add_header(http_response_t *response, const char *name, const char *value);

// Write status line and headers. Returns their length.
size_t http_response_head(const http_response_t *response, char head[HTTP_RESPONSE_HEAD_BYTES]);
