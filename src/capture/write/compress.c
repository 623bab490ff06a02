// SPDX-License-Identifier: MIT
#include "capture/write/compress.h"

#include <errno.h>
#include <sys/mman.h>

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

// libzstd calls these where they are defined: it shall not find a definition of the host's.
unsigned long long ZSTD_trace_compress_begin(const ZSTD_CCtx *context);
void ZSTD_trace_compress_end(unsigned long long trace, const void *what);

unsigned long long ZSTD_trace_compress_begin(const ZSTD_CCtx *context)
{
    (void)context;
    return 0;
}

void ZSTD_trace_compress_end(unsigned long long trace, const void *what)
{
    (void)trace;
    (void)what;
}

// Higher levels, on the capture that tools/bench/capture makes: level 3 would save 1.3 % for 1.25 times the CPU time
// (packing and writing included) and 1.3 times the memory, level 6 2.4 % for twice the CPU time.
enum { LEVEL = 1, WORTH_TRYING = 64 };

int gp_compressor_init(gp_compressor_t *compressor)
{
    if (compressor->memory != NULL)
        return 0;
    size_t bytes = ZSTD_estimateCCtxSize(LEVEL);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -ENOMEM;
    *compressor = (gp_compressor_t){memory, bytes, ZSTD_initStaticCCtx(memory, bytes)};
    return 0;
}

void gp_compressor_free(gp_compressor_t *compressor)
{
    if (compressor->memory != NULL)
        munmap(compressor->memory, compressor->bytes);
    *compressor = (gp_compressor_t){0};
}

size_t gp_compress(gp_compressor_t *compressor, const void *data, size_t len, void *out, size_t room)
{
    if (len < WORTH_TRYING || compressor->context == NULL)
        return 0;
    size_t compressed = ZSTD_compressCCtx(compressor->context, out, room < len ? room : len, data, len, LEVEL);
    return ZSTD_isError(compressed) || compressed >= len ? 0 : compressed;
}
