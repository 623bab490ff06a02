// SPDX-License-Identifier: MIT
// The text "process" of a merged capture: which of its coroutines are of which process. Each process has its text:
// "FIRST-LAST PID" and, each behind a NUL, the name of the service and of the host.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gp_process_text {
    uint64_t first, last; // coroutines
    uint32_t pid;
    const char *service, *host; // "" = not known
} gp_process_text_t;

enum { GP_PROCESS_TEXT_MAX = 1024 };

// Returns its length; names too long for the room are cut.
size_t gp_process_text_put(char text[GP_PROCESS_TEXT_MAX], const gp_process_text_t *process);

//   text: NUL behind its `len` bytes; the names point into it.
// Returns false: it is no such text.
bool gp_process_text_read(const char *text, size_t len, gp_process_text_t *process);
