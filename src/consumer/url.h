// SPDX-License-Identifier: MIT
// A consumer's URL: scheme:rest?name=value&name=value.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GP_URL_MAX = 1024 };

// Write the text between the scheme and the options, with %XX as it is. Returns its length, or -EINVAL.
int gp_url_rest(const char *url, char rest[GP_URL_MAX]);

// Write an option's value, %XX decoded. Returns whether it is there.
bool gp_url_option(const char *url, const char *name, char value[GP_URL_MAX]);

// Are all options among `names` (ended by NULL) or those of every consumer, each with a value?
bool gp_url_options_are(const char *url, const char *const *names);

// Decode %XX in place. Returns false where one is no such, or stands for NUL.
bool gp_url_decode(char *text);

// Durations and sizes, as users write them: "20ms", "1.5s", "200us"; "64K", "1M", "2G", "4096".
bool gp_url_duration(const char *text, uint64_t *ns);
bool gp_url_size(const char *text, uint64_t *bytes);
