// SPDX-License-Identifier: MIT
// Messages in and out: one a line, of bounded size.
#include "mcp.h"

#include <errno.h>
#include <greenprof/prof.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "message.h"
#include "store/store.h"

enum { LINE_MAX_BYTES = 1 << 20, BATCH_MAX = 64 };
enum { NOT_JSON = -32700, NO_REQUEST = -32600, NO_METHOD = -32601, WRONG_PARAMETERS = -32602, INTERNAL = -32603 };

// message: cut anywhere, and changed where it is no UTF-8 any more.
static json_t *mcp_error(json_t *id, int code, char *message)
{
    return json_pack("{s:s, s:O?, s:{s:i, s:o}}", "jsonrpc", "2.0", "id", id != NULL ? id : json_null(), "error",
                     "code", code, "message", gp_mcp_text(message, strlen(message)));
}

static json_t *mcp_initialize(const gp_mcp_t *mcp, const json_t *parameters)
{
    static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
    const char *wanted = json_string_value(json_object_get(parameters, "protocolVersion")), *agreed = versions[0];
    for (size_t i = 0; wanted != NULL && i < sizeof(versions) / sizeof(versions[0]); i++)
        if (strcmp(wanted, versions[i]) == 0)
            agreed = versions[i];
    char version[32];
    snprintf(version, sizeof(version), "%d.%d.%d", PROF_VERSION_MAJOR, PROF_VERSION_MINOR, PROF_VERSION_PATCH);
    return json_pack("{s:s, s:{s:{}}, s:{s:s, s:s}, s:s}", "protocolVersion", agreed, "capabilities", "tools",
                     "serverInfo", "name", "greenprof", "version", version, "instructions",
                     mcp->control ? "Begin with explain: findings in the order of their cost, each with its evidence. "
                                    "start, stop and dump change the process."
                     : mcp->has_process
                         ? "Begin with explain: findings in the order of their cost, each with its evidence. "
                           "A process is asked to write what it has recorded into its capture; nothing else changes."
                         : "Begin with explain: findings in the order of their cost, each with its evidence. "
                           "All tools only read.");
}

static json_t *mcp_result(const gp_mcp_t *mcp, const char *method, const json_t *parameters, int *code,
                          char error[GP_MCP_ERROR_SIZE])
{
    *code = INTERNAL;
    snprintf(error, GP_MCP_ERROR_SIZE, "not enough memory");
    if (strcmp(method, "initialize") == 0)
        return mcp_initialize(mcp, parameters);
    if (strcmp(method, "ping") == 0)
        return json_object();
    if (strcmp(method, "tools/list") == 0)
        return json_pack("{s:o}", "tools", gp_mcp_tools(mcp));
    if (strcmp(method, "tools/call") != 0) {
        *code = NO_METHOD;
        snprintf(error, GP_MCP_ERROR_SIZE, "unknown method: there are initialize, ping, tools/list and tools/call");
        return NULL;
    }
    char wrong[GP_MCP_ERROR_SIZE] = "";
    const char *name = json_string_value(json_object_get(parameters, "name"));
    json_t *result = name != NULL ? gp_mcp_call_tool(mcp, name, json_object_get(parameters, "arguments"), wrong) : NULL;
    if (result == NULL && (name == NULL || wrong[0] != '\0')) {
        *code = WRONG_PARAMETERS;
        snprintf(error, GP_MCP_ERROR_SIZE, "%s", name != NULL ? wrong : "params: a tool's name is missing");
    }
    return result;
}

// Returns NULL where there is nothing to answer: a notification, or an answer.
static json_t *mcp_answer(const gp_mcp_t *mcp, const json_t *message)
{
    char error[GP_MCP_ERROR_SIZE];
    int code;
    json_t *id = json_object_get(message, "id");
    const json_t *method = json_object_get(message, "method"), *parameters = json_object_get(message, "params");
    const char *version = json_string_value(json_object_get(message, "jsonrpc"));
    parameters = json_is_null(parameters) ? NULL : parameters;
    if (json_is_object(message) && method == NULL &&
        (json_object_get(message, "result") != NULL || json_object_get(message, "error") != NULL))
        return NULL;
    bool is_id_wrong = id != NULL && !json_is_string(id) && !json_is_number(id);
    if (version == NULL || strcmp(version, "2.0") != 0 || !json_is_string(method) || is_id_wrong ||
        (parameters != NULL && !json_is_object(parameters)))
        return mcp_error(is_id_wrong ? NULL : id, NO_REQUEST, (char[]){"not a request of JSON-RPC 2.0"});
    if (id == NULL)
        return NULL;
    json_t *result = mcp_result(mcp, json_string_value(method), parameters, &code, error);
    return result != NULL ? json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result", result)
                          : mcp_error(id, code, error);
}

static json_t *mcp_answer_batch(const gp_mcp_t *mcp, const json_t *batch)
{
    size_t count = json_array_size(batch);
    if (count == 0 || count > BATCH_MAX)
        return mcp_error(NULL, NO_REQUEST, (char[]){"a batch has 1 to 64 requests"});
    json_t *answers = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *answer = mcp_answer(mcp, json_array_get(batch, i));
        if (answer != NULL)
            json_array_append_new(answers, answer);
    }
    if (json_array_size(answers) > 0)
        return answers;
    json_decref(answers);
    return NULL;
}

// Answers a line. Returns whether the other side still listens.
static bool mcp_take_line(const gp_mcp_t *mcp, const char *line, size_t len)
{
    json_error_t wrong;
    char text[sizeof(wrong.text) + 32];
    json_t *message =
               len < LINE_MAX_BYTES ? json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &wrong) : NULL,
           *answer;
    if (message != NULL)
        answer = json_is_array(message) ? mcp_answer_batch(mcp, message) : mcp_answer(mcp, message);
    else {
        snprintf(text, sizeof(text), "not JSON: %s",
                 len < LINE_MAX_BYTES ? wrong.text : "the line is longer than 1 MiB");
        answer = mcp_error(NULL, NOT_JSON, text);
    }
    if (answer != NULL && json_dumpf(answer, stdout, JSON_COMPACT) == 0)
        putchar('\n');
    json_decref(answer);
    json_decref(message);
    return fflush(stdout) == 0 && !ferror(stdout);
}

static bool mcp_is_blank(const char *line, size_t len)
{
    return len < LINE_MAX_BYTES && strspn(line, " \t\r") == len;
}

static int mcp_serve(const gp_mcp_t *mcp)
{
    char *line = malloc(LINE_MAX_BYTES + 1);
    size_t len = 0;
    bool is_heard = true;
    if (line == NULL)
        return gp_fail("memory", "%s", strerror(ENOMEM));
    for (int byte = getchar();; byte = getchar()) {
        if (byte != '\n' && byte != EOF) {
            line[len] = (char)byte;
            len += len < LINE_MAX_BYTES;
            continue;
        }
        line[len] = '\0';
        if (!mcp_is_blank(line, len))
            is_heard = mcp_take_line(mcp, line, len);
        if (byte == EOF || !is_heard)
            break;
        len = 0;
    }
    free(line);
    return is_heard ? 0 : gp_fail("standard output", "%s", strerror(errno));
}

bool gp_mcp_is_process(const char *source)
{
    uint64_t pid;
    return gp_parse_number(source, 1, INT32_MAX, &pid) && access(source, F_OK) != 0;
}

int gp_command_mcp(const gp_arguments_t *arguments)
{
    gp_mcp_t mcp = {
        .sources = arguments->operands, .source_count = arguments->operand_count, .control = arguments->control};
    struct stat about;
    for (int i = 0; i < mcp.source_count; i++) {
        const char *source = mcp.sources[i];
        bool is_process = gp_mcp_is_process(source);
        mcp.has_process |= is_process;
        if (strcmp(source, "/dev/stdin") == 0)
            return gp_usage_error("mcp", "standard input has the requests: name a file");
        if (is_process || gp_store_is_url(source))
            continue;
        if (stat(source, &about) != 0 || access(source, R_OK) != 0)
            return gp_fail(source, "%s", strerror(errno));
        if (!S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode))
            return gp_usage_error("mcp", "%s: neither a file nor a folder", source);
    }
    if (mcp.control && !mcp.has_process)
        return gp_usage_error("mcp", "--control is for a process: name its PID");
    return mcp_serve(&mcp);
}
