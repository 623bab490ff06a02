// SPDX-License-Identifier: MIT
#include "consumer/queue.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/futex.h"

int gp_queue_begin(gp_queue_t *queue, size_t size)
{
    size_t whole = 2 * (size_t)GP_PACKED_BYTES_MAX;
    while (whole < size)
        whole *= 2;
    while (whole & (whole - 1))
        whole += whole & -whole;
    // Not by malloc(): only what is used becomes resident.
    void *ring = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (ring == MAP_FAILED)
        return -ENOMEM;
    *queue = (gp_queue_t){.ring = ring, .size = whole};
    return 0;
}

void gp_queue_end(gp_queue_t *queue)
{
    munmap(queue->ring, queue->size);
    queue->ring = NULL;
}

void gp_queue_forget(gp_queue_t *queue)
{
    *queue = (gp_queue_t){.ring = queue->ring, .size = queue->size};
}

// Bytes at the end of the ring that a span of `bytes` bytes does not fit into: they are left out. All positions are
// multiples of 8, so there is room for the word that says so.
static size_t queue_gap_before(const gp_queue_t *queue, uint64_t at, size_t bytes)
{
    size_t left = queue->size - (at & (queue->size - 1));
    return left < bytes ? left : 0;
}

bool gp_queue_put(gp_queue_t *queue, const gp_packed_span_t *packed)
{
    uint64_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);
    size_t gap = queue_gap_before(queue, tail, packed->bytes);
    // Acquire: partner of the release in gp_queue_take(), which has read what is overwritten now.
    if (queue->size - (tail - atomic_load_explicit(&queue->head, memory_order_acquire)) < gap + packed->bytes)
        return false;
    uint8_t *at = queue->ring + (tail & (queue->size - 1));
    if (gap != 0)
        memset(at, 0, sizeof(uint32_t));
    memcpy(gap != 0 ? queue->ring : at, packed, packed->bytes);
    atomic_fetch_add_explicit(&queue->spans, 1, memory_order_seq_cst);
    // Release: partner of the acquire in gp_queue_next().
    atomic_store_explicit(&queue->tail, tail + gap + packed->bytes, memory_order_release);
    atomic_fetch_add_explicit(&queue->bell, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&queue->is_asleep, memory_order_seq_cst))
        gp_futex_wake_all(&queue->bell);
    return true;
}

uint64_t gp_queue_first(const gp_queue_t *queue)
{
    return atomic_load_explicit(&queue->head, memory_order_relaxed);
}

const gp_packed_span_t *gp_queue_next(const gp_queue_t *queue, uint64_t *at)
{
    if (*at == atomic_load_explicit(&queue->tail, memory_order_acquire))
        return NULL;
    const gp_packed_span_t *packed = (const void *)(queue->ring + (*at & (queue->size - 1)));
    if (packed->bytes == 0) {
        *at += queue->size - (*at & (queue->size - 1));
        packed = (const void *)queue->ring;
    }
    *at += packed->bytes;
    return packed;
}

void gp_queue_take(gp_queue_t *queue, uint64_t at, size_t spans)
{
    atomic_fetch_sub_explicit(&queue->spans, spans, memory_order_relaxed);
    atomic_store_explicit(&queue->head, at, memory_order_release);
}

uint32_t gp_queue_bell(const gp_queue_t *queue)
{
    return atomic_load_explicit(&queue->bell, memory_order_seq_cst);
}

// Sequentially consistent, as in gp_queue_put(): the putting side sees this one asleep, or this side sees the span.
void gp_queue_wait(gp_queue_t *queue, uint32_t bell, uint64_t limit_ns, bool until_filled)
{
    atomic_store_explicit(&queue->is_asleep, until_filled, memory_order_seq_cst);
    if (!until_filled || atomic_load_explicit(&queue->spans, memory_order_seq_cst) == 0)
        gp_futex_wait(&queue->bell, bell, limit_ns);
    atomic_store_explicit(&queue->is_asleep, false, memory_order_relaxed);
}

void gp_queue_ring(gp_queue_t *queue)
{
    atomic_fetch_add_explicit(&queue->bell, 1, memory_order_seq_cst);
    gp_futex_wake_all(&queue->bell);
}
