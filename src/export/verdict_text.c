// SPDX-License-Identifier: MIT
#include "export/verdict_text.h"

#include <inttypes.h>
#include <string.h>

#include "export/write/text.h"

const char gp_verdict_nothing[] = "Nothing stands out in the program.";

static size_t verdict_text_width(const char *text, size_t length)
{
    size_t width = 0;
    for (size_t i = 0; i < length; i++)
        width += ((unsigned char)text[i] & 0xc0) != 0x80;
    return width;
}

// C0 and C1 controls steer terminals.
static void verdict_text_put_word(FILE *out, const char *word, size_t length)
{
    for (size_t i = 0, step; i < length; i += step) {
        unsigned char c = (unsigned char)word[i];
        step = gp_text_utf8_len(word + i);
        if (step == 0 || c < ' ' || c == 0x7f || (c == 0xc2 && (unsigned char)word[i + 1] < 0xa0))
            putc('?', out);
        else
            fwrite(word + i, 1, step, out);
        step = step > 0 ? step : 1;
    }
}

void gp_verdict_wrap(FILE *out, const char *text, size_t indent, size_t columns)
{
    size_t column = indent;
    while (*text != '\0') {
        size_t length = strcspn(text, " "), width = verdict_text_width(text, length);
        if (column > indent && column + 1 + width > columns) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        }
        column += width + (column > indent);
        if (column > indent + width)
            putc(' ', out);
        verdict_text_put_word(out, text, length);
        text += length + strspn(text + length, " ");
    }
}

static void verdict_text_put_part(FILE *out, const char *label, const char *text, size_t columns)
{
    if (text[0] == '\0')
        return;
    fprintf(out, "    %-6s ", label);
    gp_verdict_wrap(out, text, 11, columns);
    putc('\n', out);
}

static void verdict_text_put_finding(FILE *out, const gp_finding_t *finding, size_t number, const char *path,
                                     size_t columns)
{
    char sentence[GP_VERDICT_SENTENCE], text[1024] = "";
    if (number > 0)
        fprintf(out, "\n%2zu. ", number);
    else
        fprintf(out, "\n%s ", finding->rank == GP_FINDING_CAVEAT ? " ! " : " - ");
    gp_verdict_wrap(out, gp_verdict_sentence(finding, sentence), 4, columns);
    putc('\n', out);
    verdict_text_put_part(out, "hurt:", finding->hurt, columns);
    verdict_text_put_part(out, "sure:", finding->sure, columns);
    if (finding->line != 0)
        snprintf(text, sizeof(text), "%s:%" PRIu32, finding->file, finding->line);
    verdict_text_put_part(out, "code:", text, SIZE_MAX);
    verdict_text_put_part(out, "shown:", gp_verdict_command(finding, path, text, sizeof(text)), SIZE_MAX);
}

void gp_verdict_write(FILE *out, const gp_findings_t *findings, const char *path, size_t columns)
{
    size_t number = 0;
    bool is_said = false;
    for (size_t i = 0; i < findings->count; i++) {
        const gp_finding_t *finding = &findings->items[i];
        bool is_numbered = finding->rank == GP_FINDING_FAULT || finding->rank == GP_FINDING_MACHINE;
        if (!is_said && finding->rank > GP_FINDING_FAULT)
            fprintf(out, "\n%s\n", gp_verdict_nothing);
        is_said |= finding->rank >= GP_FINDING_FAULT;
        number += is_numbered;
        verdict_text_put_finding(out, finding, is_numbered ? number : 0, path, columns);
    }
    if (!is_said)
        fprintf(out, "\n%s\n", gp_verdict_nothing);
}
