// SPDX-License-Identifier: MIT
// A flame graph as one SVG file: the root at the bottom, what it calls above it, widths are CPU time. The file is whole
// without its script (flamegraph.js), which adds zoom, search and a line of details.
#include "export/formats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "export/flame_tree.h"
#include "export/flamegraph_css.h" // generated from flamegraph.css
#include "export/flamegraph_js.h"  // generated from flamegraph.js
#include "export/write/text.h"
#include "export/write/xml.h"
#include "report/report_words.h"

enum {
    WIDTH = 1200,
    PAD = 10,
    INNER = WIDTH - 2 * PAD,
    TOP = 76,
    BOTTOM = 34,
    ROW = 17,          // height of a row, its frame takes 1 less
    SCALE = 10000,     // fractions of a pixel in coordinates: enough to zoom into what is just visible
    CUT = SCALE / 10,  // frames narrower than 0.1 px are left out
    CHAR_MILLI = 6650, // width of a character of the frames' font, 1/1000 px
    TEXT_PAD = 6,
    SHADES = 5,
};

typedef struct graph {
    const gp_report_t *report;
    const gp_flame_tree_t *tree;
    FILE *out;
    uint32_t depth; // of what is drawn
} graph_t;

// The kind of code a frame is, which is its colour: the letter of the CSS classes.
static char flamegraph_kind_of(const gp_report_frame_t *frame)
{
    static const char *const waiting[] = {"[parked", "[ready", "[waiting", "[blocked", "[preempted", "[gil", "[queued"};
    static const char *const groups[] = {"[coroutine ", "[thread ", "[trace ", "[no trace]"};
    if (frame->pseudo) {
        for (size_t i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++)
            if (strncmp(frame->function, waiting[i], strlen(waiting[i])) == 0)
                return 'w';
        for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
            if (strncmp(frame->function, groups[i], strlen(groups[i])) == 0)
                return 'g';
        return 'p';
    }
    if (strncmp(frame->module, "[kernel", 7) == 0 || strcmp(frame->module, "[vdso]") == 0)
        return 'k';
    return strstr(frame->module, ".so") != NULL ? 'l' : 'a';
}

static const struct {
    char kind;
    const char *text;
} legend[] = {
    {'a', "program"}, {'l', "shared library"},           {'k', "kernel, vDSO"},
    {'w', "waiting"}, {'g', "coroutine, thread, trace"}, {'p', "not walked"},
};

// ns of the total as SCALE-ths of a pixel.
static uint64_t flamegraph_pixels(const graph_t *graph, uint64_t ns)
{
    return (uint64_t)((unsigned __int128)ns * INNER * SCALE / graph->report->total_ns);
}

// Write SCALE-ths as a decimal number without needless digits.
static void flamegraph_put_scaled(FILE *out, uint64_t scaled)
{
    char digits[8];
    int len = 4;
    fprintf(out, "%" PRIu64, scaled / SCALE);
    snprintf(digits, sizeof(digits), "%04u", (unsigned)(scaled % SCALE));
    while (len > 0 && digits[len - 1] == '0')
        len--;
    if (len > 0)
        fprintf(out, ".%.*s", len, digits);
}

static void flamegraph_put_decimal(FILE *out, uint64_t ns, uint64_t unit_ns, unsigned digits)
{
    char text[32];
    gp_text_decimal(text, ns, unit_ns, digits);
    fputs(text, out);
}

static void flamegraph_put_percent(const graph_t *graph, uint64_t ns)
{
    uint64_t share = (uint64_t)((unsigned __int128)ns * 1000000 / graph->report->total_ns);
    flamegraph_put_decimal(graph->out, share * 100, 1000000, 2);
    fputs(" %", graph->out);
}

// The details of a frame, a line each: name, weight, where it is.
static void flamegraph_put_details(const graph_t *graph, const gp_flame_node_t *node, const gp_report_frame_t *frame)
{
    FILE *out = graph->out;
    gp_xml_text(out, frame ? frame->function : "all");
    fputc('\n', out);
    flamegraph_put_decimal(out, node->weight_ns, 1000000, 3);
    fputs(" ms, ", out);
    flamegraph_put_percent(graph, node->weight_ns);
    if (node->self_ns > 0 && node->self_ns < node->weight_ns) {
        fputs(" (own ", out);
        flamegraph_put_decimal(out, node->self_ns, 1000000, 3);
        fputs(" ms)", out);
    }
    fprintf(out, ", %" PRIu64 " %s%s", node->samples, graph->report->exact_rows ? "call" : "sample",
            node->samples == 1 ? "" : "s");
    if (frame == NULL || frame->pseudo)
        return;
    fputc('\n', out);
    gp_xml_text(out, frame->file);
    if (frame->first_line > 0)
        fprintf(out, ":%" PRIu32, frame->first_line);
    if (strcmp(frame->file, frame->module) != 0) {
        fputs("\n", out);
        gp_xml_text(out, frame->module);
    }
}

// Thin frames have no outline, which would cover them ("t").
static void flamegraph_put_class(const graph_t *graph, const gp_report_frame_t *frame, uint64_t width)
{
    const char *thin = width < 3 * SCALE ? " t" : "";
    if (frame == NULL)
        fputs("<g class=\"r\">", graph->out);
    else
        fprintf(graph->out, "<g class=\"%c%u%s\">", flamegraph_kind_of(frame),
                (unsigned)(gp_hash_bytes(frame->function, strlen(frame->function)) % SHADES), thin);
}

static void flamegraph_put_frame(const graph_t *graph, const gp_flame_node_t *node, uint64_t x, uint64_t width)
{
    const gp_report_frame_t *frame =
        node->function == GP_FLAME_NONE ? NULL : graph->tree->table->functions[node->function].frame;
    uint32_t y = TOP + (graph->depth - node->depth) * ROW;
    uint64_t columns = width / SCALE > TEXT_PAD ? (width / SCALE - TEXT_PAD) * 1000 / CHAR_MILLI : 0;
    FILE *out = graph->out;
    flamegraph_put_class(graph, frame, width);
    fputs("<title>", out);
    flamegraph_put_details(graph, node, frame);
    fputs("</title><rect x=\"", out);
    flamegraph_put_scaled(out, x + (uint64_t)PAD * SCALE);
    fprintf(out, "\" y=\"%" PRIu32 "\" width=\"", y);
    flamegraph_put_scaled(out, width);
    fprintf(out, "\" height=\"%d\"/>", ROW - 1);
    if (columns >= 3) {
        fputs("<text x=\"", out);
        flamegraph_put_scaled(out, x + (uint64_t)(PAD + TEXT_PAD - 2) * SCALE);
        fprintf(out, "\" y=\"%" PRIu32 "\">", y + 12);
        gp_xml_text_cut(out, frame ? frame->function : "all", columns);
        fputs("</text>", out);
    }
    fputs("</g>\n", out);
}

// Where a node starts, in ns from the left edge, is kept on the way down: children lie side by side from there.
typedef struct place {
    uint32_t node;
    uint64_t start_ns;
} place_t;

// Visit every node that is wide enough, parents before children. Without `draw` only the depth is found.
static int flamegraph_visit(graph_t *graph, bool draw)
{
    const gp_flame_node_t *nodes = graph->tree->nodes;
    place_t *stack = calloc((size_t)graph->tree->count + 1, sizeof(*stack));
    size_t count = 0;
    if (stack == NULL)
        return -ENOMEM;
    stack[count++] = (place_t){0, 0};
    while (count > 0) {
        place_t place = stack[--count];
        const gp_flame_node_t *node = &nodes[place.node];
        uint64_t x = flamegraph_pixels(graph, place.start_ns);
        uint64_t width = flamegraph_pixels(graph, place.start_ns + node->weight_ns) - x;
        if (draw)
            flamegraph_put_frame(graph, node, x, width);
        else if (node->depth > graph->depth)
            graph->depth = node->depth;
        uint64_t start = place.start_ns;
        for (uint32_t child = node->first_child; child != GP_FLAME_NONE; child = nodes[child].next_sibling) {
            if (flamegraph_pixels(graph, nodes[child].weight_ns) >= CUT)
                stack[count++] = (place_t){child, start};
            start += nodes[child].weight_ns;
        }
    }
    free(stack);
    return 0;
}

static void flamegraph_put_totals(const graph_t *graph)
{
    const gp_report_t *report = graph->report;
    FILE *out = graph->out;
    fprintf(out, "<text class=\"sub\" x=\"%d\" y=\"48\">", PAD);
    flamegraph_put_decimal(out, report->total_ns, 1000000000, 3);
    fprintf(out, " s of %s%s, %" PRIu64 " %s", gp_measure_words(report->measure),
            report->basis == GP_BASIS_EXACT ? "" : " by the samples", report->samples,
            report->measure == GP_MEASURE_DELAY ? "times" : gp_count_words(report));
    if (report->frequency_hz > 0 && report->measure != GP_MEASURE_DELAY)
        fprintf(out, " at %" PRIu32 " Hz", report->frequency_hz);
    if (report->duration_ns > 0) {
        fputs(", in ", out);
        flamegraph_put_decimal(out, report->duration_ns, 1000000000, 3);
        fputs(" s", out);
    }
    fputs("</text>\n", out);
}

// Which kinds there are, and with how much room each is named.
static void flamegraph_put_legend(const graph_t *graph)
{
    bool used[128] = {false};
    int x = PAD;
    for (uint32_t i = 0; i < graph->report->frame_count; i++)
        used[(unsigned char)flamegraph_kind_of(&graph->report->frames[i])] = true;
    for (size_t i = 0; i < sizeof(legend) / sizeof(legend[0]); i++) {
        if (!used[(unsigned char)legend[i].kind])
            continue;
        fprintf(graph->out,
                "<rect class=\"%c0\" x=\"%d\" y=\"54\" width=\"12\" height=\"12\"/>"
                "<text class=\"key\" x=\"%d\" y=\"64\">%s</text>\n",
                legend[i].kind, x, x + 17, legend[i].text);
        x += 17 + (int)strlen(legend[i].text) * 7 + 18;
    }
}

static void flamegraph_put_head(const graph_t *graph, uint32_t height)
{
    FILE *out = graph->out;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"greenprof\" width=\"%d\" "
            "height=\"%" PRIu32 "\" viewBox=\"0 0 %d %" PRIu32 "\">\n<title>",
            WIDTH, height, WIDTH, height);
    gp_xml_text(out, graph->report->title);
    fprintf(out, "</title>\n<style><![CDATA[\n%s]]></style>\n", flamegraph_css);
    fprintf(out, "<rect class=\"paper\" width=\"%d\" height=\"%" PRIu32 "\"/>\n", WIDTH, height);
    fprintf(out, "<text class=\"heading\" x=\"%d\" y=\"28\">", PAD);
    gp_xml_text_cut(out, graph->report->title, 80);
    fputs("</text>\n", out);
    flamegraph_put_totals(graph);
    flamegraph_put_legend(graph);
}

static int flamegraph_put_graph(graph_t *graph)
{
    // A profile without any time has no widths; the root alone would be a lie.
    bool empty = graph->report->total_ns == 0 || gp_report_is_empty(graph->report);
    int result = empty ? 0 : flamegraph_visit(graph, false);
    uint32_t height = TOP + (graph->depth + 1) * ROW + BOTTOM;
    if (result < 0)
        return result;
    flamegraph_put_head(graph, height);
    fprintf(graph->out, "<text id=\"details\" x=\"%d\" y=\"%" PRIu32 "\">%s</text>\n<g id=\"frames\">\n", PAD,
            height - 12, empty ? "no samples" : "");
    if (!empty)
        result = flamegraph_visit(graph, true);
    fprintf(graph->out, "</g>\n<script><![CDATA[\n%s]]></script>\n</svg>\n", flamegraph_js);
    return result;
}

int gp_flamegraph_write(const gp_report_t *report, FILE *out)
{
    gp_flame_tree_t *tree = gp_flame_tree_create(report);
    graph_t graph = {.report = report, .tree = tree, .out = out};
    if (tree == NULL)
        return -ENOMEM;
    int result = flamegraph_put_graph(&graph);
    gp_flame_tree_free(tree);
    return result;
}
