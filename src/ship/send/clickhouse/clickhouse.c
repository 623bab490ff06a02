// SPDX-License-Identifier: MIT
#include "ship/send/clickhouse/clickhouse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { URL_MAX = 8192, PORT = 8123, PORT_TLS = 8443, SETTLE_MS = 500, SETTLE_LIMIT_MS = 60000, POLL_MS = 200 };

const char *const gp_clickhouse_option_names[] = {"cluster",   "tenant",   "tls",      "token_file", "ca_file",
                                                  "cert_file", "key_file", "insecure", "timeout",    NULL};

static int clickhouse_say(char *error, int result, const char *what)
{
    snprintf(error, GP_FLEET_ERROR_SIZE, "%s", what);
    return result;
}

static bool clickhouse_is_name(const char *text)
{
    size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return text[len] == '\0' && (text[0] < '0' || text[0] > '9');
}

static int clickhouse_split_hosts(gp_clickhouse_t *clickhouse)
{
    char *rest = clickhouse->hosts;
    for (char *host; (host = strsep(&rest, ",")) != NULL;)
        if (host[0] != '\0' && clickhouse->host_count < GP_CLICKHOUSE_HOSTS_MAX)
            clickhouse->host[clickhouse->host_count++] = host;
    return clickhouse->host_count > 0 ? 0 : -EINVAL;
}

int gp_clickhouse_open(gp_clickhouse_t **out, const gp_fleet_url_t *url, char error[GP_FLEET_ERROR_SIZE])
{
    const char *cluster = gp_fleet_url_option(url, "cluster"), *tls = gp_fleet_url_option(url, "tls");
    const char *database = url->path[0] == '/' && url->path[1] != '\0' ? url->path + 1 : "default";
    gp_http_options_t options = gp_http_options_of(url);
    gp_clickhouse_t *clickhouse = calloc(1, sizeof(*clickhouse));
    *out = NULL;
    if (clickhouse == NULL)
        return clickhouse_say(error, -ENOMEM, strerror(ENOMEM));
    clickhouse->tls = tls != NULL && strcmp(tls, "1") == 0;
    clickhouse->port = url->port != 0 ? url->port : clickhouse->tls ? PORT_TLS : PORT;
    clickhouse->hosts = strdup(url->host);
    clickhouse->database = strdup(database);
    clickhouse->cluster = strdup(cluster != NULL ? cluster : "");
    clickhouse->http = gp_http_create(&options);
    int result = 0;
    if (clickhouse->http == NULL)
        result = clickhouse_say(error, -errno, gp_http_why(errno));
    else if (clickhouse->hosts == NULL || clickhouse->database == NULL || clickhouse->cluster == NULL)
        result = clickhouse_say(error, -ENOMEM, strerror(ENOMEM));
    else if (!clickhouse_is_name(clickhouse->database) || !clickhouse_is_name(clickhouse->cluster))
        result = clickhouse_say(error, -EINVAL, "names of databases and clusters are letters, digits and '_'");
    else if (clickhouse_split_hosts(clickhouse) < 0)
        result = clickhouse_say(error, -EINVAL, "has no host");
    if (result < 0)
        gp_clickhouse_close(clickhouse);
    else
        *out = clickhouse;
    return result;
}

static char *clickhouse_append(char *at, const char *end, const char *text)
{
    int len = at == NULL ? -1 : snprintf(at, (size_t)(end - at), "%s", text);
    return len < 0 || len >= end - at ? NULL : at + len;
}

static char *clickhouse_append_parameter(char *at, const char *end, const char *name, const char *value)
{
    at = clickhouse_append(clickhouse_append(clickhouse_append(at, end, "&"), end, name), end, "=");
    return at == NULL ? NULL : gp_http_escape(at, end, value);
}

// http://host:port/?database=..., and of a statement with a body its text and number. NULL = none.
static int clickhouse_make_url(const gp_clickhouse_t *clickhouse, const char *query, const char *query_id,
                               char url[URL_MAX])
{
    const char *host = clickhouse->host[clickhouse->at], *end = &url[URL_MAX - 1]; // room for a NUL behind it
    const char *bracket = strrchr(host, ']'), *colon = strchr(bracket != NULL ? bracket : host, ':');
    char port[16] = "";
    if (colon == NULL)
        snprintf(port, sizeof(port), ":%u", clickhouse->port);
    char *at = clickhouse_append(url, end, clickhouse->tls ? "https://" : "http://");
    at = clickhouse_append(clickhouse_append(clickhouse_append(at, end, host), end, port), end, "/?database=");
    at = clickhouse_append(at, end, clickhouse->database);
    if (query_id != NULL)
        at = clickhouse_append_parameter(at, end, "query_id", query_id);
    if (query != NULL)
        at = clickhouse_append_parameter(at, end, "query", query);
    return at != NULL ? 0 : -E2BIG;
}

// "Code: 60, e.displayText() = DB::Exception: Table ... doesn't exist., e.what() = ..."
static void clickhouse_say_words(const gp_http_answer_t *answer, char *error)
{
    const char *words = answer->text != NULL ? strstr(answer->text, "DB::Exception: ") : NULL;
    words = words != NULL ? words + strlen("DB::Exception: ") : answer->text != NULL ? answer->text : "";
    const char *end = strstr(words, ", e.what()");
    size_t len = end != NULL ? (size_t)(end - words) : strcspn(words, "\r\n");
    snprintf(error, GP_FLEET_ERROR_SIZE, "HTTP status %ld: %.*s", answer->status, (int)(len < 180 ? len : 180), words);
}

// ClickHouse answers 500 for most of what is wrong with a request: its own code says what it means.
static int clickhouse_result_of(const gp_http_answer_t *answer)
{
    static const int denied[] = {192, 193, 194, 195, 291, 497, 516}, refused[] = {6, 27, 33, 36, 53, 60, 62, 81, 117};
    int code = answer->text != NULL && strncmp(answer->text, "Code: ", 6) == 0 ? atoi(answer->text + 6) : 0;
    for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++)
        if (code == denied[i])
            return -EACCES;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (code == refused[i])
            return -EINVAL;
    return gp_http_result(answer->status);
}

// Exchange with the chosen server, no other.
static int clickhouse_exchange(gp_clickhouse_t *clickhouse, const gp_http_request_t *request, gp_http_answer_t *answer,
                               char *error)
{
    int result = gp_http_send(clickhouse->http, request, answer, error);
    if (result < 0)
        return result;
    result = clickhouse_result_of(answer);
    if (result < 0)
        clickhouse_say_words(answer, error);
    return result;
}

static void clickhouse_go_on(gp_clickhouse_t *clickhouse)
{
    clickhouse->at = (clickhouse->at + 1) % clickhouse->host_count;
}

static int clickhouse_ask_here(gp_clickhouse_t *clickhouse, const char *query, size_t most, gp_http_answer_t *answer,
                               char *error)
{
    char url[URL_MAX];
    *answer = (gp_http_answer_t){0};
    if (clickhouse_make_url(clickhouse, NULL, NULL, url) < 0)
        return clickhouse_say(error, -E2BIG, "the store's name is too long");
    gp_http_request_t request = {.url = url, .body = query, .body_len = strlen(query), .answer_max = most};
    return clickhouse_exchange(clickhouse, &request, answer, error);
}

int gp_clickhouse_ask(gp_clickhouse_t *clickhouse, const char *query, size_t most, gp_http_answer_t *answer,
                      char error[GP_FLEET_ERROR_SIZE])
{
    int result = clickhouse_ask_here(clickhouse, query, most, answer, error);
    for (size_t i = 1; i < clickhouse->host_count && result == -ECONNREFUSED; i++) {
        clickhouse_go_on(clickhouse);
        gp_http_answer_free(answer);
        result = clickhouse_ask_here(clickhouse, query, most, answer, error);
    }
    return result;
}

int gp_clickhouse_ask_text(gp_clickhouse_t *clickhouse, const char *query, char *text, size_t size,
                           char error[GP_FLEET_ERROR_SIZE])
{
    gp_http_answer_t answer;
    int result = gp_clickhouse_ask(clickhouse, query, 0, &answer, error);
    const char *given = result == 0 && answer.text != NULL ? answer.text : "";
    snprintf(text, size, "%.*s", (int)strcspn(given, "\n"), given);
    gp_http_answer_free(&answer);
    return result;
}

static void clickhouse_pause_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

// How many such statements run on all servers. Each must answer.
static int clickhouse_count_running(gp_clickhouse_t *clickhouse, const char *query, unsigned long *running, char *error)
{
    int result = 0;
    *running = 0;
    for (size_t i = 0; i < clickhouse->host_count && result == 0; i++) {
        gp_http_answer_t answer;
        result = clickhouse_ask_here(clickhouse, query, 0, &answer, error);
        *running += result == 0 && answer.text != NULL ? strtoul(answer.text, NULL, 10) : 0;
        gp_http_answer_free(&answer);
        clickhouse_go_on(clickhouse);
    }
    return result == -EACCES ? result : result < 0 ? -EAGAIN : 0;
}

// A statement whose body was never asked for (wait_for_continue) does not begin to run later; one whose was is in the
// list of what runs a moment after.
int gp_clickhouse_settle(gp_clickhouse_t *clickhouse, const char *query_id_prefix, char error[GP_FLEET_ERROR_SIZE])
{
    char query[512];
    unsigned long running;
    snprintf(query, sizeof(query), "SELECT count() FROM system.processes WHERE startsWith(query_id, '%s')",
             query_id_prefix);
    int result = clickhouse_count_running(clickhouse, query, &running, error);
    clickhouse_pause_ms(SETTLE_MS);
    for (int i = 0; i < SETTLE_LIMIT_MS / POLL_MS && result == 0; i++) {
        result = clickhouse_count_running(clickhouse, query, &running, error);
        if (result < 0 || running == 0)
            return result;
        clickhouse_pause_ms(POLL_MS);
    }
    return result < 0 ? result : clickhouse_say(error, -EAGAIN, "an earlier attempt still runs in the store");
}

// By how long they have run; a second more, as they are counted from when they are read.
int gp_clickhouse_settle_all(gp_clickhouse_t *clickhouse, char error[GP_FLEET_ERROR_SIZE])
{
    int result = 0;
    for (int i = 0; i < SETTLE_LIMIT_MS / POLL_MS && result == 0; i++) {
        char query[512];
        unsigned long running;
        snprintf(
            query, sizeof(query),
            "SELECT count() FROM system.processes WHERE startsWith(query_id, 'greenprof-') AND elapsed * 1000 > %d",
            i * POLL_MS + (i > 0 ? SETTLE_MS : 0));
        result = clickhouse_count_running(clickhouse, query, &running, error);
        if (result < 0 || (i > 0 && running == 0))
            return result;
        clickhouse_pause_ms(i == 0 ? SETTLE_MS : POLL_MS);
    }
    return result < 0 ? result : clickhouse_say(error, -EAGAIN, "an earlier attempt still runs in the store");
}

int gp_clickhouse_insert(gp_clickhouse_t *clickhouse, const char *query, const void *body, size_t body_len,
                         const char *query_id, char error[GP_FLEET_ERROR_SIZE])
{
    int result = -ECONNREFUSED;
    for (size_t i = 0; i < clickhouse->host_count && result == -ECONNREFUSED; i++) {
        char url[URL_MAX];
        gp_http_answer_t answer;
        if (clickhouse_make_url(clickhouse, query, query_id, url) < 0)
            return clickhouse_say(error, -E2BIG, "the statement is too long");
        gp_http_request_t request = {
            .url = url, .body = body, .body_len = body_len, .gzip = true, .wait_for_continue = true};
        result = clickhouse_exchange(clickhouse, &request, &answer, error);
        gp_http_answer_free(&answer);
        if (result == -ECONNREFUSED)
            clickhouse_go_on(clickhouse);
    }
    return result;
}

char *gp_clickhouse_quote(char *at, const char *end, const char *text)
{
    if (end - at < 3)
        return NULL;
    *at++ = '\'';
    for (; *text != '\0'; text++) {
        if (end - at < 6)
            return NULL;
        if (*text == '\'' || *text == '\\')
            *at++ = '\\';
        *at++ = *text;
    }
    *at++ = '\'';
    *at = '\0';
    return at;
}

void gp_clickhouse_close(gp_clickhouse_t *clickhouse)
{
    if (clickhouse == NULL)
        return;
    gp_http_free(clickhouse->http);
    free(clickhouse->hosts);
    free(clickhouse->database);
    free(clickhouse->cluster);
    free(clickhouse);
}
