// SPDX-License-Identifier: MIT
#include "exact/exact_memory.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "coro/helper_memory.h"

enum {
    CLASS_MIN = 8, // 256 bytes
    CLASSES = 40,
    SLAB_BYTES = 256 << 10,
    MASK_BYTES = 8, // of the kernel's signal set
};

typedef struct block {
    struct block *next;
} block_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block_t *free_blocks[CLASSES];
static unsigned char *slab;
static size_t slab_left;

// The system call itself: a host may interpose pthread_sigmask().
void gp_exact_lock(gp_exact_guard_t *guard)
{
    uint64_t all = UINT64_MAX;
    guard->saved_errno = errno;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &guard->mask, MASK_BYTES);
    pthread_mutex_lock(&lock);
}

void gp_exact_unlock(const gp_exact_guard_t *guard)
{
    pthread_mutex_unlock(&lock);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &guard->mask, NULL, MASK_BYTES);
    errno = guard->saved_errno;
}

static unsigned exact_memory_class_of(size_t bytes)
{
    unsigned class = CLASS_MIN;
    while (((size_t)1 << class) < bytes)
        class ++;
    return class;
}

static void *exact_memory_cut(size_t bytes)
{
    if (bytes > SLAB_BYTES / 4)
        return gp_own_map(bytes);
    if (slab_left < bytes) {
        // The rest of the old slab is lost: less than a quarter of it.
        slab = gp_own_map(SLAB_BYTES);
        slab_left = slab != NULL ? SLAB_BYTES : 0;
    }
    if (slab_left < bytes)
        return NULL;
    void *block = slab;
    slab += bytes;
    slab_left -= bytes;
    return block;
}

void *gp_exact_alloc(size_t bytes)
{
    unsigned class = exact_memory_class_of(bytes);
    block_t *block = free_blocks[class];
    if (block == NULL)
        return exact_memory_cut((size_t)1 << class);
    free_blocks[class] = block->next;
    return memset(block, 0, bytes);
}

void gp_exact_release(void *block, size_t bytes)
{
    if (block == NULL)
        return;
    unsigned class = exact_memory_class_of(bytes);
    ((block_t *)block)->next = free_blocks[class];
    free_blocks[class] = block;
}
