// SPDX-License-Identifier: MIT
// The processes of the coroutines of several captures, also where one of them has been made of several.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "capture/read/process_text.h"
#include "capture/several/captures_private.h"

int gp_captures_keep_process(gp_capture_input_t *input, const char *text, size_t len)
{
    if (gp_grow(&input->processes, &input->process_capacity, input->process_count, sizeof(*input->processes)) < 0)
        return -ENOMEM;
    gp_capture_text_t *kept = &input->processes[input->process_count];
    *kept = (gp_capture_text_t){calloc(len + 1, 1), len};
    if (kept->text == NULL)
        return -ENOMEM;
    memcpy(kept->text, text, len);
    input->process_count++;
    return 0;
}

static int captures_processes_pass(const gp_captures_pass_t *pass, const gp_process_text_t *process)
{
    char text[GP_PROCESS_TEXT_MAX];
    size_t len = gp_process_text_put(text, process);
    return gp_captures_pass_meta(pass, "process", text, len);
}

static const char *captures_processes_text_of(const gp_capture_input_t *input, size_t which)
{
    return input->texts[which].text != NULL ? input->texts[which].text : "";
}

static int captures_processes_pass_own(const gp_captures_pass_t *to, const gp_capture_input_t *input)
{
    const char *service = captures_processes_text_of(input, GP_TEXT_SERVICE);
    const gp_process_text_t process = {
        .first = input->ids.first[GP_COUNTED_COROS] + 1,
        .last = input->ids.last[GP_COUNTED_COROS],
        .pid = input->header.pid,
        .service = service[0] != '\0' ? service : gp_captures_exe_of(input),
        .host = captures_processes_text_of(input, GP_TEXT_HOSTNAME),
    };
    return captures_processes_pass(to, &process);
}

int gp_captures_pass_processes(const gp_captures_pass_t *to, const gp_capture_input_t *input)
{
    bool is_told = input->process_count > 0 || !gp_captures_is_last_part(to->captures, input);
    int result = is_told ? 0 : captures_processes_pass_own(to, input);
    for (size_t i = 0; i < input->process_count && result == 0; i++) {
        gp_process_text_t process;
        if (!gp_process_text_read(input->processes[i].text, input->processes[i].len, &process))
            continue;
        process.first += input->ids.first[GP_COUNTED_COROS];
        process.last += input->ids.first[GP_COUNTED_COROS];
        result = captures_processes_pass(to, &process);
    }
    return result;
}

void gp_captures_free_processes(gp_capture_input_t *input)
{
    for (size_t i = 0; i < input->process_count; i++)
        free(input->processes[i].text);
    free(input->processes);
}
