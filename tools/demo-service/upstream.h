// SPDX-License-Identifier: MIT
// The slow upstream: another service, as far as the handlers know. It is a thread of this process, reached by a socket.
#pragma once

#include "service.h"

#include <jansson.h>

// Ask the upstream for its stock, in the trace of a request; parks the coroutine until it answers.
//   stock: receives the reply, to be given back with json_decref().
// Returns 0, or the status to answer with: 502, 503 or 504.
int upstream_fetch_stock(const exchange_t *exchange, json_t **stock);
