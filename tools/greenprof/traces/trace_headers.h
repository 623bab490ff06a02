// SPDX-License-Identifier: MIT
// greenprof trace headers: the headers that have a request profiled, to be given to curl.
#pragma once

#include "command.h"

int gp_trace_headers(const gp_arguments_t *arguments);
