// SPDX-License-Identifier: MIT
// The file of a module without a build-id, kept in place of the build-id, with 0 as its length. A file that was rebuilt
// has another stamp. Zeroed: not known.
#pragma once

#include <stdint.h>
#include <sys/stat.h>

typedef struct gp_file_stamp {
    uint64_t bytes;
    int64_t changed_ns;
} gp_file_stamp_t;

static inline gp_file_stamp_t gp_file_stamp(const struct stat *status)
{
    const struct timespec *changed = &status->st_mtim;
    return (gp_file_stamp_t){(uint64_t)status->st_size, (int64_t)changed->tv_sec * 1000000000 + changed->tv_nsec};
}
