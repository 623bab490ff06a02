// SPDX-License-Identifier: MIT
// The tools, and command lines of their calls. Parameters are rows of the table of options: their texts, choices and
// ranges are those of the command.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp.h"
#include "report/sort_key.h"

enum { WORDS_MAX = 64, WORD_MAX = 1024 };

typedef struct tool {
    const char *name, *what;
    gp_command_id_t command;
    const char *fixed;    // options that are always given
    const char *operands; // words: "=list" as it is, "of" and "base" a source, others a text; "?" = may be missing
    const char *options;  // parameters, by the names of the command's options
    bool of_process;      // a process alone can be asked
    bool changes;         // for --control
} tool_t;

#define PART "trace coroutine name thread from to focus ignore"

static const tool_t tools[] = {
    {"explain", "What made the program slow: findings in the order of their cost, each with its evidence. Begin here.",
     GP_COMMAND_EXPLAIN, "--json", "of request?", "from to", false, false},
    {"report", "A table: functions, or what 'by' says, with their times.", GP_COMMAND_REPORT, "--json", "of",
     "by sort rows restrict clock " PART, false, false},
    {"requests", "Requests, the slowest first, and percentiles of their latency by endpoint.", GP_COMMAND_REPORT,
     "--json --by=request", "of", "sort rows restrict trace from to", false, false},
    {"callers", "The callers of functions, and what they call, as text.", GP_COMMAND_REPORT, "", "of",
     "callers callees clock " PART, false, false},
    {"stacks", "Whole stacks with their microseconds: a flame graph's data, a line a stack.", GP_COMMAND_EXPORT,
     "--format=folded", "of", "by clock " PART, false, false},
    {"diff", "What changed between two captures, and whether chance explains it.", GP_COMMAND_DIFF, "--json", "base of",
     "by per sort rows restrict clock trace from to focus ignore", false, false},
    {"traces", "The traces in a capture, with their spans' figures.", GP_COMMAND_TRACE, "--json", "=list of",
     "sort rows", false, false},
    {"trace", "One trace as a tree of calls.", GP_COMMAND_TRACE, "--json", "=show id of", "", false, false},
    {"coroutines", "What each coroutine does and waits for: of a process now, of a capture at its end.",
     GP_COMMAND_COROUTINES, "--json", "of", "rows trace coroutine name", false, false},
    {"info", "What is in a capture, what is missing, and what recording took.", GP_COMMAND_INFO, "--json", "of", "",
     false, false},
    {"status", "Whether a process is recorded, since when, and where.", GP_COMMAND_STATUS, "--json", "of", "", true,
     false},
    {"start", "Start recording in a process.", GP_COMMAND_START, "", "of", "frequency clock budget", true, true},
    {"stop", "Stop recording in a process.", GP_COMMAND_STOP, "", "of", "", true, true},
    {"dump", "Have everything recorded so far in the capture.", GP_COMMAND_DUMP, "", "of", "", true, true},
};

enum { COUNT = sizeof(tools) / sizeof(tools[0]) };

static bool mcp_tools_is_there(const gp_mcp_t *mcp, const tool_t *tool)
{
    return (!tool->changes || mcp->control) && (!tool->of_process || mcp->has_process) &&
           (tool->command != GP_COMMAND_DIFF || mcp->source_count > 1);
}

static bool mcp_tools_is_source(const char *word)
{
    return strcmp(word, "of") == 0 || strcmp(word, "base") == 0;
}

// The next word of a list; its length is 0 at the end.
static const char *mcp_tools_word(const char *list, char word[WORD_MAX])
{
    list += strspn(list, " ");
    size_t len = strcspn(list, " ");
    snprintf(word, WORD_MAX, "%.*s", (int)len, list);
    return list + len;
}

static const gp_option_t *mcp_tools_option(const tool_t *tool, const char *name)
{
    for (const gp_option_t *option = gp_options; option->name != NULL; option++)
        if (gp_option_applies(option, &gp_commands[tool->command]) && strcmp(option->name, name) == 0)
            return option;
    return NULL;
}

// --- tools/list

static json_t *mcp_tools_choices(const char *choices)
{
    json_t *words = json_array();
    for (const char *at = choices; *at != '\0'; at += *at == '|') {
        size_t len = strcspn(at, "|");
        json_array_append_new(words, json_stringn(at, len));
        at += len;
    }
    return words;
}

static bool mcp_tools_is_repeatable(const gp_option_t *option)
{
    return option != NULL && (option->kind == GP_OPTION_TEXTS || option->kind == GP_OPTION_REGEX);
}

static json_t *mcp_tools_option_schema(const gp_option_t *option)
{
    char text[2048];
    size_t len = strlen(gp_option_text(option, text, sizeof(text)));
    for (const gp_sort_key_t *key = gp_sort_keys; option->hint == GP_HINT_SORT && key->name != NULL; key++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, " %s", key->name);
    json_t *schema =
        json_pack("{s:s, s:s}", "type", option->kind == GP_OPTION_NUMBER ? "integer" : "string", "description", text);
    if (mcp_tools_is_repeatable(option)) {
        json_object_set_new(schema, "type", json_pack("[s, s]", "string", "array"));
        json_object_set_new(schema, "items", json_pack("{s:s}", "type", "string"));
    }
    if (option->kind == GP_OPTION_NUMBER)
        json_object_set_new(schema, "minimum", json_integer((json_int_t)option->lo));
    if (option->kind == GP_OPTION_NUMBER)
        json_object_set_new(schema, "maximum", json_integer((json_int_t)option->hi));
    if (option->choices != NULL)
        json_object_set_new(schema, "enum", mcp_tools_choices(option->choices));
    return schema;
}

// A source as answers and requests name it: of a name that is no UTF-8, with '?' in place of its bytes.
static json_t *mcp_tools_source_name(const char *source)
{
    char *text = strdup(source);
    json_t *name = text != NULL ? gp_mcp_text(text, strlen(text)) : NULL;
    free(text);
    return name;
}

static json_t *mcp_tools_source_schema(const gp_mcp_t *mcp, const tool_t *tool)
{
    json_t *words = json_array();
    for (int i = 0; i < mcp->source_count; i++)
        if (!tool->of_process || gp_mcp_is_process(mcp->sources[i]))
            json_array_append_new(words, mcp_tools_source_name(mcp->sources[i]));
    return json_pack("{s:s, s:s, s:o}", "type", "string", "description", "A capture or a process.", "enum", words);
}

static json_t *mcp_tools_schema(const gp_mcp_t *mcp, const tool_t *tool)
{
    char word[WORD_MAX];
    json_t *properties = json_object(), *required = json_array();
    for (const char *at = mcp_tools_word(tool->operands, word); word[0] != '\0'; at = mcp_tools_word(at, word)) {
        bool may_miss = word[strlen(word) - 1] == '?', is_source = mcp_tools_is_source(word);
        word[strcspn(word, "?")] = '\0';
        if (word[0] == '=')
            continue;
        json_object_set_new(properties, word,
                            is_source ? mcp_tools_source_schema(mcp, tool)
                                      : json_pack("{s:s, s:s}", "type", "string", "description",
                                                  "The trace id of a request: 32 hex digits, or their beginning."));
        if (!may_miss && (!is_source || mcp->source_count > 1))
            json_array_append_new(required, json_string(word));
    }
    for (const char *at = mcp_tools_word(tool->options, word); word[0] != '\0'; at = mcp_tools_word(at, word))
        json_object_set_new(properties, word, mcp_tools_option_schema(mcp_tools_option(tool, word)));
    return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required", required,
                     "additionalProperties", 0);
}

// Has a process write what it has recorded so far into its capture, which is then read.
static bool mcp_tools_dumps(const gp_mcp_t *mcp, const tool_t *tool)
{
    return mcp->has_process && !tool->of_process && tool->command != GP_COMMAND_COROUTINES;
}

json_t *gp_mcp_tools(const gp_mcp_t *mcp)
{
    json_t *list = json_array();
    for (size_t i = 0; i < COUNT; i++)
        if (mcp_tools_is_there(mcp, &tools[i]))
            json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:{s:b}}", "name", tools[i].name, "description",
                                                  tools[i].what, "inputSchema", mcp_tools_schema(mcp, &tools[i]),
                                                  "annotations", "readOnlyHint",
                                                  !tools[i].changes && !mcp_tools_dumps(mcp, &tools[i])));
    return list;
}

// --- tools/call

typedef struct line { // a command line
    char *words[WORDS_MAX + 1];
    int count, process; // process: the operand whose capture is meant; -1 = none
} line_t;

// A word of the parts: "--", "rows", "=", "40".
static void mcp_tools_add(line_t *line, const char *dashes, const char *name, const char *equals, const char *value)
{
    size_t size = strlen(dashes) + strlen(name) + strlen(equals) + strlen(value) + 1;
    char *word = line->count < WORDS_MAX ? malloc(size) : NULL;
    if (word == NULL)
        return;
    snprintf(word, size, "%s%s%s%s", dashes, name, equals, value);
    line->words[line->count++] = word;
}

// The commands that take a process themselves.
static bool mcp_tools_takes_process(const tool_t *tool)
{
    return tool->of_process || tool->command == GP_COMMAND_EXPLAIN || tool->command == GP_COMMAND_COROUTINES;
}

static const char *mcp_tools_source(const gp_mcp_t *mcp, const tool_t *tool, const json_t *given)
{
    for (int i = 0; i < mcp->source_count; i++) {
        json_t *name = mcp_tools_source_name(mcp->sources[i]);
        bool is_meant = given == NULL ? mcp->source_count == 1 : json_equal(name, given);
        json_decref(name);
        if (is_meant && (!tool->of_process || gp_mcp_is_process(mcp->sources[i])))
            return mcp->sources[i];
    }
    return NULL;
}

static void mcp_tools_add_operands(const gp_mcp_t *mcp, const tool_t *tool, const json_t *arguments, line_t *line,
                                   char error[GP_MCP_ERROR_SIZE])
{
    char word[WORD_MAX];
    mcp_tools_add(line, "--", "", "", "");
    for (const char *at = mcp_tools_word(tool->operands, word); word[0] != '\0'; at = mcp_tools_word(at, word)) {
        bool may_miss = word[strlen(word) - 1] == '?', is_source = mcp_tools_is_source(word);
        word[strcspn(word, "?")] = '\0';
        const json_t *given = json_object_get(arguments, word);
        const char *value = is_source        ? mcp_tools_source(mcp, tool, given)
                            : word[0] == '=' ? word + 1
                                             : json_string_value(given);
        if (value == NULL && (!may_miss || given != NULL))
            snprintf(error, GP_MCP_ERROR_SIZE, "%.48s: must be %s", word,
                     is_source ? "one of those that the server was started with" : "a text");
        if (value == NULL)
            continue;
        if (is_source && gp_mcp_is_process(value) && !mcp_tools_takes_process(tool))
            line->process = line->count;
        mcp_tools_add(line, "", "", "", value);
    }
}

static bool mcp_tools_has_word(const char *list, const char *name)
{
    char word[WORD_MAX];
    for (const char *at = mcp_tools_word(list, word); word[0] != '\0'; at = mcp_tools_word(at, word)) {
        word[strcspn(word, "?")] = '\0';
        if (strcmp(word, name) == 0)
            return true;
    }
    return false;
}

static void mcp_tools_add_option(line_t *line, const char *name, const json_t *value, char error[GP_MCP_ERROR_SIZE])
{
    char number[32];
    double real = json_number_value(value);
    bool is_exact = json_is_number(value) && fabs(real) < 9007199254740992.0; // 2^53
    bool is_whole = is_exact && real == (double)(int64_t)real;                // 3.0, too
    snprintf(number, sizeof(number), "%" PRId64, is_whole ? (int64_t)real : 0);
    if (!json_is_string(value) && !is_whole)
        snprintf(error, GP_MCP_ERROR_SIZE, "%.48s: must be a text or a whole number", name);
    mcp_tools_add(line, "--", name, "=", json_is_string(value) ? json_string_value(value) : number);
}

// Add a value, or each of an array's.
static void mcp_tools_add_values(const tool_t *tool, line_t *line, const char *name, const json_t *value,
                                 char error[GP_MCP_ERROR_SIZE])
{
    if (!json_is_array(value) || !mcp_tools_is_repeatable(mcp_tools_option(tool, name)))
        mcp_tools_add_option(line, name, value, error);
    for (size_t i = 0; mcp_tools_is_repeatable(mcp_tools_option(tool, name)) && i < json_array_size(value); i++)
        mcp_tools_add_option(line, name, json_array_get(value, i), error);
}

static json_t *mcp_tools_call(const gp_mcp_t *mcp, const tool_t *tool, const json_t *arguments,
                              char error[GP_MCP_ERROR_SIZE])
{
    char word[WORD_MAX];
    const char *name;
    json_t *value, *answer = NULL;
    line_t line = {.process = -1};
    mcp_tools_add(&line, "", "", "", gp_commands[tool->command].name);
    for (const char *at = mcp_tools_word(tool->fixed, word); word[0] != '\0'; at = mcp_tools_word(at, word))
        mcp_tools_add(&line, "", "", "", word);
    json_object_foreach((json_t *)(uintptr_t)arguments, name, value)
    {
        if (mcp_tools_has_word(tool->options, name))
            mcp_tools_add_values(tool, &line, name, value, error);
        else if (name[0] == '=' || !mcp_tools_has_word(tool->operands, name))
            snprintf(error, GP_MCP_ERROR_SIZE, "%.48s: %s has no such parameter", name, tool->name);
    }
    mcp_tools_add_operands(mcp, tool, arguments, &line, error);
    if (line.count == WORDS_MAX)
        snprintf(error, GP_MCP_ERROR_SIZE, "arguments: more than %d words", WORDS_MAX - 1);
    if (error[0] == '\0')
        answer = gp_mcp_run(line.count, line.words, line.process);
    for (int i = 0; i < line.count; i++)
        free(line.words[i]);
    return answer;
}

json_t *gp_mcp_call_tool(const gp_mcp_t *mcp, const char *name, const json_t *arguments, char error[GP_MCP_ERROR_SIZE])
{
    arguments = json_is_null(arguments) ? NULL : arguments;
    if (arguments != NULL && !json_is_object(arguments))
        snprintf(error, GP_MCP_ERROR_SIZE, "arguments: must be an object");
    for (size_t i = 0; error[0] == '\0' && i < COUNT; i++)
        if (strcmp(tools[i].name, name) == 0 && mcp_tools_is_there(mcp, &tools[i]))
            return mcp_tools_call(mcp, &tools[i], arguments, error);
    if (error[0] == '\0')
        snprintf(error, GP_MCP_ERROR_SIZE, "%.48s: no such tool", name);
    return NULL;
}
