// SPDX-License-Identifier: MIT
// A backend in a library of its own, libgreenprof-NAME.so.0, as it needs what hosts need not have. libgreenprof loads
// it from beside itself when a consumer's URL asks for it.
#pragma once

#include "greenprof/consumer.h"

typedef struct gp_backend_host { // services of libgreenprof
    size_t size;                 // sizeof(gp_backend_host_t)
    // A stream socket, not blocking, with a number that is out of the program's way. Returns it, or -1 and errno.
    int (*socket)(int family);
} gp_backend_host_t;

// The one function that such a library exports. Returns NULL where the other side is of another version.
typedef const prof_consumer_t *prof_backend_plugin_t(const gp_backend_host_t *host);
