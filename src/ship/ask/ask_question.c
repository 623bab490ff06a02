// SPDX-License-Identifier: MIT
#include "ship/ask/ask_question.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hex.h"
#include "base/number.h"
#include "base/stream.h"

enum { QUOTED_MAX = 4096 };

#define ANSWER_MAX ((size_t)1 << 30) // bytes: 10 million rows

static const char *const filter_names[] = {"service", "host", "version", "endpoint", "trace",
                                           "label",   "from", "to",      NULL};

int gp_question_fail(const gp_question_t *question, int result, const char *what, const char *detail)
{
    snprintf(question->error, GP_FLEET_ERROR_SIZE, "%s%s", what, detail);
    return result;
}

static bool ask_question_is_in(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

int gp_question_quote(FILE *query, const char *text)
{
    char quoted[QUOTED_MAX];
    if (gp_clickhouse_quote(quoted, quoted + sizeof(quoted), text) == NULL)
        return -EINVAL;
    fputs(quoted, query);
    return 0;
}

// "-1h", "@1763900000", "1763900000", "2026-11-21T12:00:00Z" (UTC), "2026-11-21".
static bool ask_question_read_moment(const char *text, uint64_t *seconds)
{
    static const struct {
        char unit;
        unsigned seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
    const char *end;
    struct tm utc = {0};
    const char *rest = strptime(text, "%Y-%m-%d", &utc);
    if (rest != NULL && *rest != '\0')
        rest = strptime(rest + 1, "%H:%M:%S", &utc);
    if (rest != NULL && (*rest == '\0' || strcmp(rest, "Z") == 0)) {
        *seconds = (uint64_t)timegm(&utc);
        return true;
    }
    bool is_before = text[0] == '-';
    double number = gp_number_read(text + (is_before || text[0] == '@'), &end);
    if (!is_before && *end == '\0' && end > text && number >= 0 && number < 4e9) {
        *seconds = (uint64_t)number;
        return true;
    }
    for (size_t i = 0; is_before && i < sizeof(units) / sizeof(units[0]); i++)
        if (*end == units[i].unit && end[1] == '\0' && number >= 0 && number * units[i].seconds < 4e9) {
            *seconds = (uint64_t)time(NULL) - (uint64_t)(number * units[i].seconds);
            return true;
        }
    return false;
}

static int ask_question_put_moment(FILE *query, gp_question_t *question, const char *name, const char *value,
                                   bool has_start)
{
    uint64_t seconds;
    const char *than = strcmp(name, "from") == 0 ? ">=" : "<";
    if (!ask_question_read_moment(value, &seconds))
        return -EINVAL;
    *(strcmp(name, "from") == 0 ? &question->from_s : &question->to_s) = seconds;
    if (has_start)
        fprintf(query, "start_ns %s %" PRIu64 "000000000", than, seconds);
    else
        fprintf(query, "time %s toDateTime(%" PRIu64 ")", than, seconds);
    fprintf(query, " AND day %s toDate(toDateTime(%" PRIu64 "))", strcmp(name, "from") == 0 ? ">=" : "<=", seconds);
    return 0;
}

// A condition on spans by a value in another table.
static int ask_question_put_elsewhere(FILE *query, const gp_question_t *question, const char *key, const char *table,
                                      const gp_row_pair_t *filter)
{
    fprintf(query, "%s GLOBAL IN (SELECT %s FROM %s%s WHERE tenant = ", key, key, question->prefix, table);
    int result = gp_question_quote(query, question->tenant);
    fprintf(query, " AND %s = ", filter->key);
    result = result == 0 ? gp_question_quote(query, filter->value) : result;
    fputc(')', query);
    return result;
}

static int ask_question_put_label(FILE *query, const char *table, const char *tenant, const char *value)
{
    size_t len = strcspn(value, "=:");
    char *key = strndup(value, len);
    if (key == NULL || value[len] == '\0') {
        free(key);
        return -EINVAL;
    }
    fprintf(query, "process GLOBAL IN (SELECT process FROM %sprocesses WHERE tenant = ", table);
    int result = gp_question_quote(query, tenant);
    fputs(" AND has(labels.key, ", query);
    result = result == 0 ? gp_question_quote(query, key) : result;
    fputs(") AND labels.value[indexOf(labels.key, ", query);
    result = result == 0 ? gp_question_quote(query, key) : result;
    fputs(")] = ", query);
    result = result == 0 ? gp_question_quote(query, value + len + 1) : result;
    fputc(')', query);
    free(key);
    return result;
}

static int ask_question_put_trace(FILE *query, const char *value)
{
    uint8_t bytes[16];
    char digits[40];
    size_t count = 0;
    const char *at = strncmp(value, "00-", 3) == 0 ? value + 3 : value; // a traceparent header, or an UUID
    for (; *at != '\0' && count < 32; at++)
        if (*at != '-')
            digits[count++] = *at;
    digits[count] = '\0';
    if (count != 32 || gp_hex_read(digits, bytes, sizeof(bytes)) == NULL)
        return -EINVAL;
    fprintf(query, "trace = toFixedString(unhex('%s'), 16)", digits);
    return 0;
}

static int ask_question_put_filter(FILE *query, gp_question_t *question, const gp_row_pair_t *filter)
{
    bool of_spans = question->table == GP_TABLE_SPANS, has_start = question->table != GP_TABLE_SAMPLES;
    if (strcmp(filter->key, "label") == 0)
        return ask_question_put_label(query, question->prefix, question->tenant, filter->value);
    if (strcmp(filter->key, "trace") == 0)
        return ask_question_put_trace(query, filter->value);
    if (strcmp(filter->key, "from") == 0 || strcmp(filter->key, "to") == 0)
        return ask_question_put_moment(query, question, filter->key, filter->value, has_start);
    if (of_spans && strcmp(filter->key, "version") == 0)
        return ask_question_put_elsewhere(query, question, "process", "processes", filter);
    if (of_spans && strcmp(filter->key, "endpoint") == 0)
        return ask_question_put_elsewhere(query, question, "trace", "requests", filter);
    fprintf(query, "%s = ", filter->key);
    return gp_question_quote(query, filter->value);
}

// All values of one name: either of them; of different names: each.
static int ask_question_put_filters(FILE *query, gp_question_t *question)
{
    for (const char *const *name = filter_names; *name != NULL; name++) {
        unsigned count = 0;
        for (size_t i = 0; i < question->filter_count; i++) {
            const gp_row_pair_t *filter = &question->filters[i];
            if (strcmp(filter->key, *name) != 0)
                continue;
            fputs(count++ == 0 ? " AND (" : strcmp(*name, "label") == 0 ? " AND " : " OR ", query);
            int result = ask_question_put_filter(query, question, filter);
            if (result < 0) {
                snprintf(question->error, GP_FLEET_ERROR_SIZE, "%s: '%.100s' has no meaning", *name, filter->value);
                return result;
            }
        }
        if (count > 0)
            fputc(')', query);
    }
    return 0;
}

static int ask_question_make_where(gp_question_t *question)
{
    size_t size;
    FILE *query = open_memstream(&question->where, &size);
    if (query == NULL)
        return gp_question_fail(question, -ENOMEM, strerror(ENOMEM), "");
    fputs(" WHERE tenant = ", query);
    int result = gp_question_quote(query, question->tenant);
    if (result == 0)
        result = ask_question_put_filters(query, question);
    return gp_stream_close(query) ? result : gp_question_fail(question, -ENOMEM, strerror(ENOMEM), "");
}

int gp_question_measure(gp_question_t *question, enum gp_row_measure measure)
{
    char *where = NULL;
    if (measure == GP_ROW_VICTIM_TIME && question->version < 2)
        return gp_question_fail(question, -ENODATA, "the store has no delays: they come with a shipper of this version",
                                "");
    if (asprintf(&where, "%s AND measure = %d", question->where, (int)measure) < 0)
        return gp_question_fail(question, -ENOMEM, strerror(ENOMEM), "");
    free(question->where);
    question->where = where;
    return 0;
}

// Append an answer to the bytes so far.
static int ask_question_add(gp_ask_bytes_t *all, gp_http_answer_t *answer)
{
    if (all->len == 0) {
        free(all->data);
        *all = (gp_ask_bytes_t){.data = (uint8_t *)answer->text, .len = answer->len};
        *answer = (gp_http_answer_t){0};
        return 0;
    }
    uint8_t *grown = realloc(all->data, all->len + answer->len + 1);
    if (grown == NULL)
        return -ENOMEM;
    all->data = grown;
    if (answer->len > 0)
        memcpy(all->data + all->len, answer->text, answer->len);
    all->len += answer->len;
    return 0;
}

int gp_question_ask(const gp_question_t *question, const char *asked, const char *rest, gp_ask_bytes_t *answer)
{
    char *query;
    if (asprintf(&query, "SELECT %s FROM %s%s%s%s%s FORMAT RowBinary", asked + strlen(", "), question->prefix,
                 gp_schema_tables[question->table].name, question->join != NULL ? question->join : "", question->where,
                 rest) < 0)
        return gp_question_fail(question, -ENOMEM, strerror(ENOMEM), "");
    gp_http_answer_t more;
    int result = gp_clickhouse_ask(question->clickhouse, query, ANSWER_MAX - answer->len, &more, question->error);
    if (result == 0 && ask_question_add(answer, &more) < 0)
        result = gp_question_fail(question, -ENOMEM, strerror(ENOMEM), "");
    gp_http_answer_free(&more);
    free(query);
    return result == -EMSGSIZE ? gp_question_fail(question, result, "the answer is larger than 1 GiB; ",
                                                  "--service, --host, --from and the like choose less")
                               : result;
}

int gp_question_ask_rows(const gp_question_t *question, const char *more, const char *rest, gp_ask_bytes_t *answer)
{
    char *asked = NULL;
    size_t size;
    FILE *text = open_memstream(&asked, &size);
    if (text == NULL)
        return -ENOMEM;
    gp_schema_put_read(text, question->table, question->version);
    fputs(more, text);
    int result = gp_stream_close(text) ? gp_question_ask(question, asked, rest, answer) : -ENOMEM;
    free(asked);
    return result;
}

// The filters of the URL, then the others.
static int ask_question_take_filters(gp_question_t *question, const gp_row_pair_t *filters, size_t count)
{
    const gp_fleet_url_t *url = &question->url;
    question->filters = calloc(url->option_count + count + 1, sizeof(*question->filters));
    if (question->filters == NULL)
        return gp_question_fail(question, -ENOMEM, strerror(ENOMEM), "");
    for (size_t i = 0; i < url->option_count; i++) {
        const gp_row_pair_t *option = &url->options[i];
        if (ask_question_is_in(option->key, filter_names))
            question->filters[question->filter_count++] = *option;
        else if (!ask_question_is_in(option->key, gp_clickhouse_option_names))
            return gp_question_fail(question, -EINVAL, "unknown option of the URL: ", option->key);
    }
    for (size_t i = 0; i < count; i++)
        question->filters[question->filter_count++] = filters[i];
    return 0;
}

int gp_question_open(gp_question_t *question, const char *url, enum gp_schema_table table, const gp_row_pair_t *filters,
                     size_t filter_count, char error[GP_FLEET_ERROR_SIZE])
{
    *question = (gp_question_t){.prefix = "greenprof_", .table = table, .tenant = "", .error = error};
    error[0] = '\0';
    int result = gp_fleet_url_parse(&question->url, url, error);
    if (result < 0)
        return result;
    const char *tenant = gp_fleet_url_option(&question->url, "tenant");
    question->tenant = tenant != NULL ? tenant : "";
    result = ask_question_take_filters(question, filters, filter_count);
    if (result == 0)
        result = ask_question_make_where(question);
    if (result == 0)
        result = gp_clickhouse_open(&question->clickhouse, &question->url, error);
    return result == 0 ? gp_schema_version(question->clickhouse, &question->version, error) : result;
}

int gp_question_close(gp_question_t *question, int result)
{
    if (result < 0 && question->error[0] == '\0')
        gp_question_fail(question, result, result == -EBADMSG ? "the answer is not whole" : strerror(-result), "");
    gp_clickhouse_close(question->clickhouse);
    free(question->filters);
    free(question->where);
    free(question->join);
    gp_fleet_url_free(&question->url);
    return result;
}
