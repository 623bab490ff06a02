// SPDX-License-Identifier: MIT
// A thread as readers outside of the process see it: the thread context record of OpenTelemetry.
//
// They stop the thread first: within it, the order of the stores alone counts.
// Source: OTEP 4947, "Thread-Local Context Record".
#pragma once

#include <stdatomic.h>
#include <stdint.h>

enum { GP_SHOWN_SAMPLED = 1 }; // W3C Trace Context, trace-flags

typedef struct gp_otel_thread_record {
    unsigned char trace[16], span[8]; // in the order of the W3C's digits
    _Atomic uint8_t valid;            // 1 = all of it is; else it is being changed, or there is no trace
    uint8_t flags;
    uint16_t attributes_bytes; // behind it; there are none
} gp_otel_thread_record_t;

_Static_assert(sizeof(gp_otel_thread_record_t) == 28, "as in OTEP 4947");
