// SPDX-License-Identifier: MIT
// The table of backends: those of this folder, those that were registered, and plug-ins.
#pragma once

#include "consumer/url.h"
#include "greenprof/consumer.h"

extern const prof_consumer_t gp_consumer_file, gp_consumer_null, gp_consumer_redis, gp_consumer_sentinel;

// The backend for a URL. Returns NULL and errno: EINVAL (no URL), ENOTSUP (no such scheme), or why a plug-in is none.
const prof_consumer_t *gp_backend_of(const char *url);

// The directory of a file consumer's URL. Returns false where it names none.
bool gp_file_directory(const char *url, char directory[GP_URL_MAX]);

// See prof_consumer_register(). Threads: any.
int gp_backend_add(const prof_consumer_t *backend);
