// SPDX-License-Identifier: MIT
// Closing a stream that was written to: in memory, or one whose bytes go through a function.
//
// Signals: unsafe.
#pragma once

#include <stdbool.h>
#include <stdio.h>

// Close a stream. Returns whether all bytes have arrived: fclose(3) alone is silent about an earlier write that failed.
static inline bool gp_stream_close(FILE *stream)
{
    bool has_failed = ferror(stream) != 0;
    return fclose(stream) == 0 && !has_failed;
}
