// SPDX-License-Identifier: MIT
#include "report/explain_words.h"

#include <stdio.h>
#include <string.h>

const gp_finding_t *gp_verdict_first(const gp_findings_t *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        if (findings->items[i].rank == GP_FINDING_FAULT || findings->items[i].rank == GP_FINDING_MACHINE)
            return &findings->items[i];
    return NULL;
}

const char *gp_verdict_sentence(const gp_finding_t *finding, char text[GP_VERDICT_SENTENCE])
{
    bool begins_with_code = finding->function[0] != '\0';
    snprintf(text, GP_VERDICT_SENTENCE, "%s.", finding->sentence);
    if (!begins_with_code && text[0] >= 'a' && text[0] <= 'z')
        text[0] = (char)(text[0] - 'a' + 'A');
    return text;
}

const char *gp_verdict_command(const gp_finding_t *finding, const char *path, char *text, size_t size)
{
    size_t word = strcspn(finding->show, " ");
    snprintf(text, size, "greenprof %.*s %s%s", (int)word, finding->show, path, finding->show + word);
    return text;
}
