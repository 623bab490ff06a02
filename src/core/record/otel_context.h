// SPDX-License-Identifier: MIT
// The contexts of this process for OpenTelemetry's readers outside of it, where GREENPROF_OTEL_CONTEXT asks for them.
#pragma once

// At load, after the capture has begun: that chooses what drives the samples.
void gp_otel_context_start(void);

// In a forked child, which has no process context, once it is known whether it is sampled.
void gp_otel_context_in_child(void);
