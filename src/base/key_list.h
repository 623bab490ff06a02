// SPDX-License-Identifier: MIT
// Lists of keys, as GREENPROF_HMAC_KEYS and GREENPROF_HMAC_KEYS_FILE have them: with commas or lines between, spaces
// around a key being no part of it, as OSProfiler's middleware has it. Threads: any. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    GP_KEYS_MAX = 16,
    GP_KEY_BYTES_MAX = 256,
    GP_KEYS_TEXT_MAX = GP_KEYS_MAX * (GP_KEY_BYTES_MAX + 2),
};

typedef struct gp_key {
    size_t len;
    unsigned char bytes[GP_KEY_BYTES_MAX];
} gp_key_t;

typedef struct gp_key_list {
    size_t count;
    gp_key_t list[GP_KEYS_MAX];
} gp_key_list_t;

// Add the keys of a text. Returns 0 or -E2BIG: more keys, or longer ones, than there is room for.
int gp_key_list_parse(gp_key_list_t *keys, const char *text, size_t len);

// Read the text of a file, of which others may get at most the bound.
//   text:       char[GP_KEYS_TEXT_MAX + 1]; its len is above GP_KEYS_TEXT_MAX where there is more in the file
//   is_private: may none but its owner and its group read or write it? NULL = no matter
// Returns 0, or what open() and read() say.
int gp_key_list_read_text(const char *path, char *text, size_t *len, bool *is_private);

// Read the keys of a file that is private. Returns 0, -E2BIG, -EPERM where it is not private, -ENOKEY where it has
// none, or what open() and read() say.
int gp_key_list_read(gp_key_list_t *keys, const char *path);
