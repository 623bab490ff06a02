// SPDX-License-Identifier: MIT
// A page from one report, or from two whose difference it shows: the parts in their order.
#include "page/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/stream.h"
#include "page/html.h"
#include "report/report_options.h"

void gp_page_note(gp_page_writer_t *writer, const char *format, ...)
{
    va_list arguments;
    if (writer->note_count == GP_PAGE_NOTES_MAX)
        return;
    va_start(arguments, format);
    vsnprintf(writer->notes[writer->note_count++], GP_PAGE_NOTE_SIZE, format, arguments);
    va_end(arguments);
}

uint32_t gp_page_trace(gp_page_writer_t *writer, uint32_t trace)
{
    char text[40];
    if (writer->dataset->facts.traces.items[trace].index == 0)
        return 0;
    gp_report_trace_label(writer->dataset, trace, true, text, sizeof(text));
    return gp_string_table_number(&writer->traces, text) + 1;
}

uint32_t gp_page_thread(gp_page_writer_t *writer, uint32_t index)
{
    uint32_t number = gp_dataset_thread_find(writer->dataset, index);
    char text[16];
    if (number == GP_INDEX_NONE)
        return 0;
    const gp_thread_record_t *thread = &writer->dataset->facts.threads.items[number];
    snprintf(text, sizeof(text), "%" PRIu32, thread->tid);
    return gp_string_table_number(&writer->threads, thread->name[0] != '\0' ? thread->name : text) + 1;
}

static int page_put_together(gp_page_writer_t *writer)
{
    int result = gp_nodes_init(&writer->nodes);
    if (result == 0)
        result = gp_page_coros(writer);
    if (result == 0)
        result = gp_page_requests(writer);
    if (result == 0)
        result = gp_page_rows(writer);
    if (result == 0)
        result = gp_page_segments(writer);
    if (result < 0)
        return result;
    gp_page_put_stacks(writer);
    gp_page_put_coros(writer);
    result = gp_page_spans(writer);
    if (result == 0)
        result = gp_page_hogs(writer);
    return result == 0 ? gp_page_timeline(writer) : result;
}

static bool page_is_short_of_memory(const gp_page_writer_t *writer)
{
    bool failed = writer->nodes.names.failed || writer->nodes.files.failed || writer->nodes.modules.failed ||
                  writer->threads.failed || writer->traces.failed || writer->coro_names.failed;
    for (size_t i = 0; i < GP_PAGE_TABLES; i++)
        for (size_t j = 0; j < writer->tables[i].count; j++)
            failed = failed || writer->tables[i].columns[j].bytes.failed;
    return failed;
}

static ssize_t page_add_bytes(void *context, const char *bytes, size_t len)
{
    gp_text_t *text = context;
    gp_text_add(text, bytes, len);
    return text->failed ? 0 : (ssize_t)len;
}

static int page_put_header(const gp_page_writer_t *writer, gp_text_t *header)
{
    FILE *file = fopencookie(header, "w", (cookie_io_functions_t){.write = page_add_bytes});
    if (file == NULL)
        return -ENOMEM;
    gp_json_t json = {.out = file};
    gp_page_header(writer, &json);
    return gp_stream_close(file) && !header->failed ? 0 : -ENOMEM;
}

// The header's length, the header, the columns.
static int page_put_data(const gp_page_writer_t *writer, gp_text_t *data)
{
    gp_text_t header = {0};
    int result = page_put_header(writer, &header);
    const char len[4] = {(char)header.len, (char)(header.len >> 8), (char)(header.len >> 16), (char)(header.len >> 24)};
    if (result == 0) {
        gp_text_add(data, len, sizeof(len));
        gp_text_add(data, header.data, header.len);
    }
    gp_text_free(&header);
    for (size_t i = 0; i < GP_PAGE_TABLES && result == 0; i++)
        for (size_t j = 0; j < writer->tables[i].count; j++)
            if (writer->tables[i].columns[j].bytes.len > 0)
                gp_text_add(data, writer->tables[i].columns[j].bytes.data, writer->tables[i].columns[j].bytes.len);
    return data->failed ? -ENOMEM : result;
}

static void page_drop(gp_page_writer_t *writer)
{
    gp_nodes_free(&writer->nodes);
    gp_page_labels_free(&writer->labels);
    gp_page_facts_free(&writer->rows);
    gp_page_facts_free(&writer->delays);
    gp_page_facts_free(&writer->paths);
    gp_string_table_free(&writer->threads);
    gp_string_table_free(&writer->traces);
    gp_string_table_free(&writer->coro_names);
    free(writer->coros.numbers);
    free(writer->coros.folded);
    free(writer->requests);
    free(writer->spawns);
    for (size_t i = 0; i < GP_PAGE_TABLES; i++)
        gp_page_table_free(&writer->tables[i]);
}

int gp_page_write(const gp_report_t *base, const gp_report_t *report, FILE *out)
{
    gp_page_writer_t *writer = calloc(1, sizeof(*writer));
    gp_text_t data = {0};
    if (writer == NULL)
        return -ENOMEM;
    if (base != NULL)
        writer->sides[writer->side_count++] = base;
    writer->sides[writer->side_count++] = report;
    writer->report = report;
    writer->page = report->page;
    writer->dataset = report->page != NULL ? report->page->dataset : NULL;
    writer->nodes.by_line = report->with_source;
    int result = page_put_together(writer);
    if (result == 0 && page_is_short_of_memory(writer))
        result = -ENOMEM;
    if (result == 0)
        result = page_put_data(writer, &data);
    if (result == 0)
        result = gp_html_write_data(&data, out);
    gp_text_free(&data);
    page_drop(writer);
    free(writer);
    return result;
}
