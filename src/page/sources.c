// SPDX-License-Identifier: MIT
// Source lines of samples, with some around them: of the files that took most time and are at hand when the page is
// made.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "page/page.h"

enum {
    FILES_MAX = 100,
    FILE_BYTES_MAX = 4 << 20,
    SHOWN_BYTES_MAX = 1 << 20, // of all files
    AROUND = 8,                // lines before and after those that samples were on
    GAP = 30,                  // so many lines without a sample are left out
};

typedef struct line { // that samples were on
    uint32_t file, line;
} line_t;

typedef struct file_time {
    uint32_t file;
    uint64_t ns;
} file_time_t;

static int sources_by_place(const void *left, const void *right)
{
    const line_t *a = left, *b = right;
    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

static int sources_by_time(const void *left, const void *right)
{
    const file_time_t *a = left, *b = right;
    if (a->ns != b->ns)
        return a->ns > b->ns ? -1 : 1;
    return a->file < b->file ? -1 : a->file > b->file;
}

// Each file's time, from every row's frames, for the order.
static file_time_t *sources_file_times(const gp_page_writer_t *writer)
{
    const gp_nodes_t *nodes = &writer->nodes;
    file_time_t *times = calloc(nodes->files.count + 1, sizeof(*times));
    for (uint32_t i = 0; i < nodes->files.count && times != NULL; i++)
        times[i].file = i;
    for (size_t i = 0; i < writer->rows.count && times != NULL; i++) {
        // Rows have numbers in preorder by now.
        uint32_t node = nodes->by_order[writer->rows.items[i].node];
        for (unsigned depth = 0; node != 0 && depth < 8; depth++, node = nodes->nodes[node].parent)
            if (nodes->frames[nodes->nodes[node].frame].at > 0)
                times[nodes->frames[nodes->nodes[node].frame].file].ns += writer->rows.items[i].weight_ns >> depth;
    }
    return times;
}

// The text of a regular file. Returns NULL where it cannot be had.
static char *sources_read_file(const char *path)
{
    struct stat is;
    int fd = path[0] == '/' ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    char *text = NULL;
    size_t len = 0;
    if (fd >= 0 && fstat(fd, &is) == 0 && S_ISREG(is.st_mode) && is.st_size <= FILE_BYTES_MAX)
        text = malloc((size_t)is.st_size + 1);
    while (text != NULL && len < (size_t)is.st_size) {
        ssize_t got = read(fd, text + len, (size_t)is.st_size - len);
        if (got <= 0)
            break;
        len += (size_t)got;
    }
    if (fd >= 0)
        close(fd);
    if (text != NULL)
        text[len] = '\0';
    return text;
}

static void sources_put_lines(gp_json_t *json, const char *path, char *text, uint32_t first, uint32_t last)
{
    uint32_t number = 1;
    gp_json_open(json, '{');
    gp_json_key_text(json, "file", path);
    gp_json_key_uint(json, "first_line", first);
    gp_json_key(json, "lines");
    gp_json_open(json, '[');
    for (char *at = text; at != NULL && *at != '\0' && number <= last; number++) {
        char *end = strchr(at, '\n');
        if (number >= first) {
            if (end != NULL)
                *end = '\0';
            gp_json_text(json, at);
            if (end != NULL)
                *end = '\n';
        }
        at = end != NULL ? end + 1 : NULL;
    }
    gp_json_close(json, ']');
    gp_json_close(json, '}');
}

// The parts of a file that have samples.
static void sources_put_file(gp_json_t *json, const char *path, char *text, const line_t *lines, size_t count)
{
    for (size_t i = 0; i < count;) {
        uint32_t first = lines[i].line > AROUND ? lines[i].line - AROUND : 1, last = lines[i].line;
        for (; i < count && lines[i].line <= last + GAP; i++)
            last = lines[i].line;
        sources_put_lines(json, path, text, first, last + AROUND);
    }
}

static line_t *sources_all_lines(const gp_nodes_t *nodes, size_t *count)
{
    line_t *lines = malloc((nodes->frame_count + 1) * sizeof(*lines));
    *count = 0;
    for (size_t i = 0; i < nodes->frame_count && lines != NULL; i++)
        if (nodes->frames[i].at > 0)
            lines[(*count)++] = (line_t){nodes->frames[i].file, nodes->frames[i].at};
    if (lines != NULL)
        qsort(lines, *count, sizeof(*lines), sources_by_place);
    return lines;
}

void gp_page_sources(const gp_page_writer_t *writer, gp_json_t *json)
{
    const gp_string_table_t *files = &writer->nodes.files;
    size_t count = 0, bytes = 0, shown = 0;
    line_t *lines = writer->nodes.by_line ? sources_all_lines(&writer->nodes, &count) : NULL;
    file_time_t *times = lines != NULL ? sources_file_times(writer) : NULL;
    if (times != NULL)
        qsort(times, files->count, sizeof(*times), sources_by_time);
    for (size_t i = 0; times != NULL && i < files->count && shown < FILES_MAX && bytes < SHOWN_BYTES_MAX; i++) {
        size_t first = 0, end;
        while (first < count && lines[first].file != times[i].file)
            first++;
        for (end = first; end < count && lines[end].file == times[i].file; end++)
            ;
        char *text = end > first ? sources_read_file(files->texts[times[i].file]) : NULL;
        if (text == NULL)
            continue;
        sources_put_file(json, files->texts[times[i].file], text, lines + first, end - first);
        bytes += strlen(text);
        shown++;
        free(text);
    }
    free(times);
    free(lines);
}
