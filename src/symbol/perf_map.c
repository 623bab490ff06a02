// SPDX-License-Identifier: MIT
#include "symbol/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

enum { LINES_BYTES = 1 << 20, MAP_BYTES_MAX = 512 << 20 };

// Read a hexadecimal number that ends before `end` with a blank. Returns behind the blank, or NULL.
static const char *perf_map_read_hex(const char *at, const char *end, uint64_t *number)
{
    unsigned digits = 0;
    *number = 0;
    if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
        at += 2;
    for (; at < end && *at != ' '; at++, digits++) {
        char c = (char)(*at | 0x20);
        bool is_letter = c >= 'a' && c <= 'f';
        if (digits == 16 || !((*at >= '0' && *at <= '9') || is_letter))
            return NULL;
        *number = *number << 4 | (uint64_t)(is_letter ? c - 'a' + 10 : *at - '0');
    }
    return digits > 0 && at < end ? at + 1 : NULL;
}

static int perf_map_add_line(gp_perf_map_t *map, const char *at, const char *end)
{
    uint64_t lo = 0, size = 0;
    at = perf_map_read_hex(at, end, &lo);
    if (at != NULL)
        at = perf_map_read_hex(at, end, &size);
    if (at == NULL || at == end || size == 0 || size > UINT64_MAX - lo || memchr(at, '\0', (size_t)(end - at)) != NULL)
        return 0;
    const char *name = gp_arena_text(&map->texts, at, (size_t)(end - at));
    if (name == NULL || map->count >= UINT32_MAX - 1 ||
        gp_grow(&map->pieces, &map->capacity, map->count, sizeof(*map->pieces)) < 0)
        return -ENOMEM;
    map->pieces[map->count++] = (gp_perf_piece_t){lo, lo + size, name, NULL};
    return 0;
}

static int perf_map_add_lines(gp_perf_map_t *map, const char *text, size_t len, size_t *used)
{
    const char *at = text, *end = text + len, *newline;
    int result = 0;
    while (result == 0 && at < end && (newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        result = perf_map_add_line(map, at, newline);
        at = newline + 1;
    }
    *used = (size_t)(at - text);
    return result;
}

// The pieces open at one place of the sweep, the last to come on top.
typedef struct heap {
    uint32_t *items;
    size_t count;
} heap_t;

static void perf_map_heap_push(heap_t *heap, uint32_t piece)
{
    size_t at = heap->count++;
    for (; at > 0 && heap->items[(at - 1) / 2] < piece; at = (at - 1) / 2)
        heap->items[at] = heap->items[(at - 1) / 2];
    heap->items[at] = piece;
}

static void perf_map_heap_pop(heap_t *heap)
{
    uint32_t last = heap->items[--heap->count];
    size_t at = 0;
    for (size_t child = 1; child < heap->count; child = 2 * at + 1) {
        if (child + 1 < heap->count && heap->items[child + 1] > heap->items[child])
            child++;
        if (heap->items[child] <= last)
            break;
        heap->items[at] = heap->items[child];
        at = child;
    }
    heap->items[at] = last;
}

static int perf_map_add_cut(gp_perf_map_t *map, uint64_t lo, uint64_t hi, uint32_t piece)
{
    if (lo >= hi)
        return 0;
    if (gp_grow(&map->cuts, &map->cut_capacity, map->cut_count, sizeof(*map->cuts)) < 0)
        return -ENOMEM;
    map->cuts[map->cut_count++] = (struct gp_perf_cut){lo, hi, piece};
    return 0;
}

static int perf_map_compare_starts(const void *left, const void *right, void *pieces)
{
    const gp_perf_piece_t *all = pieces;
    uint64_t a = all[*(const uint32_t *)left].lo, b = all[*(const uint32_t *)right].lo;
    return a < b ? -1 : a > b;
}

// Emit what is open, the latest piece first, up to `upto`.
static int perf_map_advance(gp_perf_map_t *map, heap_t *open, uint64_t *position, uint64_t upto)
{
    int result = 0;
    while (open->count > 0 && *position < upto && result == 0) {
        const gp_perf_piece_t *top = &map->pieces[open->items[0]];
        uint64_t end = top->hi < upto ? top->hi : upto;
        result = perf_map_add_cut(map, *position, end, open->items[0]);
        if (*position < end)
            *position = end;
        if (top->hi <= upto)
            perf_map_heap_pop(open);
    }
    return result;
}

static int perf_map_make_cuts(gp_perf_map_t *map)
{
    uint32_t *order = gp_memory_had(malloc((map->count + 1) * sizeof(*order)));
    heap_t open = {gp_memory_had(malloc((map->count + 1) * sizeof(*open.items))), 0};
    int result = order != NULL && open.items != NULL ? 0 : -ENOMEM;
    uint64_t position = 0;
    map->cut_count = 0;
    for (size_t i = 0; i < map->count && result == 0; i++)
        order[i] = (uint32_t)i;
    if (result == 0)
        qsort_r(order, map->count, sizeof(*order), perf_map_compare_starts, map->pieces);
    for (size_t i = 0; i < map->count && result == 0; i++) {
        uint64_t lo = map->pieces[order[i]].lo;
        result = perf_map_advance(map, &open, &position, lo);
        if (position < lo)
            position = lo;
        perf_map_heap_push(&open, order[i]);
    }
    if (result == 0)
        result = perf_map_advance(map, &open, &position, UINT64_MAX);
    free(order);
    free(open.items);
    return result;
}

int gp_perf_map_parse(gp_perf_map_t *map, const char *text, size_t len, size_t *used)
{
    int result = perf_map_add_lines(map, text, len, used);
    return result == 0 ? perf_map_make_cuts(map) : result;
}

static uint64_t perf_map_nanoseconds(int64_t seconds, uint32_t nanoseconds)
{
    return (uint64_t)seconds * 1000000000u + nanoseconds;
}

static bool perf_map_is_believed(const gp_perf_map_t *map, const struct statx *status)
{
    bool has_birth = (status->stx_mask & STATX_BTIME) != 0;
    uid_t self = geteuid();
    return S_ISREG(status->stx_mode) && status->stx_size <= MAP_BYTES_MAX &&
           (self == 0 || status->stx_uid == self || status->stx_uid == 0) &&
           perf_map_nanoseconds(status->stx_mtime.tv_sec, status->stx_mtime.tv_nsec) >= map->from_ns &&
           (!has_birth || perf_map_nanoseconds(status->stx_btime.tv_sec, status->stx_btime.tv_nsec) <= map->to_ns);
}

static int perf_map_read_more(gp_perf_map_t *map, int fd)
{
    char *text = gp_memory_had(malloc(LINES_BYTES));
    int result = text ? 0 : -ENOMEM;
    ssize_t got;
    while (result == 0 && (got = pread(fd, text, LINES_BYTES, (off_t)map->read_len)) > 0) {
        size_t used = 0;
        result = perf_map_add_lines(map, text, (size_t)got, &used);
        if (used == 0 && got == LINES_BYTES)
            used = LINES_BYTES; // a line longer than any name: gone
        map->read_len += used;
        if (used == 0)
            break;
    }
    free(text);
    return result;
}

int gp_perf_map_update(gp_perf_map_t *map)
{
    struct statx status = {0};
    // O_NONBLOCK: it may be a FIFO by now.
    int fd = open(map->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    int result = fd >= 0 ? 0 : -errno;
    if (result == 0 && (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &status) < 0 ||
                        !perf_map_is_believed(map, &status)))
        result = -EPERM;
    uint64_t device = (uint64_t)status.stx_dev_major << 32 | status.stx_dev_minor;
    if (result < 0 || device != map->device || status.stx_ino != map->inode || status.stx_size < map->read_len)
        gp_perf_map_clear(map);
    if (result == 0 && status.stx_size > map->read_len) {
        size_t before = map->count;
        map->device = device;
        map->inode = status.stx_ino;
        result = perf_map_read_more(map, fd);
        if (result == 0 && map->count > before)
            result = perf_map_make_cuts(map);
    }
    if (fd >= 0)
        close(fd);
    return result;
}

gp_perf_piece_t *gp_perf_map_find(const gp_perf_map_t *map, uint64_t address)
{
    size_t lo = 0, hi = map->cut_count;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (map->cuts[middle].hi <= address)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo < map->cut_count && map->cuts[lo].lo <= address ? &map->pieces[map->cuts[lo].piece] : NULL;
}

void gp_perf_map_clear(gp_perf_map_t *map)
{
    const gp_perf_map_t empty = {.path = map->path, .from_ns = map->from_ns, .to_ns = map->to_ns};
    free(map->pieces);
    free(map->cuts);
    gp_arena_free(&map->texts);
    *map = empty;
}
