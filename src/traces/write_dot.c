// SPDX-License-Identifier: MIT
// The control flow as a graph for Graphviz: calls of the same kind and name below the same caller are one node. Where
// the stacks at which spans began were kept, the functions between a span and the one around it are nodes, too.
//
// Source: the DOT language, graphviz.org/doc/info/lang.html.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "export/write/text.h"
#include "traces/write.h"

typedef struct node {
    uint32_t caller;      // number of a node, GP_NO_SPAN = root
    const char *function; // NULL: spans
    const gp_tree_span_t *first;
    uint32_t count;
    uint64_t total_ns, self_ns, critical_ns;
    bool failed;
} node_t;

typedef struct graph {
    const gp_tree_view_t *view;
    node_t *nodes;
    size_t count, capacity;
    gp_index_t index;
    uint32_t *of_span; // number of the node, by number of the span
} graph_t;

static bool write_dot_same_node(const void *owner, uint32_t number, const void *key)
{
    const graph_t *graph = owner;
    const node_t *a = &graph->nodes[number], *b = key;
    const gp_tree_process_t *processes = graph->view->set->processes;
    if (a->caller != b->caller || (a->function == NULL) != (b->function == NULL))
        return false;
    if (a->function != NULL)
        return strcmp(a->function, b->function) == 0;
    return strcmp(a->first->record.name, b->first->record.name) == 0 && strcmp(a->first->kind, b->first->kind) == 0 &&
           strcmp(processes[a->first->process].service, processes[b->first->process].service) == 0;
}

// Returns its number, GP_NO_SPAN when memory is short.
static uint32_t write_dot_find_or_add(graph_t *graph, const node_t *key)
{
    const char *name = key->function != NULL ? key->function : key->first->record.name;
    uint64_t hash = gp_hash_more(gp_hash_bytes(name, strlen(name)), key->caller);
    uint32_t found = gp_index_find(&graph->index, hash, write_dot_same_node, graph, key);
    if (found != GP_INDEX_NONE)
        return found;
    found = (uint32_t)graph->count;
    if (gp_grow(&graph->nodes, &graph->capacity, graph->count, sizeof(*key)) < 0 ||
        gp_index_add(&graph->index, hash, found) < 0)
        return GP_NO_SPAN;
    graph->nodes[graph->count++] = *key;
    return found;
}

// The part of a stack below the frames it shares with the one around it, with the last of these: a call goes on in the
// function that began the span. Stacks of two processes share none, though both may run the same program.
static const char *write_dot_own_part(const gp_tree_span_t *span, const gp_tree_span_t *parent)
{
    bool is_near = parent != NULL && parent->process == span->process && parent->record.stack != NULL;
    const char *around = is_near ? parent->record.stack : "", *own = span->record.stack;
    size_t len = strcspn(own, "\n");
    while (own[len] == '\n' && strncmp(own, around, len) == 0 && (around[len] == '\n' || around[len] == '\0')) {
        own += len + 1;
        around += len + (around[len] == '\n');
        len = strcspn(own, "\n");
    }
    bool is_same = strncmp(own, around, len) == 0 && around[len] == '\0';
    return is_same ? own + len : own;
}

// The functions between a span and the one around it. Returns the last node, GP_NO_SPAN when memory is short.
static uint32_t write_dot_add_functions(graph_t *graph, const gp_tree_span_t *span, const gp_tree_span_t *parent,
                                        uint32_t caller)
{
    char *copy = strdup(write_dot_own_part(span, parent)), *rest = NULL;
    if (copy == NULL)
        return GP_NO_SPAN;
    bool failed = false;
    for (char *name = strtok_r(copy, "\n", &rest); name != NULL && !failed; name = strtok_r(NULL, "\n", &rest)) {
        node_t key = {.caller = caller, .function = name, .first = span};
        size_t before = graph->count;
        caller = write_dot_find_or_add(graph, &key);
        failed = caller == GP_NO_SPAN;
        if (!failed && graph->count > before && (graph->nodes[caller].function = strdup(name)) == NULL) {
            graph->nodes[caller].function = "";
            failed = true;
        }
        if (!failed)
            graph->nodes[caller].count++;
    }
    free(copy);
    return failed ? GP_NO_SPAN : caller;
}

static int write_dot_add_span(graph_t *graph, uint32_t number)
{
    const gp_tree_span_t *items = graph->view->set->items, *span = &items[number];
    const gp_tree_span_t *parent = span->parent != GP_NO_SPAN ? &items[span->parent] : NULL;
    node_t key = {.caller = parent != NULL ? graph->of_span[span->parent] : GP_NO_SPAN, .first = span};
    if (span->record.stack != NULL && *write_dot_own_part(span, parent) != '\0' &&
        (key.caller = write_dot_add_functions(graph, span, parent, key.caller)) == GP_NO_SPAN)
        return -ENOMEM;
    uint32_t found = write_dot_find_or_add(graph, &key);
    if (found == GP_NO_SPAN)
        return -ENOMEM;
    node_t *node = &graph->nodes[found];
    node->count++;
    node->total_ns += gp_tree_span_ns(span);
    node->self_ns += span->self_ns;
    node->critical_ns += span->critical_ns;
    node->failed = node->failed || span->record.flags & GP_SPAN_FAILED;
    graph->of_span[number] = found;
    return 0;
}

// Within a quoted string: no control characters, and backslashes mean nothing.
static void write_dot_put_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else
            putc((unsigned char)*text < ' ' ? ' ' : *text, out);
}

static void write_dot_put_ms(FILE *out, uint64_t ns)
{
    char text[32];
    gp_text_decimal(text, ns, 1000000, 3);
    fprintf(out, "%s ms", text);
}

static void write_dot_put_function(const node_t *node, uint32_t number, FILE *out)
{
    fprintf(out, "  n%" PRIu32 " [shape=ellipse, label=\"", number);
    write_dot_put_text(out, node->function);
    fputs("\"];\n", out);
}

static void write_dot_put_spans(const graph_t *graph, const node_t *node, uint32_t number, bool critical, FILE *out)
{
    fprintf(out, "  n%" PRIu32 " [label=\"", number);
    write_dot_put_text(out, graph->view->set->processes[node->first->process].service);
    fputs("\\n", out);
    write_dot_put_text(out, node->first->kind);
    fputs(" ", out);
    write_dot_put_text(out, node->first->record.name);
    fputs("\\n", out);
    write_dot_put_ms(out, node->total_ns);
    fputs(", self ", out);
    write_dot_put_ms(out, node->self_ns);
    fprintf(out, "\"%s%s];\n", critical ? ", penwidth=2.5" : "", node->failed ? ", color=red" : "");
}

static void write_dot_put_node(const graph_t *graph, uint32_t number, FILE *out)
{
    const node_t *node = &graph->nodes[number];
    bool critical = node->function == NULL && (node->first->record.flags & GP_TREE_CRITICAL || node->critical_ns > 0);
    if (node->function != NULL)
        write_dot_put_function(node, number, out);
    else
        write_dot_put_spans(graph, node, number, critical, out);
    if (node->caller == GP_NO_SPAN)
        return;
    fprintf(out, "  n%" PRIu32 " -> n%" PRIu32 " [label=\"%" PRIu32 "x\"%s];\n", node->caller, number, node->count,
            critical ? ", penwidth=2.5" : "");
}

int gp_tree_write_dot(const gp_tree_view_t *view, FILE *out)
{
    graph_t graph = {.view = view, .of_span = calloc(view->set->count + 1, sizeof(uint32_t))};
    char id[GP_ID128_SIZE];
    int result = graph.of_span != NULL ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < view->trace->count && result == 0; i++)
        result = write_dot_add_span(&graph, view->set->order[view->trace->first + i]);
    if (result == 0) {
        fprintf(out,
                "digraph \"%s\" {\n  // bold: on the critical path; red: failed; ellipses: functions on the way to a "
                "span\n  node [shape=box];\n",
                gp_id128_of_trace(view->trace->id, id));
        for (uint32_t i = 0; i < graph.count; i++)
            write_dot_put_node(&graph, i, out);
        fputs("}\n", out);
    }
    for (size_t i = 0; i < graph.count; i++)
        if (graph.nodes[i].function != NULL && graph.nodes[i].function[0] != '\0')
            free((char *)(uintptr_t)graph.nodes[i].function);
    free(graph.nodes);
    free(graph.of_span);
    gp_index_free(&graph.index);
    return result;
}
