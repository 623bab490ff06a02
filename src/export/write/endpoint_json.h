// SPDX-License-Identifier: MIT
// The figures of an endpoint's requests, as members of an object that is open: one set of keys for the page and
// reports.
#pragma once

#include "export/write/json_text.h"
#include "report/requests.h"

static inline void gp_endpoint_put_figures(gp_json_t *json, const gp_endpoint_t *endpoint)
{
    gp_json_key_uint(json, "failed", endpoint->failed);
    gp_json_key_uint(json, "total_ns", endpoint->total_ns);
    gp_json_key_uint(json, "p50_ns", endpoint->p50_ns);
    gp_json_key_uint(json, "p90_ns", endpoint->p90_ns);
    gp_json_key_uint(json, "p99_ns", endpoint->p99_ns);
    gp_json_key_uint(json, "max_ns", endpoint->max_ns);
}
