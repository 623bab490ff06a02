// SPDX-License-Identifier: MIT
// The piece of a capture file that is in memory: bytes [at, at + filled) of the stream.
//
// The window keeps the alignment of the file: what lies on an 8-byte boundary there lies on one in memory.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct gp_reader_window {
    int fd;
    int error;      // negative errno value of read(), sticky
    int at_end;     // read() has returned 0
    uint8_t *data;  // malloc()ed
    size_t size;    // of data
    size_t start;   // first byte not yet consumed
    size_t end;     // behind the last byte read
    uint64_t total; // bytes read from fd
} gp_reader_window_t;

// Try to have `len` unconsumed bytes in memory. Returns how many there are: less at the end of the file or on an error.
size_t gp_reader_window_fill(gp_reader_window_t *window, size_t len);

// The first unconsumed byte.
static inline const uint8_t *gp_reader_window_data(const gp_reader_window_t *window)
{
    return window->data + window->start;
}

// Consume at most `len` bytes. Returns how many there were.
size_t gp_reader_window_skip(gp_reader_window_t *window, size_t len);

void gp_reader_window_free(gp_reader_window_t *window);
