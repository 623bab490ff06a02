// SPDX-License-Identifier: MIT
// What is known of a process of which slow_held.c says what holds its threads.
#pragma once

#include "watch/slow_held.h"

typedef struct gp_held_thread {
    uint32_t index;
    uint64_t switches, wakes; // of all that were on it
} gp_held_thread_t;

typedef struct gp_held_module {
    uint32_t id;
    char *path;
    uint8_t build_id[20], build_id_len;
} gp_held_module_t;

struct gp_held_process {
    gp_file_header_t header; // of the part that is read
    uint64_t now_ns;         // CLOCK_MONOTONIC: the last that is known of it
    bool goes_on;            // the part that is read has ended, and another follows
    gp_held_coro_t *coros;
    size_t coro_count, coro_capacity;
    gp_index_t coro_index;
    gp_held_thread_t *threads;
    size_t thread_count, thread_capacity;
    // Of the part that is read:
    gp_held_module_t *modules;
    size_t module_count, module_capacity;
    gp_held_leaf_t *leaves; // by stack
    size_t leaf_count, leaf_capacity;
};
