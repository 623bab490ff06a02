// SPDX-License-Identifier: MIT
// The thread-local that OTEP 4947 names. Nothing else may be in this file's thread-locals: readers take the TLS
// relocation of this library that names the symbol.
#include "otel/otel.h"

PROF_API extern __thread void *otel_thread_ctx_v1;
__thread void *otel_thread_ctx_v1;

void **prof_otel_pointer(void)
{
    return &otel_thread_ctx_v1;
}
