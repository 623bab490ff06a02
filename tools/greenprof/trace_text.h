#ifndef GP_TOOLS_TRACE_TEXT_H
#define GP_TOOLS_TRACE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

// Read a trace id: 32 hex digits, a UUID, or a W3C traceparent. Returns whether `text` is one.
bool gp_trace_text_parse(const char *text, uint8_t id[16]);

#endif
