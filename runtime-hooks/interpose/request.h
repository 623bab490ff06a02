// SPDX-License-Identifier: MIT
// A web server's request as a span: named, and with the same fields, for each server.
#pragma once

#include "greenprof/trace.h"

enum {
    GP_REQUEST_NAME_SIZE = 320,
    GP_REQUEST_URI_SIZE = 256,
    GP_REQUEST_METHOD_SIZE = 64,
    GP_REQUEST_STATUS_SIZE = 16
};

// Call it "METHOD URI", which is stored in `name`, too.
void gp_request_name(prof_span_t *span, const char *method, const char *uri, char name[GP_REQUEST_NAME_SIZE]);

// End it.
//   status: as HTTP has it, 5xx are failed; "" = not known.
void gp_request_end(prof_span_t *span, const char *status);
