// SPDX-License-Identifier: MIT
#include "wire/nonces.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "base/index.h"

enum { SLOTS = 1 << 16, CLAIMS_MAX = 64 };

// A slot, for which no process waits for another, stopped or killed at any point: it is claimed by its time, then says
// whose it is, and then the claimer looks for another slot that says the same. When two take one nonce at a time, at
// least one sees the other, as these are sequentially consistent. A killed process leaves a slot too many.
typedef struct slot {
    _Atomic uint64_t time_ms; // of the context; 0 = it was never used
    _Atomic uint64_t tag;     // of the nonce
} slot_t;

typedef struct table {
    _Atomic uint64_t forgotten_ms; // the latest time of a context that another one has the slot of
    slot_t slots[SLOTS];           // 1 MiB, of which only what is used is ever touched
} table_t;

static table_t *table;

static void nonces_prepare(void)
{
    table_t *room = mmap(NULL, sizeof(*room), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    table = room != MAP_FAILED ? room : NULL;
}

int gp_nonces_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, nonces_prepare);
    return table != NULL ? 0 : -ENOMEM;
}

// Also one that is no longer good, as the clock may have been set back since.
static bool nonces_is_taken(uint64_t start, uint64_t tag, const slot_t *but)
{
    for (size_t i = 0; i < GP_NONCE_PLACES; i++) {
        slot_t *slot = &table->slots[(start + i) % SLOTS];
        if (slot != but && atomic_load(&slot->tag) == tag)
            return true;
    }
    return false;
}

// The one that has been free for longest. NULL = none is free.
static slot_t *nonces_find_free(uint64_t start, uint64_t now_ms, uint64_t *before_ms)
{
    slot_t *found = NULL;
    for (size_t i = 0; i < GP_NONCE_PLACES; i++) {
        slot_t *slot = &table->slots[(start + i) % SLOTS];
        uint64_t time_ms = atomic_load(&slot->time_ms);
        if (time_ms + GP_CONTEXT_AGE_MS >= now_ms || (found != NULL && time_ms >= *before_ms))
            continue;
        found = slot;
        *before_ms = time_ms;
    }
    return found;
}

static slot_t *nonces_claim(uint64_t start, uint64_t time_ms, uint64_t now_ms)
{
    for (int i = 0; i < CLAIMS_MAX; i++) {
        uint64_t before_ms = 0, forgotten_ms = atomic_load(&table->forgotten_ms);
        slot_t *slot = nonces_find_free(start, now_ms, &before_ms);
        if (slot == NULL)
            return NULL;
        while (forgotten_ms < before_ms &&
               !atomic_compare_exchange_weak(&table->forgotten_ms, &forgotten_ms, before_ms))
            ;
        if (atomic_compare_exchange_strong(&slot->time_ms, &before_ms, time_ms))
            return slot;
    }
    return NULL;
}

int gp_nonce_take(const uint8_t nonce[GP_NONCE_BYTES], uint64_t time_ms, uint64_t now_ms)
{
    uint64_t start, tag;
    if (table == NULL)
        return -ENOSPC;
    memcpy(&start, nonce, sizeof(start)); // a signer may choose it: at worst, there is no room
    memcpy(&tag, nonce + sizeof(start), sizeof(tag));
    tag ^= gp_hash_u64(start);
    tag += tag == 0; // that is nobody's
    if (nonces_is_taken(start, tag, NULL))
        return -EALREADY;
    // Where the clock was set back: it may have been seen, and forgotten.
    if (time_ms <= atomic_load(&table->forgotten_ms))
        return -ETIME;
    slot_t *slot = nonces_claim(start, time_ms, now_ms);
    if (slot == NULL)
        return -ENOSPC;
    atomic_store(&slot->tag, tag);
    return nonces_is_taken(start, tag, slot) ? -EALREADY : 0;
}
