// SPDX-License-Identifier: MIT
// Samples of spans, as folded lines.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/write/text.h"
#include "traces/sources.h"

// "[span 16hex];frames weight"
enum { PREFIX_LEN = sizeof("[span ") - 1, ID_LEN = 16, HEAD_LEN = PREFIX_LEN + ID_LEN + 2 };

static int read_profile_compare(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

// The lines of the text that are of spans, sorted by the span. Returns how many.
static size_t read_profile_sort_lines(char *text, char **lines)
{
    size_t count = 0;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        if (strncmp(line, "[span ", PREFIX_LEN) == 0 && strlen(line) > HEAD_LEN && line[HEAD_LEN - 1] == ';')
            lines[count++] = line;
    qsort(lines, count, sizeof(*lines), read_profile_compare);
    return count;
}

// Lines of one span. Returns how many, or -ENOMEM.
static int64_t read_profile_take_span(gp_spans_t *set, uint32_t trace, char *const *lines, size_t count)
{
    gp_text_t text = {0};
    char id[ID_LEN + 1];
    size_t used = 0;
    memcpy(id, lines[0] + PREFIX_LEN, ID_LEN);
    id[ID_LEN] = '\0';
    for (; used < count && strncmp(lines[used], lines[0], HEAD_LEN) == 0; used++) {
        gp_text_add(&text, lines[used] + HEAD_LEN, strlen(lines[used] + HEAD_LEN));
        gp_text_add(&text, "\n", 1);
    }
    uint32_t span = gp_spans_find(set, trace, gp_id128_parse(id));
    const char *profile = text.failed ? NULL : gp_spans_text(set, text.data);
    gp_text_free(&text);
    if (profile == NULL)
        return -ENOMEM;
    if (span != GP_NO_SPAN)
        set->items[span].profile = profile;
    return (int64_t)used;
}

int gp_spans_take_profile(gp_spans_t *set, uint32_t trace, char *folded)
{
    size_t most = 1;
    for (const char *at = folded; (at = strchr(at, '\n')) != NULL; at++)
        most++;
    char **lines = calloc(most, sizeof(*lines));
    if (lines == NULL)
        return -ENOMEM;
    size_t count = read_profile_sort_lines(folded, lines);
    int64_t used = 0;
    for (size_t i = 0; i < count && used >= 0; i += (size_t)used)
        used = read_profile_take_span(set, trace, &lines[i], count - i);
    free(lines);
    return used < 0 ? -ENOMEM : 0;
}
