// SPDX-License-Identifier: MIT
// Text that is put together piece by piece, for files and sockets. When memory is short it says so at the end.
//
// Threads: an object belongs to one thread at a time. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gp_reply_bytes { // zero-initialized = empty
    char *data;
    size_t len, room;
    bool is_short; // memory was: something is missing
} gp_reply_bytes_t;

void gp_bytes_put(gp_reply_bytes_t *bytes, const char *data, size_t len);
void gp_bytes_text(gp_reply_bytes_t *bytes, const char *text);
void gp_bytes_number(gp_reply_bytes_t *bytes, uint64_t number);

// A JSON string, with its quotation marks. Bytes that are no UTF-8 become U+FFFD.
void gp_bytes_json(gp_reply_bytes_t *bytes, const char *text, size_t len);

void gp_bytes_clear(gp_reply_bytes_t *bytes); // keeps the memory
void gp_bytes_free(gp_reply_bytes_t *bytes);
