// SPDX-License-Identifier: MIT
// Writing JSON as a stream: commas and escapes are taken care of, brackets are the caller's to match. Texts are
// repaired to UTF-8, and safe within <script> ("</" and "<!" do not appear). Numbers do not depend on the locale.
//
// Errors stay in the stream's error flag. Threads: one at a time. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct gp_json { // {.out = stream}
    FILE *out;
    bool comma; // before the next value
    bool line;  // a line break as well
} gp_json_t;

// bracket: '{', '}', '[' or ']'.
void gp_json_open(gp_json_t *json, char bracket);
void gp_json_close(gp_json_t *json, char bracket);

// Start the next value, or key, on a line of its own.
void gp_json_line(gp_json_t *json);

// Within an object: key, value, key, value, ...
void gp_json_key(gp_json_t *json, const char *key);

void gp_json_text(gp_json_t *json, const char *text);
void gp_json_uint(gp_json_t *json, uint64_t value);
void gp_json_int(gp_json_t *json, int64_t value);
void gp_json_bool(gp_json_t *json, bool value);

// An address, as "0x1234": numbers beyond 2^53 do not survive every reader.
void gp_json_address(gp_json_t *json, uint64_t value);

// Nanoseconds as a number of seconds, exact.
void gp_json_seconds(gp_json_t *json, uint64_t ns);

// Nanoseconds as a number of milliseconds, exact.
void gp_json_milliseconds(gp_json_t *json, uint64_t ns);

// Nanoseconds as a number of microseconds, exact.
void gp_json_microseconds(gp_json_t *json, uint64_t ns);

// Members of an object, or a value, which are JSON already.
void gp_json_raw(gp_json_t *json, const char *text, size_t len);

void gp_json_null(gp_json_t *json);
void gp_json_minus_one(gp_json_t *json); // "none" in some formats

// Key and value at once.
void gp_json_key_text(gp_json_t *json, const char *key, const char *text);
void gp_json_key_uint(gp_json_t *json, const char *key, uint64_t value);
