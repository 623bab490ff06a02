// SPDX-License-Identifier: MIT
#include "fleet/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fleet/ask_capture.h"
#include "fleet/ask_question.h"

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

static int ask_samples(const gp_question_t *question, const gp_ask_t *ask, gp_ask_answer_t *answer)
{
    const char *name = ask->by != NULL ? ask->by : "coroutine";
    char *select = NULL;
    if (asprintf(&select,
                 "SELECT stack, state, %s AS name, %s AS trace_id, %s AS at, sum(weight_ns) AS weight, "
                 "toUInt64(sum(samples)) AS taken",
                 name, ask->with_traces ? "trace" : "toFixedString('', 16)",
                 ask->with_times ? "toUInt32(time)" : "toUInt32(0)") < 0)
        return gp_question_fail(question, -ENOMEM, strerror(ENOMEM), "");
    int result = gp_question_ask(question, select, " GROUP BY stack, state, name, trace_id, at", &answer->samples);
    free(select);
    return result;
}

static int ask_stacks(const gp_question_t *question, gp_ask_answer_t *answer)
{
    char *select = NULL, *tenant = NULL;
    size_t size;
    FILE *text = open_memstream(&tenant, &size);
    int result = text != NULL ? gp_question_quote(text, question->tenant) : -ENOMEM;
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
    result = result == 0 ? gp_question_ask(question, select, ")) GROUP BY stack", &answer->stacks)
                         : gp_question_fail(question, result, strerror(-result), "");
    free(select);
    free(tenant);
    return result;
}

static int ask_span(const gp_question_t *question, gp_ask_answer_t *answer)
{
    char text[64], *query = NULL;
    if (asprintf(&query, "SELECT toUInt32(min(time)), toUInt32(max(time)), count() FROM %s%s%s", question->prefix,
                 question->table, question->where) < 0)
        return gp_question_fail(question, -ENOMEM, strerror(ENOMEM), "");
    int result = gp_clickhouse_ask_text(question->clickhouse, query, text, sizeof(text), question->error);
    uint64_t count = 0;
    free(query);
    if (result == 0 && sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &answer->first_s, &answer->last_s, &count) != 3)
        return gp_question_fail(question, -EBADMSG, "an answer that cannot be: ", text);
    if (result == 0 && count == 0)
        return gp_question_fail(question, -ENODATA, "there are no samples that were chosen", "");
    return result;
}

static int ask_all(const gp_question_t *question, const gp_ask_t *ask, gp_ask_answer_t *answer)
{
    int result = ask_span(question, answer);
    if (result == 0)
        result = ask_samples(question, ask, answer);
    return result == 0 ? ask_stacks(question, answer) : result;
}

// The file has a name only as long as it is written.
static int to_capture(const gp_question_t *question, const gp_ask_answer_t *answer, const gp_ask_t *ask)
{
    const char *directory = secure_getenv("TMPDIR");
    char folder[3072], path[sizeof(folder) + 16];
    snprintf(folder, sizeof(folder), "%s/greenprof-XXXXXX",
             directory != NULL && *directory != '\0' ? directory : "/tmp");
    if (mkdtemp(folder) == NULL)
        return gp_question_fail(question, -errno, "no temporary file: ", strerror(errno));
    snprintf(path, sizeof(path), "%s/answer", folder);
    int result = gp_ask_write(answer, path, ask), fd = -1;
    if (result == 0)
        fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && result == 0)
        result = -errno;
    unlink(path);
    rmdir(folder);
    if (result == -EBADMSG)
        return gp_question_fail(question, result, "the answer is not whole", "");
    return result == 0 ? fd : gp_question_fail(question, result, "the answer cannot be kept: ", strerror(-result));
}

static int ask_url(const gp_fleet_url_t *url, const gp_ask_t *ask, char *error)
{
    gp_ask_answer_t answer = {0};
    gp_question_t question;
    int result = gp_question_open(&question, url, "samples", ask->filters, ask->filter_count, error);
    if (result == 0)
        result = ask_all(&question, ask, &answer);
    if (result == 0)
        result = to_capture(&question, &answer, ask);
    gp_question_close(&question);
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
