// SPDX-License-Identifier: MIT
#include "capture/read/process_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_LEN = 300 };

size_t gp_process_text_put(char text[GP_PROCESS_TEXT_MAX], const gp_process_text_t *process)
{
    return (size_t)snprintf(text, GP_PROCESS_TEXT_MAX, "%" PRIu64 "-%" PRIu64 " %" PRIu32 "%c%.*s%c%.*s",
                            process->first, process->last, process->pid, '\0', NAME_MAX_LEN, process->service, '\0',
                            NAME_MAX_LEN, process->host);
}

bool gp_process_text_read(const char *text, size_t len, gp_process_text_t *process)
{
    *process = (gp_process_text_t){.service = "", .host = ""};
    if (sscanf(text, "%" SCNu64 "-%" SCNu64 " %" SCNu32, &process->first, &process->last, &process->pid) != 3)
        return false;
    size_t at = strlen(text) + 1;
    if (at < len) {
        process->service = text + at;
        at += strlen(text + at) + 1;
    }
    if (at < len)
        process->host = text + at;
    return true;
}
