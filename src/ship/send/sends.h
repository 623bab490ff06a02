// SPDX-License-Identifier: MIT
// The destinations besides ClickHouse, for destinations.c.
#pragma once

#include "ship/send/destination.h"

extern const gp_destination_kind_t gp_destination_otlp_http, gp_destination_otlp_https;
extern const gp_destination_kind_t gp_destination_pyroscope_http, gp_destination_pyroscope_https;
extern const gp_destination_kind_t gp_destination_s3_http, gp_destination_s3_https;
extern const gp_destination_kind_t gp_destination_directory, gp_destination_slow;
