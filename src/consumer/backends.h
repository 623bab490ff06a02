// SPDX-License-Identifier: MIT
// The table of backends: of backends/, each registered by its CMakeLists.txt, of the program, and of plug-ins.
#pragma once

#include "consumer/url.h"
#include "greenprof/consumer.h"

extern const prof_consumer_t gp_consumer_file, gp_consumer_null;

// The backend for a URL. Returns NULL and errno: EINVAL (no URL), ENOTSUP (no such scheme), ELIBACC (its library is not
// there, or not of this version), or why a plug-in is none.
const prof_consumer_t *gp_backend_of(const char *url);

// The library of its own that a URL's backend has; NULL.
const char *gp_backend_library(const char *url);

// The directory of a file consumer's URL. Returns false where it names none.
bool gp_file_directory(const char *url, char directory[GP_URL_MAX]);

// See prof_consumer_register(). Threads: any.
int gp_backend_add(const prof_consumer_t *backend);
