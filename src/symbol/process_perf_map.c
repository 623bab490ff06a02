// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "symbol/live_image.h"
#include "symbol/symbolizer.h"
#include "symbol/symfs.h"

enum { START_FIELD = 22, NS = 1000000000 }; // proc(5), /proc/pid/stat: (22) starttime

static uint64_t process_perf_map_clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS + (uint64_t)now.tv_nsec;
}

// When this process started, CLOCK_REALTIME; 0 when it cannot be known. An exec does not change it.
static uint64_t process_perf_map_start_ns(void)
{
    char text[1024];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[len > 0 ? len : 0] = '\0';
    char *at = strrchr(text, ')'); // the name before it may hold anything
    for (int field = 2; at != NULL && field < START_FIELD; field++)
        at = strchr(at + 1, ' ');
    long ticks_hz = sysconf(_SC_CLK_TCK);
    if (at == NULL || ticks_hz <= 0)
        return 0;
    uint64_t since_boot_ns = strtoull(at, NULL, 10) * (NS / (uint64_t)ticks_hz);
    return process_perf_map_clock_ns(CLOCK_REALTIME) - process_perf_map_clock_ns(CLOCK_BOOTTIME) + since_boot_ns;
}

void gp_symbolizer_process_perf_map(gp_symbolizer_t *symbolizer, uint32_t pid, uint64_t from_ns, uint64_t to_ns)
{
    char path[64], below[PATH_MAX];
    bool is_below = false;
    gp_live_image_process(pid);
    snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", pid);
    for (size_t i = 0; i < gp_symfs_count(); i++) {
        if (gp_symfs_path(i, path, below, sizeof(below)) == 0)
            continue;
        gp_symbolizer_perf_map(symbolizer, below, from_ns, UINT64_MAX);
        is_below |= access(below, F_OK) == 0;
    }
    if (!is_below) // else what is here is of another process, which has the same number
        gp_symbolizer_perf_map(symbolizer, path, from_ns, to_ns);
}

void gp_symbolizer_own_perf_map(gp_symbolizer_t *symbolizer)
{
    char path[64];
    gp_live_image_process((uint32_t)getpid());
    snprintf(path, sizeof(path), "/tmp/perf-%ld.map", (long)getpid());
    gp_symbolizer_perf_map(symbolizer, path, process_perf_map_start_ns(), UINT64_MAX);
}
