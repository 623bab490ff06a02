// SPDX-License-Identifier: MIT
#include "ship/send/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    CONNECT_MS = 10000,
    TOTAL_MS = 300000,
    STALLED_S = 60,
    ANSWER_MAX = 64 << 10,
    GZIP_LEVEL = 1,
    TOKEN_MAX = 8192,
    WAIT_MAX_S = 3600
};

struct gp_http {
    CURL *curl;
    gp_http_options_t options; // texts of its own
    struct libdeflate_compressor *compressor;
    uint8_t *packed;
    size_t packed_room;
    uint64_t bytes, not_before_ns;
    char detail[CURL_ERROR_SIZE];
};

const char *const gp_http_option_names[] = {"token_file", "ca_file", "cert_file", "key_file",
                                            "insecure",   "timeout", NULL};

gp_http_options_t gp_http_options_of(const gp_fleet_url_t *url)
{
    const char *insecure = gp_fleet_url_option(url, "insecure"), *timeout = gp_fleet_url_option(url, "timeout");
    unsigned long seconds = timeout != NULL ? strtoul(timeout, NULL, 10) : 0;
    return (gp_http_options_t){
        .user = url->user,
        .password = url->password,
        .token_file = gp_fleet_url_option(url, "token_file"),
        .ca_file = gp_fleet_url_option(url, "ca_file"),
        .cert_file = gp_fleet_url_option(url, "cert_file"),
        .key_file = gp_fleet_url_option(url, "key_file"),
        .insecure = insecure != NULL && strcmp(insecure, "1") == 0,
        .total_ms = seconds > 86400 ? 86400000 : (unsigned)seconds * 1000,
    };
}

static pthread_once_t initialized = PTHREAD_ONCE_INIT;

static void http_initialize(void)
{
    curl_global_init(CURL_GLOBAL_ALL);
}

static const char *http_copy_of(const char *text)
{
    return text != NULL && text[0] != '\0' ? strdup(text) : NULL;
}

gp_http_t *gp_http_create(const gp_http_options_t *options)
{
    pthread_once(&initialized, http_initialize);
    gp_http_t *http = calloc(1, sizeof(*http));
    if (http == NULL)
        return NULL;
    http->curl = curl_easy_init();
    int error = http->curl == NULL && errno == ELIBACC ? ELIBACC : ENOMEM; // looked for now (tools/wheel/found.c)
    http->compressor = libdeflate_alloc_compressor(GZIP_LEVEL);
    http->options = *options;
    http->options.user = http_copy_of(options->user);
    http->options.password = http_copy_of(options->password);
    http->options.token_file = http_copy_of(options->token_file);
    http->options.ca_file = http_copy_of(options->ca_file);
    http->options.cert_file = http_copy_of(options->cert_file);
    http->options.key_file = http_copy_of(options->key_file);
    if (http->curl == NULL || http->compressor == NULL) {
        gp_http_free(http);
        errno = error;
        return NULL;
    }
    return http;
}

typedef struct exchange {
    const gp_http_request_t *request;
    gp_http_answer_t *answer;
    size_t room;
    int error; // of keeping the answer
} exchange_t;

static int http_keep(exchange_t *exchange, const void *bytes, size_t len)
{
    gp_http_answer_t *answer = exchange->answer;
    size_t most = exchange->request->answer_max != 0 ? exchange->request->answer_max : ANSWER_MAX;
    if (answer->len + len > most)
        return -EMSGSIZE;
    if (answer->len + len + 1 > exchange->room) {
        size_t room = 2 * (answer->len + len) + 256;
        char *text = realloc(answer->text, room);
        if (text == NULL)
            return -ENOMEM;
        answer->text = text;
        exchange->room = room;
    }
    memcpy(answer->text + answer->len, bytes, len);
    answer->len += len;
    answer->text[answer->len] = '\0';
    return 0;
}

static size_t http_on_answer(char *bytes, size_t one, size_t len, void *context)
{
    exchange_t *exchange = context;
    (void)one;
    exchange->error = http_keep(exchange, bytes, len);
    return exchange->error == 0 ? len : 0;
}

static int http_say(char *error, int result, const char *what)
{
    snprintf(error, GP_FLEET_ERROR_SIZE, "%s", what);
    return result;
}

static int http_read_token(const char *path, char *token, size_t size, char *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, token, size - 1) : -1;
    int reason = errno;
    if (fd >= 0)
        close(fd);
    if (len < 0) {
        snprintf(error, GP_FLEET_ERROR_SIZE, "token file %s: %s", path, strerror(reason));
        return -EACCES;
    }
    token[len] = '\0';
    token[strcspn(token, "\r\n")] = '\0';
    return 0;
}

static int http_add_header(struct curl_slist **list, const char *text)
{
    struct curl_slist *longer = curl_slist_append(*list, text);
    if (longer == NULL)
        return -ENOMEM;
    *list = longer;
    return 0;
}

static int http_make_headers(const gp_http_t *http, const gp_http_request_t *request, struct curl_slist **list,
                             char *error)
{
    int result = 0;
    for (size_t i = 0; result == 0 && request->headers != NULL && request->headers[i] != NULL; i++)
        result = http_add_header(list, request->headers[i]);
    if (result == 0 && request->body != NULL)
        result = http_add_header(list, request->wait_for_continue ? "Expect: 100-continue" : "Expect:");
    if (result == 0 && request->body != NULL && request->gzip)
        result = http_add_header(list, "Content-Encoding: gzip");
    if (result == 0 && http->options.token_file != NULL) {
        char token[TOKEN_MAX], header[TOKEN_MAX + 32];
        result = http_read_token(http->options.token_file, token, sizeof(token), error);
        if (result < 0)
            return result;
        snprintf(header, sizeof(header), "Authorization: Bearer %s", token);
        result = http_add_header(list, header);
    }
    return result < 0 ? http_say(error, result, strerror(-result)) : 0;
}

// Set the body, compressed where it is to be.
static int http_set_body(gp_http_t *http, const gp_http_request_t *request, char *error)
{
    const void *body = request->body;
    size_t len = request->body_len;
    if (request->gzip) {
        size_t most = libdeflate_gzip_compress_bound(http->compressor, len);
        if (most > http->packed_room) {
            free(http->packed);
            http->packed = malloc(most);
            http->packed_room = http->packed != NULL ? most : 0;
        }
        if (http->packed == NULL)
            return http_say(error, -ENOMEM, strerror(ENOMEM));
        len = libdeflate_gzip_compress(http->compressor, body, len, http->packed, http->packed_room);
        body = http->packed;
    }
    curl_easy_setopt(http->curl, CURLOPT_POST, 1L);
    curl_easy_setopt(http->curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(http->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
    return 0;
}

static void http_set_options(gp_http_t *http, const gp_http_request_t *request)
{
    const gp_http_options_t *options = &http->options;
    CURL *curl = http->curl;
    unsigned total_ms = options->total_ms != 0 ? options->total_ms : TOTAL_MS;
    curl_easy_reset(curl); // keeps the connection
    curl_easy_setopt(curl, CURLOPT_URL, request->url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, http->detail);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)(options->connect_ms != 0 ? options->connect_ms : CONNECT_MS));
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)total_ms);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)STALLED_S);
    curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "");
    if (request->wait_for_continue)
        curl_easy_setopt(curl, CURLOPT_EXPECT_100_TIMEOUT_MS,
                         (long)(total_ms < INT32_MAX / 2 ? 2 * total_ms : INT32_MAX));
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "greenprof");
    if (options->user != NULL)
        curl_easy_setopt(curl, CURLOPT_USERNAME, options->user);
    if (options->password != NULL)
        curl_easy_setopt(curl, CURLOPT_PASSWORD, options->password);
    if (options->ca_file != NULL)
        curl_easy_setopt(curl, CURLOPT_CAINFO, options->ca_file);
    if (options->cert_file != NULL)
        curl_easy_setopt(curl, CURLOPT_SSLCERT, options->cert_file);
    if (options->key_file != NULL)
        curl_easy_setopt(curl, CURLOPT_SSLKEY, options->key_file);
    if (options->insecure) {
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

// -ECONNREFUSED: there was no connection, so nothing was sent.
static int http_errno_of(CURL *curl, CURLcode code)
{
    curl_off_t pretransfer_us = 0;
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
        curl_easy_getinfo(curl, CURLINFO_PRETRANSFER_TIME_T, &pretransfer_us);
        return pretransfer_us > 0 ? -ETIMEDOUT : -ECONNREFUSED;
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return -ECONNREFUSED;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
        return -EACCES; // something has to be done first; nothing was sent
    case CURLE_OUT_OF_MEMORY:
        return -ENOMEM;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return -EINVAL;
    default:
        return -EIO;
    }
}

static void http_count_bytes(gp_http_t *http)
{
    curl_off_t up = 0, down = 0;
    long request = 0, header = 0;
    curl_easy_getinfo(http->curl, CURLINFO_SIZE_UPLOAD_T, &up);
    curl_easy_getinfo(http->curl, CURLINFO_SIZE_DOWNLOAD_T, &down);
    curl_easy_getinfo(http->curl, CURLINFO_REQUEST_SIZE, &request);
    curl_easy_getinfo(http->curl, CURLINFO_HEADER_SIZE, &header);
    http->bytes += (uint64_t)(up + down + request + header);
}

static void http_read_retry_after(gp_http_t *http, const gp_http_answer_t *answer)
{
    curl_off_t seconds = 0;
    http->not_before_ns = 0;
    if (gp_http_result(answer->status) != 0)
        curl_easy_getinfo(http->curl, CURLINFO_RETRY_AFTER, &seconds);
    if (seconds > 0)
        http->not_before_ns = gp_now_ns() + (uint64_t)(seconds < WAIT_MAX_S ? seconds : WAIT_MAX_S) * 1000000000;
}

uint64_t gp_http_not_before_ns(const gp_http_t *http)
{
    return http->not_before_ns;
}

int gp_http_send(gp_http_t *http, const gp_http_request_t *request, gp_http_answer_t *answer,
                 char error[GP_FLEET_ERROR_SIZE])
{
    exchange_t exchange = {.request = request, .answer = answer};
    struct curl_slist *headers = NULL;
    *answer = (gp_http_answer_t){0};
    http->detail[0] = '\0';
    http_set_options(http, request);
    int result = request->body != NULL ? http_set_body(http, request, error) : 0;
    if (result == 0)
        result = http_make_headers(http, request, &headers, error);
    if (result == 0) {
        curl_easy_setopt(http->curl, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(http->curl, CURLOPT_WRITEFUNCTION, http_on_answer);
        curl_easy_setopt(http->curl, CURLOPT_WRITEDATA, &exchange);
        CURLcode code = curl_easy_perform(http->curl);
        curl_easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &answer->status);
        http_read_retry_after(http, answer);
        http_count_bytes(http);
        if (exchange.error != 0)
            result = http_say(error, exchange.error,
                              exchange.error == -EMSGSIZE ? "the answer is too large" : strerror(-exchange.error));
        else if (code != CURLE_OK)
            result = http_say(error, http_errno_of(http->curl, code),
                              http->detail[0] != '\0' ? http->detail : curl_easy_strerror(code));
    }
    curl_slist_free_all(headers);
    return result;
}

int gp_http_result(long status)
{
    if (status >= 200 && status < 300)
        return 0;
    if (status == 401 || status == 403)
        return -EACCES;
    return status == 408 || status == 429 || status >= 500 ? -EAGAIN : -EINVAL;
}

uint64_t gp_http_bytes(const gp_http_t *http)
{
    return http->bytes;
}

void gp_http_answer_free(gp_http_answer_t *answer)
{
    free(answer->text);
    *answer = (gp_http_answer_t){0};
}

void gp_http_free(gp_http_t *http)
{
    if (http == NULL)
        return;
    if (http->curl != NULL)
        curl_easy_cleanup(http->curl);
    if (http->compressor != NULL)
        libdeflate_free_compressor(http->compressor);
    free((char *)http->options.user);
    free((char *)http->options.password);
    free((char *)http->options.token_file);
    free((char *)http->options.ca_file);
    free((char *)http->options.cert_file);
    free((char *)http->options.key_file);
    free(http->packed);
    free(http);
}

const char *gp_http_why(int error)
{
    return error == ELIBACC ? "there is no libcurl.so.4 on this machine" : strerror(error);
}

char *gp_http_escape(char *at, const char *end, const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (; *text != '\0'; text++) {
        if (end - at < 4)
            return NULL;
        if (strchr(plain, *text) != NULL)
            *at++ = *text;
        else
            at += sprintf(at, "%%%02X", (unsigned char)*text);
    }
    *at = '\0';
    return at;
}
