// SPDX-License-Identifier: MIT
#include "ship/ask/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/secret.h"
#include "base/stream.h"
#include "ship/ask/ask_capture.h"
#include "ship/ask/ask_question.h"

bool gp_ask_is_url(const char *text)
{
    return strncmp(text, "clickhouse://", strlen("clickhouse://")) == 0;
}

char *gp_ask_shown(const char *text)
{
    return gp_secret_masked(text, "");
}

enum { IDS_AT_ONCE = 8000 }; // of a query of at most 256 KiB, which is what a server takes unless it was told otherwise

// Squares of the weights. A row of one sample has them by its weight; an older shipper's row of several is taken for
// samples that are alike.
#define SQUARE        "toFloat64(weight_ns) * weight_ns"
#define SQUARES       "sum(if(samples = 1, " SQUARE ", if(squares_ns2 > 0, squares_ns2, " SQUARE " / greatest(samples, 1))))"
#define SQUARES_ALIKE "sum(" SQUARE " / greatest(samples, 1))"

// Only what tells rows apart is grouped by: a stack and a state are a key of one word, which is what makes a question
// about all rows fast.
static int ask_samples(const gp_question_t *question, const gp_ask_t *ask, gp_ask_answer_t *answer)
{
    static const char none[] = "''";
    bool is_path = ask->measure == GP_ROW_CRITICAL_PATH, is_delay = ask->measure == GP_ROW_VICTIM_TIME;
    const char *name = is_path ? "endpoint" : is_delay ? "coroutine" : ask->by != NULL ? ask->by : none;
    const char *root = is_path ? "coroutine" : is_delay ? "hog" : none;
    char *select = NULL, group[128];
    snprintf(group, sizeof(group), " GROUP BY stack, state%s%s%s%s", name != none ? ", name" : "",
             root != none ? ", root" : "", ask->with_traces ? ", trace_id" : "", ask->with_times ? ", at" : "");
    if (is_delay)
        strcat(group, " ORDER BY name, root, trace_id, at"); // as rows become hogs
    if (asprintf(&select, GP_ASK_ROW(GP_ASK_SELECT), name, root, ask->with_traces ? "trace" : "toFixedString('', 16)",
                 ask->with_times ? "toUInt32(time)" : "toUInt32(0)",
                 !ask->with_errors        ? "toFloat64(0)"
                 : question->version >= 2 ? SQUARES
                                          : SQUARES_ALIKE) < 0)
        return gp_question_fail(question, -ENOMEM, strerror(ENOMEM), "");
    int result = gp_question_ask(question, select, group, &answer->samples);
    free(select);
    if (result == 0 && answer->samples.len == 0)
        return gp_question_fail(question, -ENODATA,
                                is_path    ? "there are no critical paths of requests that were chosen"
                                : is_delay ? "there are no delays that were chosen"
                                           : "there are no samples that were chosen",
                                "");
    return result;
}

static int ask_some_stacks(const gp_question_t *question, const uint64_t *ids, size_t count, gp_ask_answer_t *answer)
{
    char *where = NULL;
    size_t size;
    FILE *text = open_memstream(&where, &size);
    if (text == NULL)
        return -ENOMEM;
    fputs(" WHERE tenant = ", text);
    int result = gp_question_quote(text, question->tenant);
    for (size_t i = 0; i < count; i++)
        fprintf(text, "%s%" PRIu64, i == 0 ? " AND stack IN (" : ",", ids[i]);
    fputs(")) GROUP BY stack", text);
    result = gp_stream_close(text) ? result : -ENOMEM;
    const gp_question_t stacks = {.clickhouse = question->clickhouse,
                                  .prefix = question->prefix,
                                  .table = GP_TABLE_STACKS,
                                  .where = where,
                                  .error = question->error};
    if (result == 0)
        result = gp_question_ask(&stacks, gp_ask_of_stacks, "", &answer->stacks);
    else
        gp_question_fail(question, result, strerror(-result), "");
    free(where);
    return result;
}

// In the order of the table, so that each query reads a part of it.
static int ask_stacks(const gp_question_t *question, gp_ask_answer_t *answer)
{
    size_t count = 0;
    uint64_t *ids = NULL;
    int result = gp_ask_stack_ids(answer, &ids, &count);
    if (result < 0)
        return gp_question_fail(question, result, result == -EBADMSG ? "the answer is not whole" : strerror(-result),
                                "");
    for (size_t i = 0; i < count && result == 0; i += IDS_AT_ONCE)
        result = ask_some_stacks(question, &ids[i], count - i < IDS_AT_ONCE ? count - i : (size_t)IDS_AT_ONCE, answer);
    free(ids);
    return result;
}

static int ask_hosts(const gp_question_t *question, gp_ask_answer_t *answer)
{
    char text[64], *query = NULL;
    if (asprintf(
            &query,
            "SELECT uniqExact(host) FROM %sprocesses WHERE process GLOBAL IN (SELECT DISTINCT process FROM %s%s%s)",
            question->prefix, question->prefix, gp_schema_tables[question->table].name, question->where) < 0)
        return gp_question_fail(question, -ENOMEM, strerror(ENOMEM), "");
    int result = gp_clickhouse_ask_text(question->clickhouse, query, text, sizeof(text), question->error);
    answer->hosts = strtoull(text, NULL, 10);
    free(query);
    return result;
}

static int ask_all(const gp_question_t *question, const gp_ask_t *ask, gp_ask_answer_t *answer)
{
    answer->from_s = question->from_s;
    answer->to_s = question->to_s;
    int result = ask_samples(question, ask, answer);
    if (result == 0)
        result = ask_stacks(question, answer);
    return result == 0 && ask->with_hosts ? ask_hosts(question, answer) : result;
}

// The file has a name only as long as it is written.
static int ask_to_capture(const gp_question_t *question, const gp_ask_answer_t *answer, const gp_ask_t *ask)
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
        return result;
    return result == 0 ? fd : gp_question_fail(question, result, "the answer cannot be kept: ", strerror(-result));
}

int gp_ask(const char *url, const gp_ask_t *ask, char error[GP_FLEET_ERROR_SIZE])
{
    gp_ask_answer_t answer = {0};
    gp_question_t question;
    int result = gp_question_open(&question, url, GP_TABLE_SAMPLES, ask->filters, ask->filter_count, error);
    if (result == 0)
        result = gp_question_measure(&question, ask->measure);
    if (result == 0)
        result = ask_all(&question, ask, &answer);
    if (result == 0)
        result = ask_to_capture(&question, &answer, ask);
    free(answer.samples.data);
    free(answer.stacks.data);
    return gp_question_close(&question, result);
}
