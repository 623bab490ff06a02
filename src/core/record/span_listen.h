// SPDX-License-Identifier: MIT
// The one that hears of spans as they end: libgreenprof's consumers, through the core's interface.
//
// Threads: gp_span_listen() any; it takes the sampler lock and the drain lock. Signals: not safe.
#pragma once

#include "coro/registry.h"
#include "greenprof/consumer.h"

// Called on the collector's thread, under the drain lock: it must not wait. `service`, `host` and `pid` are not set.
typedef void gp_span_listener_t(void *context, const prof_span_record_t *span);

// Hear of spans of future requests that the policy chooses; NULL = of no more.
// Returns 0; -EBUSY where there is a listener already; what gp_sampler_acquire() says.
int gp_span_listen(gp_span_listener_t *listener, void *context);

// A coroutine is over, and with it what prof_trace_set() began on it: all sinks are told, once, however many of
// them call. Collector only.
void gp_span_tell_coro_over(prof_coro_t *coro);
