// SPDX-License-Identifier: MIT
#include "interpose/request.h"

#include <stdio.h>
#include <stdlib.h>

void gp_request_name(prof_span_t *span, const char *method, const char *uri, char name[GP_REQUEST_NAME_SIZE])
{
    char kept[GP_REQUEST_METHOD_SIZE]; // a client's word, of any length
    snprintf(kept, sizeof(kept), "%s", method);
    snprintf(name, GP_REQUEST_NAME_SIZE, "%s %s", kept, uri);
    prof_span_rename(span, name);
    prof_span_set(span, "http.method", kept);
    prof_span_set(span, "http.target", uri);
}

void gp_request_end(prof_span_t *span, const char *status)
{
    enum { FAILED_STATUS = 500 };
    if (status[0] != '\0')
        prof_span_set(span, "http.status_code", status);
    if (atoi(status) >= FAILED_STATUS)
        prof_span_fail(span, status, NULL);
    prof_span_end(span);
}
