// SPDX-License-Identifier: MIT
// How handlers answer: JSON, gzipped where the client takes it, or an error.
#pragma once

#include "service.h"

#include <jansson.h>

// Answer with a document, and drop the reference to it. NULL is answered with 500.
void respond_json(exchange_t *exchange, json_t *document);

// Answer with a status and {"error": message}.
void respond_error(exchange_t *exchange, int status, const char *message);
