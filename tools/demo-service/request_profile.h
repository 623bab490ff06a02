// SPDX-License-Identifier: MIT
// Where the service meets greenprof: one trace id, one span and, with --profile-dir, one profile a request.
#pragma once

#include "service.h"

#include <greenprof/prof.h>

// Give a request its ids: from the headers traceparent and X-Request-Id where they are there, else new ones. Adds
// X-Request-Id and X-Trace-Id to the response.
void profile_identify(exchange_t *exchange);

// Begin the request's span: all that the calling coroutine and its children do from now on, until prof_span_end(), is
// the request's. Returns NULL where nothing records it.
//   arrival_ns: when the request reached this host, ns since 1970; 0 = now.
prof_span_t *profile_begin_span(const exchange_t *exchange, int64_t arrival_ns);

// Start the profile of the calling coroutine and its children. Returns NULL without --profile-dir, or when it fails.
prof_t *profile_begin(const exchange_t *exchange);

// Stop it, add X-Cpu-Us to the response and write DIR/<request id>.prof. NULL is ignored.
void profile_end(prof_t *profile, exchange_t *exchange);
