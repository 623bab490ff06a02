// SPDX-License-Identifier: MIT
#include "capture/read/reader_window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOW_MIN = 256 * 1024 };

// Move what is left to the front and make room for `len` bytes. `start` keeps its place modulo 8.
static int reader_window_room(gp_reader_window_t *window, size_t len)
{
    size_t left = window->end - window->start;
    size_t front = window->start & 7;
    if (window->start > front) {
        memmove(window->data + front, window->data + window->start, left);
        window->start = front;
        window->end = front + left;
    }
    if (window->size >= front + len)
        return 0;

    size_t size = front + len > WINDOW_MIN ? front + len : WINDOW_MIN;
    uint8_t *data = realloc(window->data, size);
    if (data == NULL)
        return -ENOMEM;
    window->data = data;
    window->size = size;
    return 0;
}

static void reader_window_read(gp_reader_window_t *window, size_t len)
{
    while (window->end - window->start < len && !window->at_end) {
        ssize_t got = read(window->fd, window->data + window->end, window->size - window->end);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            window->at_end = 1;
            window->error = got < 0 ? -errno : 0;
            return;
        }
        window->end += (size_t)got;
        window->total += (uint64_t)got;
    }
}

size_t gp_reader_window_fill(gp_reader_window_t *window, size_t len)
{
    if (window->end - window->start < len && !window->at_end) {
        int result = window->size - window->start < len ? reader_window_room(window, len) : 0;
        if (result < 0) {
            window->error = result;
            window->at_end = 1;
        } else {
            reader_window_read(window, len);
        }
    }
    size_t have = window->end - window->start;
    return have < len ? have : len;
}

size_t gp_reader_window_skip(gp_reader_window_t *window, size_t len)
{
    size_t skipped = 0;
    while (skipped < len) {
        size_t want = len - skipped < WINDOW_MIN / 2 ? len - skipped : WINDOW_MIN / 2;
        size_t have = gp_reader_window_fill(window, want);
        if (have == 0)
            break;
        window->start += have;
        skipped += have;
    }
    return skipped;
}

void gp_reader_window_free(gp_reader_window_t *window)
{
    free(window->data);
    window->data = NULL;
}
