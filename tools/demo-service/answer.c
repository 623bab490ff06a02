// SPDX-License-Identifier: MIT
// Requests read, and answers written, by handlers: JSON, gzipped where the client takes it.
#include "service.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    GZIP_FORMAT = 16 + MAX_WBITS, // zlib's way to ask for a gzip header
    GZIP_WORTH_BYTES = 1024,
    GZIP_STEP_BYTES = 16 * 1024,
};

bool exchange_query(const exchange_t *exchange, const char *key, char *value, size_t size)
{
    size_t len = strlen(key);
    for (const char *at = exchange->query; *at != '\0'; at += strcspn(at, "&"), at += *at == '&')
        if (strncmp(at, key, len) == 0 && at[len] == '=') {
            snprintf(value, size, "%.*s", (int)strcspn(at + len + 1, "&"), at + len + 1);
            return true;
        }
    return false;
}

// Between steps other requests may run.
static bool answer_deflate(z_stream *stream, size_t len)
{
    int rc = Z_OK;
    while (rc == Z_OK) {
        uInt step = len > GZIP_STEP_BYTES ? GZIP_STEP_BYTES : (uInt)len;
        len -= step;
        stream->avail_in = step;
        rc = deflate(stream, len == 0 ? Z_FINISH : Z_NO_FLUSH);
        loop_yield_if_due();
    }
    return rc == Z_STREAM_END;
}

static void answer_compress(exchange_t *exchange)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_FORMAT, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return;
    uLong bound = deflateBound(&stream, exchange->body_len);
    char *packed = malloc(bound);
    stream.next_in = (z_const Bytef *)exchange->body;
    stream.next_out = (Bytef *)packed;
    stream.avail_out = (uInt)bound;
    if (packed != NULL && answer_deflate(&stream, exchange->body_len)) {
        free(exchange->body);
        exchange->body = packed;
        exchange->body_len = stream.total_out;
        exchange->is_gzipped = true;
    } else
        free(packed);
    deflateEnd(&stream);
}

void answer_json(exchange_t *exchange, json_t *document)
{
    char accepted[64];
    exchange->body = json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(12));
    json_decref(document);
    if (exchange->body == NULL) {
        exchange->status = 500;
        return;
    }
    exchange->body_len = strlen(exchange->body);
    if (exchange->body_len >= GZIP_WORTH_BYTES &&
        wire_header(exchange->headers, "Accept-Encoding", accepted, sizeof(accepted)) &&
        strstr(accepted, "gzip") != NULL)
        answer_compress(exchange);
}

void answer_error(exchange_t *exchange, int status, const char *message)
{
    answer_json(exchange, json_pack("{s:s}", "error", message));
    exchange->status = status;
}
