// SPDX-License-Identifier: MIT
#include "fleet/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hex.h"
#include "fleet/ask_capture.h"

enum { QUOTED_MAX = 4096 };

#define ANSWER_MAX ((size_t)1 << 30) // bytes: 10 million rows

static const char *const filter_names[] = {"service", "host", "version", "endpoint", "trace",
                                           "label",   "from", "to",      NULL};

bool gp_ask_is_url(const char *text)
{
    return strncmp(text, "clickhouse://", strlen("clickhouse://")) == 0;
}

char *gp_ask_shown(const char *text)
{
    gp_fleet_url_t url = {0};
    char error[GP_FLEET_ERROR_SIZE];
    char *shown = gp_fleet_url_parse(&url, text, error) == 0 ? strdup(url.shown) : strdup("clickhouse://...");
    gp_fleet_url_free(&url);
    return shown;
}

static int say(char *error, int result, const char *what, const char *detail)
{
    snprintf(error, GP_FLEET_ERROR_SIZE, "%s%s", what, detail);
    return result;
}

static bool is_in(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

static int quote(FILE *query, const char *text)
{
    char quoted[QUOTED_MAX];
    if (gp_clickhouse_quote(quoted, quoted + sizeof(quoted), text) == NULL)
        return -EINVAL;
    fputs(quoted, query);
    return 0;
}

// "-1h", "@1763900000", "1763900000", "2026-11-21T12:00:00Z" (UTC), "2026-11-21".
static bool read_moment(const char *text, uint64_t *seconds)
{
    static const struct {
        char unit;
        unsigned seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
    char *end;
    struct tm utc = {0};
    const char *rest = strptime(text, "%Y-%m-%d", &utc);
    if (rest != NULL && *rest != '\0')
        rest = strptime(rest + 1, "%H:%M:%S", &utc);
    if (rest != NULL && (*rest == '\0' || strcmp(rest, "Z") == 0)) {
        *seconds = (uint64_t)timegm(&utc);
        return true;
    }
    bool is_before = text[0] == '-';
    double number = strtod(text + (is_before || text[0] == '@'), &end);
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

static int put_moment(FILE *query, const char *name, const char *value)
{
    uint64_t seconds;
    const char *than = strcmp(name, "from") == 0 ? ">=" : "<";
    if (!read_moment(value, &seconds))
        return -EINVAL;
    fprintf(query, "time %s toDateTime(%" PRIu64 ") AND day %s toDate(toDateTime(%" PRIu64 "))", than, seconds,
            strcmp(name, "from") == 0 ? ">=" : "<=", seconds);
    return 0;
}

static int put_label(FILE *query, const char *table, const char *tenant, const char *value)
{
    size_t len = strcspn(value, "=:");
    char *key = strndup(value, len);
    if (key == NULL || value[len] == '\0') {
        free(key);
        return -EINVAL;
    }
    fprintf(query, "process GLOBAL IN (SELECT process FROM %sprocesses WHERE tenant = ", table);
    int result = quote(query, tenant);
    fputs(" AND has(labels.key, ", query);
    result = result == 0 ? quote(query, key) : result;
    fputs(") AND labels.value[indexOf(labels.key, ", query);
    result = result == 0 ? quote(query, key) : result;
    fputs(")] = ", query);
    result = result == 0 ? quote(query, value + len + 1) : result;
    fputc(')', query);
    free(key);
    return result;
}

static int put_trace(FILE *query, const char *value)
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

static int put_filter(FILE *query, const char *prefix, const char *tenant, const gp_row_pair_t *filter)
{
    if (strcmp(filter->key, "label") == 0)
        return put_label(query, prefix, tenant, filter->value);
    if (strcmp(filter->key, "trace") == 0)
        return put_trace(query, filter->value);
    if (strcmp(filter->key, "from") == 0 || strcmp(filter->key, "to") == 0)
        return put_moment(query, filter->key, filter->value);
    fprintf(query, "%s = ", filter->key);
    return quote(query, filter->value);
}

typedef struct question {
    gp_clickhouse_t *clickhouse;
    const char *prefix, *tenant;
    gp_row_pair_t *filters; // the URL's and the others
    size_t filter_count;
    char *where;
    char *error;
} question_t;

// All values of one name: either of them; of different names: each.
static int put_filters(FILE *query, const question_t *question)
{
    for (const char *const *name = filter_names; *name != NULL; name++) {
        unsigned count = 0;
        for (size_t i = 0; i < question->filter_count; i++) {
            const gp_row_pair_t *filter = &question->filters[i];
            if (strcmp(filter->key, *name) != 0)
                continue;
            fputs(count++ == 0 ? " AND (" : strcmp(*name, "label") == 0 ? " AND " : " OR ", query);
            int result = put_filter(query, question->prefix, question->tenant, filter);
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

static int make_where(question_t *question)
{
    size_t size;
    FILE *query = open_memstream(&question->where, &size);
    if (query == NULL)
        return say(question->error, -ENOMEM, strerror(ENOMEM), "");
    fprintf(query, " FROM %ssamples WHERE measure = 0 AND tenant = ", question->prefix);
    int result = quote(query, question->tenant);
    if (result == 0)
        result = put_filters(query, question);
    return fclose(query) == 0 ? result : say(question->error, -ENOMEM, strerror(ENOMEM), "");
}

static int take(void *context, const void *bytes, size_t len)
{
    gp_ask_bytes_t *all = context;
    if (len > ANSWER_MAX - all->len)
        return -EMSGSIZE;
    if (all->len + len > all->room) {
        size_t room = 2 * (all->len + len);
        uint8_t *grown = realloc(all->data, room);
        if (grown == NULL)
            return -ENOMEM;
        all->data = grown;
        all->room = room;
    }
    memcpy(all->data + all->len, bytes, len);
    all->len += len;
    return 0;
}

static int ask_for(const question_t *question, const char *select, const char *rest, gp_ask_bytes_t *answer)
{
    char *query;
    if (asprintf(&query, "%s%s%s FORMAT RowBinary", select, question->where, rest) < 0)
        return say(question->error, -ENOMEM, strerror(ENOMEM), "");
    int result = gp_clickhouse_ask(question->clickhouse, query, NULL, take, answer, question->error);
    free(query);
    return result == -EMSGSIZE ? say(question->error, result, "the answer is larger than 1 GiB; ",
                                     "--service, --host, --from and the like choose less")
                               : result;
}

static int ask_samples(const question_t *question, const gp_ask_t *ask, gp_ask_answer_t *answer)
{
    const char *name = ask->by != NULL ? ask->by : "coroutine";
    char *select = NULL;
    if (asprintf(&select,
                 "SELECT stack, state, %s AS name, %s AS trace_id, %s AS at, sum(weight_ns) AS weight, "
                 "toUInt64(sum(samples)) AS taken",
                 name, ask->with_traces ? "trace" : "toFixedString('', 16)",
                 ask->with_times ? "toUInt32(time)" : "toUInt32(0)") < 0)
        return say(question->error, -ENOMEM, strerror(ENOMEM), "");
    int result = ask_for(question, select, " GROUP BY stack, state, name, trace_id, at", &answer->samples);
    free(select);
    return result;
}

static int ask_stacks(const question_t *question, gp_ask_answer_t *answer)
{
    char *select = NULL, *tenant = NULL;
    size_t size;
    FILE *text = open_memstream(&tenant, &size);
    int result = text != NULL ? quote(text, question->tenant) : -ENOMEM;
    if (text != NULL && fclose(text) != 0)
        result = -ENOMEM;
    if (result == 0 && asprintf(&select,
                                "SELECT stack, argMin(names, nameless), argMin(files, nameless), argMin(lines, "
                                "nameless) FROM (SELECT stack, "
                                "names, files, lines, arrayCount(x -> x != '', builds) AS nameless FROM %sstacks WHERE "
                                "tenant = %s AND stack "
                                "GLOBAL IN (SELECT DISTINCT stack",
                                question->prefix, tenant) < 0)
        result = -ENOMEM;
    result = result == 0 ? ask_for(question, select, ")) GROUP BY stack", &answer->stacks)
                         : say(question->error, result, strerror(-result), "");
    free(select);
    free(tenant);
    return result;
}

static int ask_span(const question_t *question, gp_ask_answer_t *answer)
{
    char text[64], *query = NULL;
    if (asprintf(&query, "SELECT toUInt32(min(time)), toUInt32(max(time)), count()%s", question->where) < 0)
        return say(question->error, -ENOMEM, strerror(ENOMEM), "");
    int result = gp_clickhouse_ask_text(question->clickhouse, query, text, sizeof(text), question->error);
    uint64_t count = 0;
    free(query);
    if (result == 0 && sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &answer->first_s, &answer->last_s, &count) != 3)
        return say(question->error, -EBADMSG, "an answer that cannot be: ", text);
    if (result == 0 && count == 0)
        return say(question->error, -ENODATA, "there are no samples that were chosen", "");
    return result;
}

static int ask_all(const question_t *question, const gp_ask_t *ask, gp_ask_answer_t *answer)
{
    int result = ask_span(question, answer);
    if (result == 0)
        result = ask_samples(question, ask, answer);
    return result == 0 ? ask_stacks(question, answer) : result;
}

// The file has a name only as long as it is written.
static int to_capture(const gp_ask_answer_t *answer, const gp_ask_t *ask, char *error)
{
    const char *directory = secure_getenv("TMPDIR");
    char folder[3072], path[sizeof(folder) + 16];
    snprintf(folder, sizeof(folder), "%s/greenprof-XXXXXX",
             directory != NULL && *directory != '\0' ? directory : "/tmp");
    if (mkdtemp(folder) == NULL)
        return say(error, -errno, "no temporary file: ", strerror(errno));
    snprintf(path, sizeof(path), "%s/answer", folder);
    int result = gp_ask_write(answer, path, ask), fd = -1;
    if (result == 0)
        fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && result == 0)
        result = -errno;
    unlink(path);
    rmdir(folder);
    if (result == -EBADMSG)
        return say(error, result, "the answer is not whole", "");
    return result == 0 ? fd : say(error, result, "the answer cannot be kept: ", strerror(-result));
}

// The filters of the URL, then the others.
static int take_filters(question_t *question, const gp_fleet_url_t *url, const gp_ask_t *ask)
{
    question->filters = calloc(url->option_count + ask->filter_count + 1, sizeof(*question->filters));
    if (question->filters == NULL)
        return say(question->error, -ENOMEM, strerror(ENOMEM), "");
    for (size_t i = 0; i < url->option_count; i++) {
        const gp_row_pair_t *option = &url->options[i];
        if (is_in(option->key, filter_names))
            question->filters[question->filter_count++] = *option;
        else if (!is_in(option->key, gp_clickhouse_option_names))
            return say(question->error, -EINVAL, "unknown option of the URL: ", option->key);
    }
    for (size_t i = 0; i < ask->filter_count; i++)
        question->filters[question->filter_count++] = ask->filters[i];
    return 0;
}

static int ask_url(const gp_fleet_url_t *url, const gp_ask_t *ask, char *error)
{
    gp_ask_answer_t answer = {0};
    const char *tenant = gp_fleet_url_option(url, "tenant");
    question_t question = {.prefix = "greenprof_", .tenant = tenant != NULL ? tenant : "", .error = error};
    int result = take_filters(&question, url, ask);
    if (result == 0)
        result = make_where(&question);
    if (result == 0)
        result = gp_clickhouse_open(&question.clickhouse, url, error);
    if (result == 0)
        result = ask_all(&question, ask, &answer);
    if (result == 0)
        result = to_capture(&answer, ask, error);
    gp_clickhouse_close(question.clickhouse);
    free(question.filters);
    free(question.where);
    free(answer.samples.data);
    free(answer.stacks.data);
    return result;
}

int gp_ask(const char *text, const gp_ask_t *ask, char error[GP_FLEET_ERROR_SIZE])
{
    gp_fleet_url_t url = {0};
    int result = gp_fleet_url_parse(&url, text, error);
    if (result == 0)
        result = ask_url(&url, ask, error);
    gp_fleet_url_free(&url);
    return result;
}
