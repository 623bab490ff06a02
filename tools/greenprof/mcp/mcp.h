// SPDX-License-Identifier: MIT
// `greenprof mcp`: the reports, for programs that ask by the Model Context Protocol. Private to this folder.
//
// Model: a tool is a command with some of its options; a call runs the command itself, in a child, with its output in
// memory. The server's command line names captures and processes to ask about: nothing else is opened.
//
// Source: the protocol's revisions 2024-11-05 to 2025-11-25 (JSON-RPC 2.0, a message a line).
#pragma once

#include <jansson.h>

#include "options.h"

typedef struct gp_mcp {
    char **sources; // captures, stores and process ids, as given
    int source_count;
    bool has_process; // one of them is a process
    bool control;     // tools that change something are there
} gp_mcp_t;

// Is it a process, and no file of that name?
bool gp_mcp_is_process(const char *source);

// The answer to tools/list: an array.
json_t *gp_mcp_tools(const gp_mcp_t *mcp);

// Call a tool.
//   arguments: an object, or NULL.
//   error:     what is wrong with the request, for the answer; "" = nothing.
// Returns the answer to tools/call, or NULL where the request is wrong or memory is short.
enum { GP_MCP_ERROR_SIZE = 256 };
json_t *gp_mcp_call_tool(const gp_mcp_t *mcp, const char *name, const json_t *arguments, char error[GP_MCP_ERROR_SIZE]);

// A string of JSON; bytes become '?' where the text is no UTF-8. NULL: memory is short.
json_t *gp_mcp_text(char *text, size_t size);

// Run a command in a child.
//   argv:    ended by NULL; argv[0] is the command's name.
//   process: operand that is a process where the command takes a capture: its capture is meant; -1 = none.
// Returns what it printed as the answer to tools/call, or NULL where memory is short.
json_t *gp_mcp_run(int argc, char **argv, int process);
