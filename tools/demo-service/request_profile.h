// SPDX-License-Identifier: MIT
// Where the service meets greenprof: one trace id and, with --profile-dir, one profile a request.
#pragma once

#include "service.h"

#include <greenprof/prof.h>

// Give a request its ids: from the headers traceparent and X-Request-Id where they are there, else
// new ones. All that the calling coroutine and its children do from now on carries the trace id.
// Adds X-Request-Id and X-Trace-Id to the response.
void profile_identify(exchange_t *exchange);

// Start the profile of the calling coroutine and its children. Returns NULL without --profile-dir, or when it fails.
prof_t *profile_begin(const exchange_t *exchange);

// Stop it, add X-Cpu-Us to the response and write DIR/<request id>.prof. NULL is ignored.
void profile_end(prof_t *profile, exchange_t *exchange);
