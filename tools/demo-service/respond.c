// SPDX-License-Identifier: MIT
#include "respond.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    GZIP_FORMAT = 16 + MAX_WBITS, // zlib's way to ask for a gzip header
    GZIP_WORTH_BYTES = 1024,
    GZIP_STEP_BYTES = 16 * 1024,
};

// Between steps other requests may run. Returns Z_STREAM_END, or what deflate() failed with.
static int deflate_in_steps(z_stream *stream, size_t len)
{
    int rc = Z_OK;
    while (rc == Z_OK) {
        uInt step = len > GZIP_STEP_BYTES ? GZIP_STEP_BYTES : (uInt)len;
        len -= step;
        stream->avail_in = step;
        rc = deflate(stream, len == 0 ? Z_FINISH : Z_NO_FLUSH);
        loop_yield_if_due();
    }
    return rc;
}

static char *gzip(const char *data, size_t len, size_t *packed_len)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_FORMAT, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return NULL;
    uLong bound = deflateBound(&stream, len);
    char *packed = malloc(bound);
    stream.next_in = (z_const Bytef *)data;
    stream.next_out = (Bytef *)packed;
    stream.avail_out = (uInt)bound;
    if (packed != NULL && deflate_in_steps(&stream, len) != Z_STREAM_END) {
        free(packed);
        packed = NULL;
    }
    *packed_len = stream.total_out;
    deflateEnd(&stream);
    return packed;
}

static void compress_body(http_response_t *response)
{
    size_t packed_len;
    char *packed = gzip(response->body, response->body_len, &packed_len);
    if (packed == NULL)
        return;
    free(response->body);
    response->body = packed;
    response->body_len = packed_len;
    response->gzipped = true;
}

void respond_json(exchange_t *exchange, json_t *document)
{
    http_response_t *response = &exchange->response;
    response->body = json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(12));
    json_decref(document);
    if (response->body == NULL) {
        response->status = 500;
        return;
    }
    response->body_len = strlen(response->body);
    if (response->body_len >= GZIP_WORTH_BYTES && http_header_has(&exchange->request, "Accept-Encoding", "gzip"))
        compress_body(response);
}

void respond_error(exchange_t *exchange, int status, const char *message)
{
    respond_json(exchange, json_pack("{s:s}", "error", message));
    exchange->response.status = status;
}
