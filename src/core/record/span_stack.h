// SPDX-License-Identifier: MIT
// Where a span began (PROF_SPAN_STACK), as a text for those who hear of spans.
#pragma once

#include <stdint.h>

enum { GP_SPAN_STACK_TEXT = 4096 };

// Functions from the outermost, a line each: of a language by name, others as FILE+0xADDRESS, which nothing looks up
// here; of a stack whose text is too long, the innermost ones.
//   site: see coro/spawn.h; 0 = none was kept.
// Returns the text, or NULL where there is none. Caller holds the drain lock.
const char *gp_span_stack_text(uint32_t site, char text[GP_SPAN_STACK_TEXT]);
