// SPDX-License-Identifier: MIT
// The control flow as a graph for Graphviz: calls of the same kind and name below the same caller are one node.
//
// Source: the DOT language, graphviz.org/doc/info/lang.html.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "export/text.h"
#include "tree/write.h"

typedef struct node {
    uint32_t caller; // number of a node, GP_NO_SPAN = root
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

static bool same_node(const void *owner, uint32_t number, const void *key)
{
    const graph_t *graph = owner;
    const node_t *a = &graph->nodes[number], *b = key;
    const gp_tree_process_t *processes = graph->view->set->processes;
    return a->caller == b->caller && strcmp(a->first->name, b->first->name) == 0 &&
           strcmp(a->first->kind, b->first->kind) == 0 &&
           strcmp(processes[a->first->process].service, processes[b->first->process].service) == 0;
}

static int add_span(graph_t *graph, uint32_t number)
{
    const gp_tree_span_t *span = &graph->view->set->items[number];
    node_t key = {.caller = span->parent != GP_NO_SPAN ? graph->of_span[span->parent] : GP_NO_SPAN, .first = span};
    uint64_t hash = gp_hash_more(gp_hash_bytes(span->name, strlen(span->name)), key.caller);
    uint32_t found = gp_index_find(&graph->index, hash, same_node, graph, &key);
    if (found == GP_INDEX_NONE) {
        found = (uint32_t)graph->count;
        if (gp_grow(&graph->nodes, &graph->capacity, graph->count, sizeof(key)) < 0 ||
            gp_index_add(&graph->index, hash, found) < 0)
            return -ENOMEM;
        graph->nodes[graph->count++] = key;
    }
    node_t *node = &graph->nodes[found];
    node->count++;
    node->total_ns += gp_tree_span_ns(span);
    node->self_ns += span->self_ns;
    node->critical_ns += span->critical_ns;
    node->failed = node->failed || span->flags & GP_TREE_FAILED;
    graph->of_span[number] = found;
    return 0;
}

// Within a quoted string: no control characters, and backslashes mean nothing.
static void put_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else
            putc((unsigned char)*text < ' ' ? ' ' : *text, out);
}

static void put_ms(FILE *out, uint64_t ns)
{
    char text[32];
    gp_text_decimal(text, ns, 1000000, 3);
    fprintf(out, "%s ms", text);
}

static void put_node(const graph_t *graph, uint32_t number, FILE *out)
{
    const node_t *node = &graph->nodes[number];
    bool critical = node->first->flags & GP_TREE_CRITICAL || node->critical_ns > 0;
    fprintf(out, "  n%" PRIu32 " [label=\"", number);
    put_text(out, graph->view->set->processes[node->first->process].service);
    fputs("\\n", out);
    put_text(out, node->first->kind);
    fputs(" ", out);
    put_text(out, node->first->name);
    fputs("\\n", out);
    put_ms(out, node->total_ns);
    fputs(", self ", out);
    put_ms(out, node->self_ns);
    fprintf(out, "\"%s%s];\n", critical ? ", penwidth=2.5" : "", node->failed ? ", color=red" : "");
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
        result = add_span(&graph, view->set->order[view->trace->first + i]);
    if (result == 0) {
        fprintf(out, "digraph \"%s\" {\n  // bold: on the critical path; red: failed\n  node [shape=box];\n",
                gp_id128_of_trace(view->trace->id, id));
        for (uint32_t i = 0; i < graph.count; i++)
            put_node(&graph, i, out);
        fputs("}\n", out);
    }
    free(graph.nodes);
    free(graph.of_span);
    gp_index_free(&graph.index);
    return result;
}
