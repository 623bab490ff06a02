// SPDX-License-Identifier: MIT
// A span as the two events that OSProfiler keeps of it.
//
// Source: OSProfiler 3.4.3, osprofiler/drivers/base.py and redis_driver.py: what get_report() reads. Each member that
// it looks up without a default is there, and a name has no dash but the one before "start" or "stop".
#pragma once

#include "consumer/bytes.h"
#include "greenprof/consumer.h"

void gp_redis_event(gp_reply_bytes_t *into, const prof_span_record_t *span, bool is_stop);

// The entry that `osprofiler trace list --error-trace` reads of a trace with a failed span.
void gp_redis_error_mark(gp_reply_bytes_t *into, const prof_span_record_t *span);
