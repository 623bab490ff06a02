// SPDX-License-Identifier: MIT
// Any bytes as /proc/PID/maps, read in pieces: the first byte says how many at a time.
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "base/maps.h"
#include "fuzz.h"

enum { FAKE = 1 << 20 }; // no descriptor is as large

static const uint8_t *rest;
static size_t left, piece;

long __wrap_syscall(long number, ...);
ssize_t __wrap_read(int fd, void *to, size_t bytes);
ssize_t __real_read(int fd, void *to, size_t bytes);

// Calls by number during reading: one opens the file, and one closes it.
long __wrap_syscall(long number, ...)
{
    return number == SYS_openat ? FAKE : 0;
}

ssize_t __wrap_read(int fd, void *to, size_t bytes)
{
    if (fd != FAKE)
        return __real_read(fd, to, bytes);
    size_t got = bytes < piece ? bytes : piece;
    got = got < left ? got : left;
    memcpy(to, rest, got);
    rest += got;
    left -= got;
    return (ssize_t)got;
}

static bool count(const gp_mapping_t *mapping, void *argument)
{
    size_t *mappings = argument;
    if (mapping->hi == 0)
        abort();
    return ++*mappings < 1000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t mappings = 0;
    gp_mapping_t mapping;
    if (size == 0)
        return 0;
    for (int i = 0; i < 2; i++) {
        rest = data + 1;
        left = size - 1;
        piece = 1 + data[0] * 16u;
        if (i == 0 ? gp_maps_each(count, &mappings) != 0 : gp_maps_find(0x7f0000001000, &mapping) > 0)
            abort();
    }
    if (mappings > size)
        abort();
    return 0;
}
