// SPDX-License-Identifier: MIT
// Pyroscope: pyroscope+http://host[:port][/path][?tenant=T&...], its /ingest with pprof.
//
// Model: a batch is one request for each moment and each measure (CPU time, the wall clock, latency, delays) with rows:
// an application "SERVICE.cpu{host=...,version=...,...}" has one profile of this moment. Coroutines and traces are left
// out: every value of a label makes a series of its own there. Source: grafana.com/docs/pyroscope, "Server HTTP API".
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stream.h"
#include "export/formats.h"
#include "export/write/text.h"
#include "report/report_words.h"
#include "ship/send/batch_to_report.h"
#include "ship/send/destination.h"
#include "ship/send/http_batches.h"
#include "ship/send/resource.h"

enum { DEFAULT_PORT = 4040, NAME_SIZE = 2048, TENANT_SIZE = 256 };

typedef struct pyroscope {
    gp_http_batches_t post;
    char *tenant; // NULL = that of the process
} pyroscope_t;

#define BOUNDARY "greenprof-7e2f1c0a9b"
static const char *const names[] = {"tenant", NULL};

static gp_http_t *pyroscope_http(const void *destination)
{
    return ((const pyroscope_t *)destination)->post.http;
}

static void pyroscope_close_pyroscope(void *destination)
{
    pyroscope_t *pyroscope = destination;
    gp_http_batches_close(&pyroscope->post);
    free(pyroscope->tenant);
    free(pyroscope);
}

static int pyroscope_open_pyroscope(void **destination, const gp_fleet_url_t *given, char error[GP_FLEET_ERROR_SIZE])
{
    pyroscope_t *pyroscope = calloc(1, sizeof(*pyroscope));
    const char *tenant = gp_fleet_url_option(given, "tenant");
    gp_fleet_url_t url = *given;
    if (url.port == 0)
        url.port = DEFAULT_PORT;
    int result = pyroscope != NULL ? gp_http_batches_open(&pyroscope->post, &url, names, error) : -ENOMEM;
    if (result == 0 && tenant != NULL) {
        pyroscope->tenant = strdup(tenant);
        result = pyroscope->tenant != NULL ? 0 : -ENOMEM;
    }
    if (result < 0 && pyroscope != NULL)
        pyroscope_close_pyroscope(pyroscope);
    else
        *destination = pyroscope;
    return result;
}

// Add a text of which `{`, `}`, `,`, `=` and what else the syntax has are '_'; of a key also dots and the like.
static void pyroscope_add_word(char name[NAME_SIZE], const char *text, bool is_key)
{
    size_t len = strlen(name);
    for (; *text != '\0' && len + 1 < NAME_SIZE; text++) {
        bool is_letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') || *text == '_';
        bool is_digit = *text >= '0' && *text <= '9';
        bool is_plain = is_letter || is_digit || (!is_key && strchr("{},=\"\\", *text) == NULL && *text >= ' ');
        name[len++] = is_plain ? *text : '_';
    }
    name[len] = '\0';
}

static void pyroscope_add_label(char name[NAME_SIZE], const char *key, const char *value)
{
    size_t len = strlen(name);
    if (value[0] == '\0' || len + strlen(key) + strlen(value) + 3 > NAME_SIZE)
        return;
    if (name[len - 1] != '{')
        memcpy(name + len, ",", 2);
    pyroscope_add_word(name, key, true);
    len = strlen(name);
    memcpy(name + len, "=", 2);
    pyroscope_add_word(name, value, false);
}

// "SERVICE.cpu{host=a,version=2}"
static void pyroscope_make_name(const gp_row_process_t *process, const char *measure, char name[NAME_SIZE])
{
    name[0] = '\0';
    pyroscope_add_word(name, process->service[0] != '\0' ? process->service : "unknown", false);
    size_t len = strlen(name);
    snprintf(name + len, NAME_SIZE - len, ".%s{", measure);
    pyroscope_add_label(name, "host", process->host);
    pyroscope_add_label(name, "version", process->version);
    for (size_t i = 0; i < process->label_count; i++)
        if (!gp_fleet_label_is_known(process->labels[i].key) && strcmp(process->labels[i].key, "host") != 0)
            pyroscope_add_label(name, process->labels[i].key, process->labels[i].value);
    len = strlen(name);
    if (len + 1 < NAME_SIZE)
        memcpy(name + len, "}", 2);
}

static int pyroscope_make_url(const pyroscope_t *pyroscope, const gp_batch_t *batch, const gp_report_t *report,
                              char url[GP_POST_URL_SIZE])
{
    char name[NAME_SIZE];
    uint64_t from = report->start_realtime_ns / 1000000000;
    int len = snprintf(url, GP_POST_URL_SIZE,
                       "%s/ingest?spyName=greenprof&format=pprof&from=%" PRIu64 "&until=%" PRIu64 "&name=",
                       pyroscope->post.base, from, from + report->duration_ns / 1000000000);
    pyroscope_make_name(batch->process, gp_measure_name(report->measure), name);
    if (len < 0 || gp_http_escape(url + len, url + GP_POST_URL_SIZE, name) == NULL)
        return -ENAMETOOLONG;
    return 0;
}

static void pyroscope_add_text(gp_text_t *body, const char *text)
{
    gp_text_add(body, text, strlen(text));
}

// A form of two files: the profile, and how its values are to be read.
static int pyroscope_make_form(const gp_report_t *report, gp_text_t *form)
{
    char *profile = NULL, config[512];
    size_t len = 0;
    FILE *stream = open_memstream(&profile, &len);
    int result = stream != NULL ? gp_pprof_write(report, stream) : -ENOMEM;
    if (stream != NULL && !gp_stream_close(stream) && result == 0)
        result = -ENOMEM;
    snprintf(config, sizeof(config),
             "{\"%s\":{\"units\":\"nanoseconds\",\"display-name\":\"%s\",\"aggregation\":\"sum\",\"sampled\":false},"
             "\"samples\":{\"units\":\"count\",\"display-name\":\"%s_samples\",\"aggregation\":\"sum\","
             "\"sampled\":false}}",
             gp_measure_name(report->measure), gp_measure_name(report->measure), gp_measure_name(report->measure));
    pyroscope_add_text(form, "--" BOUNDARY
                             "\r\nContent-Disposition: form-data; name=\"profile\"; filename=\"profile.pprof\"\r\n"
                             "Content-Type: application/octet-stream\r\n\r\n");
    if (result == 0)
        gp_text_add(form, profile, len);
    pyroscope_add_text(form, "\r\n--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"sample_type_config\"; "
                             "filename=\"sample_type_config.json\"\r\nContent-Type: application/json\r\n\r\n");
    pyroscope_add_text(form, config);
    pyroscope_add_text(form, "\r\n--" BOUNDARY "--\r\n");
    free(profile);
    return result == 0 && form->failed ? -ENOMEM : result;
}

static int pyroscope_send_profile(pyroscope_t *pyroscope, const gp_batch_t *batch, const gp_report_t *report,
                                  char *error)
{
    const char *tenant = pyroscope->tenant != NULL ? pyroscope->tenant : batch->process->tenant;
    char url[GP_POST_URL_SIZE], header[TENANT_SIZE];
    const char *headers[] = {"Content-Type: multipart/form-data; boundary=" BOUNDARY, header, NULL};
    gp_text_t form = {0};
    gp_http_answer_t answer;
    snprintf(header, sizeof(header), "X-Scope-OrgID: %.200s", tenant);
    header[strcspn(header, "\r\n")] = '\0';
    if (tenant[0] == '\0')
        headers[1] = NULL;
    int result = pyroscope_make_url(pyroscope, batch, report, url);
    if (result == 0)
        result = pyroscope_make_form(report, &form);
    if (result < 0) {
        gp_text_free(&form);
        return gp_http_batches_fail(error, result);
    }
    const gp_http_request_t request = {.url = url, .headers = headers, .body = form.data, .body_len = form.len};
    result = gp_http_batches_send(&pyroscope->post, &request, &answer, error);
    gp_http_answer_free(&answer);
    gp_text_free(&form);
    return result;
}

static int pyroscope_send_batch(pyroscope_t *pyroscope, const gp_batch_t *batch, char *error)
{
    int result = gp_http_batches_begin(&pyroscope->post, batch);
    if (result < 0)
        return gp_http_batches_fail(error, result);
    for (gp_batch_part_t part = {0}; result == 0 && gp_batch_next_part(batch, &part);) {
        if (!gp_http_batches_is_due(&pyroscope->post))
            continue;
        gp_report_t *report = gp_batch_to_report(batch, &part, false, NULL);
        if (report == NULL && errno == 0)
            continue;
        result = report != NULL ? pyroscope_send_profile(pyroscope, batch, report, error)
                                : gp_http_batches_fail(error, -ENOMEM);
        gp_batch_to_report_free(report);
    }
    return result;
}

static int pyroscope_send_pyroscope(void *destination, const gp_batch_t *batches, size_t count, bool again,
                                    char error[GP_FLEET_ERROR_SIZE])
{
    pyroscope_t *pyroscope = destination;
    int result = 0;
    (void)again; // a receiver cannot be asked
    for (size_t i = 0; i < count && result == 0; i++)
        result = pyroscope_send_batch(pyroscope, &batches[i], error);
    if (result == 0)
        gp_http_batches_done(&pyroscope->post);
    return result;
}

static void pyroscope_describe(void *destination, const gp_batch_t *batch, FILE *out)
{
    const pyroscope_t *pyroscope = destination;
    char name[NAME_SIZE];
    pyroscope_make_name(batch->process, "TYPE", name);
    fprintf(out, "%s/ingest: %s: %zu rows of samples as pprof of the types cpu, wall, latency and delay: stacks\n",
            pyroscope->post.base, name, batch->sample_count);
}

const gp_destination_kind_t gp_destination_pyroscope = {
    .open = pyroscope_open_pyroscope,
    .send = pyroscope_send_pyroscope,
    .http = pyroscope_http,
    .describe = pyroscope_describe,
    .close = pyroscope_close_pyroscope,
};
