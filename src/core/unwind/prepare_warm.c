// SPDX-License-Identifier: MIT
// Touch what handlers will need before they do: a page that is touched for the first time costs microseconds.
#define _GNU_SOURCE
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "unwind/memo.h"
#include "unwind/module.h"
#include "unwind/prepare_tables.h"
#include "unwind/unwind.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

enum {
    PAGE = 4096,
    PIECE_BYTES = 16 * PAGE,    // at a time: the address space is locked meanwhile
    TABLES_BYTES_MAX = 4 << 20, // of all modules' tables; there are programs with a hundred times as much
};

// The pages that lie in [start, end), whole or in part. An older kernel knows no such advice: then the handler pays.
static void prepare_warm_populate(uintptr_t start, uintptr_t end, int advice)
{
    for (uintptr_t at = start & ~(uintptr_t)(PAGE - 1); at < end; at += PIECE_BYTES) {
        uintptr_t left = (end - at + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
        if (madvise((void *)at, left < PIECE_BYTES ? left : PIECE_BYTES, advice) != 0)
            return;
    }
}

// The end of the module's last entry, as far as its index tells: entries stand in no order.
static uintptr_t prepare_warm_frames_end(const gp_eh_index_t *eh)
{
    uintptr_t last = (uintptr_t)eh->eh_frame;
    for (uint32_t i = 0; i < eh->count; i++) {
        int32_t offset;
        memcpy(&offset, eh->table + (size_t)i * 8 + 4, sizeof offset);
        uintptr_t entry = (uintptr_t)eh->hdr + (uintptr_t)(intptr_t)offset;
        last = entry > last && entry < (uintptr_t)eh->eh_end ? entry : last;
    }
    return last;
}

static void prepare_warm_tables(const gp_unwind_module_t *module, size_t *left)
{
    const gp_eh_index_t *eh = &module->eh;
    uintptr_t index = (uintptr_t)eh->hdr;
    size_t bytes = (size_t)eh->count * 8;
    if (eh->table == NULL || eh->eh_end == NULL || bytes > *left)
        return;
    prepare_warm_populate(index, (uintptr_t)eh->table + bytes, MADV_POPULATE_READ);
    *left -= bytes;
    uintptr_t frames = (uintptr_t)eh->eh_frame, end = prepare_warm_frames_end(eh);
    if (end - frames > *left)
        return;
    prepare_warm_populate(frames, end, MADV_POPULATE_READ);
    *left -= end - frames;
}

// Startup modules only: these stay where they are.
static void prepare_warm_modules(void)
{
    size_t left = TABLES_BYTES_MAX;
    const struct link_map *map;
    for (size_t i = 0; (map = gp_module_fixed_get(i)) != NULL; i++) {
        gp_unwind_module_t module;
        gp_location_t where;
        if (map->l_ld != NULL && gp_module_locate((uintptr_t)map->l_ld, &where) &&
            gp_module_parse(&where, where.lo, &module))
            prepare_warm_tables(&module, &left);
    }
}

void gp_unwind_warm_memory(void *memory, size_t bytes)
{
    prepare_warm_populate((uintptr_t)memory, (uintptr_t)memory + bytes, MADV_POPULATE_WRITE);
}

void gp_unwind_warm(void)
{
    static bool tables, memos; // done
    void *memory;
    size_t bytes;
    if (!tables) {
        tables = true;
        prepare_warm_modules();
    }
    if (!memos && gp_memo_many(&memory, &bytes)) {
        memos = true;
        gp_unwind_warm_memory(memory, bytes);
    }
    gp_row_tables_make();
}
