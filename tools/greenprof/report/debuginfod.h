// SPDX-License-Identifier: MIT
// Debug files by build-id from servers of debuginfod, into its client's cache, where symbol finds them.
//
// Order of calls: open -> fetch... -> close. Threads: one at a time. Signals: not safe.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct gp_debuginfod gp_debuginfod_t;

// Whether this command was built with libdebuginfod.
_Bool gp_debuginfod_is_there(void);

// Ask these servers, or those of DEBUGINFOD_URLS.
//   urls: with spaces or commas between them; NULL = the environment's.
// Returns NULL and errno: ENOTSUP where the command was built without libdebuginfod, EDESTADDRREQ where no server is
// named, ELIBACC where the library is not there.
gp_debuginfod_t *gp_debuginfod_open(const char *urls);

// Fetch the debug file of a build-id, and what of it is shared with others (dwz), unless they are in the cache.
// Returns 0; -ENOENT: no server has it; another negative errno value, of the network.
int gp_debuginfod_fetch(gp_debuginfod_t *debuginfod, const uint8_t *build_id, size_t build_id_len);

void gp_debuginfod_close(gp_debuginfod_t *debuginfod); // NULL is allowed
