// SPDX-License-Identifier: MIT
// OpenTelemetry's attributes outside of the tables of profiles: of resources, scopes and spans.
// Threads: a message belongs to one at a time. Signals: not safe.
#pragma once

#include "export/write/text.h"

// Add an attribute (KeyValue) as a field of a message; a number is not 0.
void gp_otlp_put_text(gp_text_t *message, unsigned field, const char *key, const char *text);
void gp_otlp_put_number(gp_text_t *message, unsigned field, const char *key, uint64_t number);

// Put together the attributes of a Resource: the service's name and what else is known.
//   more: key, value, key, ..., NULL; NULL = nothing. A value of "" is left out.
void gp_otlp_put_resource(gp_text_t *resource, const char *service, const char *const *more);
