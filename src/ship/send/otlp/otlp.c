// SPDX-License-Identifier: MIT
// OpenTelemetry over HTTP: otlp+http://host[:port][/path][?signals=profiles|traces&...], to any collector.
//
// Model: a batch is one request to /v1development/profiles for each moment and each of CPU time, the wall clock,
// latency and delays that it has rows of, then one to /v1/traces for every so many spans. Refused parts of a request
// that is taken (partial success) are counted and told once, as they would be refused again. Source:
// opentelemetry.io/docs/specs/otlp, OTLP/HTTP.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stream.h"
#include "export/formats.h"
#include "export/otlp_fields.h"
#include "ship/send/batch_to_report.h"
#include "ship/send/destination.h"
#include "ship/send/http_batches.h"
#include "ship/send/otlp/spans.h"
#include "ship/send/resource.h"

enum { DEFAULT_PORT = 4318, SPANS_MAX = 5000, MESSAGE_MAX = 128 };

typedef struct otlp_http {
    gp_http_batches_t post;
    char profiles[GP_POST_URL_SIZE], traces[GP_POST_URL_SIZE];
    bool wants_profiles, wants_traces;
    char *shown;
    uint64_t refused;
    bool told;
} otlp_http_t;

static const char *const names[] = {"signals", NULL};

static gp_http_t *otlp_http(const void *destination)
{
    return ((const otlp_http_t *)destination)->post.http;
}

static void otlp_close_otlp(void *destination)
{
    otlp_http_t *otlp = destination;
    if (otlp->refused > 0)
        fprintf(stderr, "greenprof: %s: %llu samples and spans were refused in all\n", otlp->shown,
                (unsigned long long)otlp->refused);
    gp_http_batches_close(&otlp->post);
    free(otlp->shown);
    free(otlp);
}

static int otlp_choose_signals(otlp_http_t *otlp, const char *signals, char *error)
{
    otlp->wants_profiles = signals == NULL || strcmp(signals, "profiles") == 0;
    otlp->wants_traces = signals == NULL || strcmp(signals, "traces") == 0;
    if (otlp->wants_profiles || otlp->wants_traces)
        return 0;
    snprintf(error, GP_FLEET_ERROR_SIZE, "signals is profiles or traces; without, both are sent");
    return -EINVAL;
}

static int otlp_open_otlp(void **destination, const gp_fleet_url_t *given, char error[GP_FLEET_ERROR_SIZE])
{
    otlp_http_t *otlp = calloc(1, sizeof(*otlp));
    gp_fleet_url_t url = *given;
    if (url.port == 0)
        url.port = DEFAULT_PORT;
    int result = otlp != NULL ? gp_http_batches_open(&otlp->post, &url, names, error) : -ENOMEM;
    if (result == 0) {
        otlp->shown = strdup(given->shown);
        result =
            otlp->shown != NULL ? otlp_choose_signals(otlp, gp_fleet_url_option(given, "signals"), error) : -ENOMEM;
    }
    if (result < 0) {
        if (otlp != NULL)
            otlp_close_otlp(otlp);
        return result;
    }
    snprintf(otlp->profiles, sizeof(otlp->profiles), "%s/v1development/profiles", otlp->post.base);
    snprintf(otlp->traces, sizeof(otlp->traces), "%s/v1/traces", otlp->post.base);
    *destination = otlp;
    return 0;
}

static bool otlp_read_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

// Go to the next field of a message: a number, or bytes. Returns its number; 0 at the end and for what is no message.
static unsigned otlp_next_field(const uint8_t **at, const uint8_t *end, uint64_t *value, const uint8_t **bytes)
{
    uint64_t tag;
    *bytes = NULL;
    if (*at >= end || !otlp_read_varint(at, end, &tag) || !otlp_read_varint(at, end, value))
        return 0;
    if ((tag & 7) == 0)
        return (unsigned)(tag >> 3);
    if ((tag & 7) != 2 || *value > (uint64_t)(end - *at))
        return 0;
    *bytes = *at;
    *at += *value;
    return (unsigned)(tag >> 3);
}

// Count what was refused: ExportProfilesServiceResponse and ExportTraceServiceResponse have the same fields.
static void otlp_read_partial_success(otlp_http_t *otlp, const gp_http_answer_t *answer)
{
    const uint8_t *at = (const uint8_t *)answer->text, *end = at + answer->len, *partial = NULL, *bytes = NULL;
    uint64_t value = 0, refused = 0;
    char message[MESSAGE_MAX] = "";
    unsigned field;
    while (at != NULL && partial == NULL && (field = otlp_next_field(&at, end, &value, &bytes)) != 0)
        if (field == EXPORT_RESPONSE_PARTIAL_SUCCESS && bytes != NULL)
            partial = bytes;
    if (partial == NULL)
        return;
    end = partial + value;
    while ((field = otlp_next_field(&partial, end, &value, &bytes)) != 0) {
        if (field == PARTIAL_SUCCESS_REJECTED && bytes == NULL)
            refused = value;
        if (field == PARTIAL_SUCCESS_MESSAGE && bytes != NULL)
            snprintf(message, sizeof(message), "%.*s", (int)(value < MESSAGE_MAX ? value : MESSAGE_MAX), bytes);
    }
    otlp->refused += refused;
    if ((refused > 0 || message[0] != '\0') && !otlp->told) {
        for (char *c = message; *c != '\0'; c++)
            *c = (unsigned char)*c < ' ' ? ' ' : *c;
        fprintf(stderr, "greenprof: %s: %llu samples or spans were refused: %s\n", otlp->shown,
                (unsigned long long)refused, message);
        otlp->told = true;
    }
}

static int otlp_send_body(otlp_http_t *otlp, const char *url, const void *body, size_t len, char *error)
{
    static const char *const headers[] = {"Content-Type: application/x-protobuf", NULL};
    const gp_http_request_t request = {.url = url, .headers = headers, .body = body, .body_len = len, .gzip = true};
    gp_http_answer_t answer;
    int result = gp_http_batches_send(&otlp->post, &request, &answer, error);
    if (result == 0)
        otlp_read_partial_success(otlp, &answer);
    gp_http_answer_free(&answer);
    return result;
}

static int otlp_send_profile(otlp_http_t *otlp, const gp_report_t *report, char *error)
{
    char *body = NULL;
    size_t len = 0;
    FILE *stream = open_memstream(&body, &len);
    int result = stream != NULL ? gp_otlp_write(report, stream) : -ENOMEM;
    if (stream != NULL && !gp_stream_close(stream) && result == 0)
        result = -ENOMEM;
    result = result == 0 ? otlp_send_body(otlp, otlp->profiles, body, len, error) : gp_http_batches_fail(error, result);
    free(body);
    return result;
}

static int otlp_send_samples(otlp_http_t *otlp, const gp_batch_t *batch, const char *const *resource, char *error)
{
    int result = 0;
    for (gp_batch_part_t part = {0}; result == 0 && gp_batch_next_part(batch, &part);) {
        if (!gp_http_batches_is_due(&otlp->post))
            continue;
        gp_report_t *report = gp_batch_to_report(batch, &part, true, resource);
        if (report == NULL && errno == 0)
            continue;
        result = report != NULL ? otlp_send_profile(otlp, report, error) : gp_http_batches_fail(error, -ENOMEM);
        gp_batch_to_report_free(report);
    }
    return result;
}

static int otlp_send_spans(otlp_http_t *otlp, const gp_batch_t *batch, const char *const *resource, char *error)
{
    int result = 0;
    for (size_t from = 0; from < batch->span_count && result == 0; from += SPANS_MAX) {
        size_t to = batch->span_count - from < SPANS_MAX ? batch->span_count : from + SPANS_MAX;
        gp_text_t data = {0};
        if (!gp_http_batches_is_due(&otlp->post))
            continue;
        if (gp_otlp_spans(batch, from, to, resource, &data) > 0)
            result = data.failed ? gp_http_batches_fail(error, -ENOMEM)
                                 : otlp_send_body(otlp, otlp->traces, data.data, data.len, error);
        gp_text_free(&data);
    }
    return result;
}

static int otlp_send_batch(otlp_http_t *otlp, const gp_batch_t *batch, char *error)
{
    gp_fleet_resource_t resource;
    int result = gp_http_batches_begin(&otlp->post, batch);
    if (result == 0)
        result = gp_fleet_resource_make(&resource, batch->process);
    if (result < 0)
        return gp_http_batches_fail(error, result);
    if (otlp->wants_profiles)
        result = otlp_send_samples(otlp, batch, resource.pairs, error);
    if (result == 0 && otlp->wants_traces)
        result = otlp_send_spans(otlp, batch, resource.pairs, error);
    gp_fleet_resource_free(&resource);
    return result;
}

static int otlp_send_otlp(void *destination, const gp_batch_t *batches, size_t count, bool again,
                          char error[GP_FLEET_ERROR_SIZE])
{
    otlp_http_t *otlp = destination;
    int result = 0;
    (void)again; // a receiver cannot be asked
    for (size_t i = 0; i < count && result == 0; i++)
        result = otlp_send_batch(otlp, &batches[i], error);
    if (result == 0)
        gp_http_batches_done(&otlp->post);
    return result;
}

static void otlp_describe(void *destination, const gp_batch_t *batch, FILE *out)
{
    const otlp_http_t *otlp = destination;
    gp_fleet_resource_t resource;
    if (gp_fleet_resource_make(&resource, batch->process) < 0)
        return;
    if (otlp->wants_profiles)
        fprintf(out, "%s: %zu rows of samples: stacks, coroutines' names, trace ids\n", otlp->profiles,
                batch->sample_count);
    if (otlp->wants_traces)
        fprintf(out, "%s: %zu spans: ids, names, times\n", otlp->traces, batch->span_count);
    fprintf(out, "  resource: service.name=%s", batch->process->service);
    for (size_t i = 0; resource.pairs[i] != NULL; i += 2)
        if (resource.pairs[i + 1][0] != '\0')
            fprintf(out, " %s=%s", resource.pairs[i], resource.pairs[i + 1]);
    fputc('\n', out);
    gp_fleet_resource_free(&resource);
}

const gp_destination_kind_t gp_destination_otlp = {
    .open = otlp_open_otlp,
    .send = otlp_send_otlp,
    .http = otlp_http,
    .describe = otlp_describe,
    .close = otlp_close_otlp,
};
