// SPDX-License-Identifier: MIT
#include "wire/nonces.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

enum { SLOTS = 1 << 16 };

typedef struct slot {
    uint8_t nonce[GP_NONCE_BYTES];
    uint64_t until_ms; // after that it is free
} slot_t;

typedef struct table {
    pthread_mutex_t lock; // of all processes that share it; robust: one may be killed amid it
    slot_t slots[SLOTS];  // 1.5 MiB, of which only what is used is ever touched
} table_t;

static table_t *table;

static void prepare(void)
{
    table_t *room = mmap(NULL, sizeof(*room), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;
    if (room == MAP_FAILED)
        return;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&room->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    table = room;
}

int gp_nonces_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    return table != NULL ? 0 : -ENOMEM;
}

static int take(const uint8_t nonce[GP_NONCE_BYTES], uint64_t time_ms, uint64_t now_ms)
{
    uint64_t start;
    slot_t *room = NULL;
    memcpy(&start, nonce, sizeof(start)); // a signer may choose it: at worst, there is no room
    for (size_t i = 0; i < GP_NONCE_PLACES; i++) {
        slot_t *slot = &table->slots[(start + i) % SLOTS];
        if (slot->until_ms != 0 && memcmp(slot->nonce, nonce, GP_NONCE_BYTES) == 0)
            return -EALREADY;
        if (slot->until_ms < now_ms && room == NULL)
            room = slot;
    }
    if (room == NULL)
        return -ENOSPC;
    // In this order: what is cut off between the two by a kill is a nonce too many, or one that was there.
    memcpy(room->nonce, nonce, GP_NONCE_BYTES);
    room->until_ms = time_ms + GP_CONTEXT_AGE_MS;
    return 0;
}

int gp_nonce_take(const uint8_t nonce[GP_NONCE_BYTES], uint64_t time_ms, uint64_t now_ms)
{
    if (table == NULL)
        return -ENOSPC;
    if (pthread_mutex_lock(&table->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&table->lock);
    int error = take(nonce, time_ms, now_ms);
    pthread_mutex_unlock(&table->lock);
    return error;
}
