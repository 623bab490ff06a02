// SPDX-License-Identifier: MIT
#include "coroutine.h"

#include <sys/mman.h>
#include <unistd.h>

// SQLite wants some 50 KiB; pages that are never touched cost nothing.
enum {
    STACK_BYTES = 256 * 1024,
    IDLE_STACKS_MAX = 256,
};

static _Thread_local struct {
    ucontext_t home; // the thread's own stack, while a coroutine runs
    coroutine_t *running;
    coroutine_t *idle;
    size_t idle_count;
} self;

static size_t guard_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

// One mapping holds, from low to high: guard page, stack, the coroutine's record.
static void *mapping_of(coroutine_t *co)
{
    return (char *)(co + 1) - STACK_BYTES;
}

static coroutine_t *map_stack(void)
{
    char *low =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (low == MAP_FAILED)
        return NULL;
    if (mprotect(low, guard_bytes(), PROT_NONE) != 0) {
        munmap(low, STACK_BYTES);
        return NULL;
    }
    return (coroutine_t *)(void *)(low + STACK_BYTES) - 1;
}

static coroutine_t *take_stack(void)
{
    coroutine_t *co = self.idle;
    if (co == NULL)
        return map_stack();
    self.idle = co->next;
    self.idle_count--;
    return co;
}

static void coroutine_main(void)
{
    coroutine_t *co = self.running;
    co->record = prof_coro_current();
    co->run(co->arg);
    co->finished = true;
    setcontext(&self.home);
}

// Apart from coroutine_create(), so that no variable lives across getcontext(), which may return twice.
__attribute__((noinline)) static void make_context(coroutine_t *co)
{
    getcontext(&co->context);
    char *low = (char *)mapping_of(co) + guard_bytes();
    co->context.uc_stack.ss_sp = low;
    co->context.uc_stack.ss_size = (size_t)((char *)co - low);
    makecontext(&co->context, coroutine_main, 0);
}

coroutine_t *coroutine_create(coroutine_fn fn, void *arg)
{
    coroutine_t *co = take_stack();
    if (co == NULL)
        return NULL;
    *co = (coroutine_t){.run = fn, .arg = arg, .wait.fd = -1};
    make_context(co);
    return co;
}

void coroutine_resume(coroutine_t *co)
{
    self.running = co;
    swapcontext(&self.home, &co->context);
    self.running = NULL;
}

void coroutine_suspend(void)
{
    swapcontext(&self.running->context, &self.home);
}

coroutine_t *coroutine_self(void)
{
    return self.running;
}

void coroutine_recycle(coroutine_t *co)
{
    if (self.idle_count == IDLE_STACKS_MAX) {
        munmap(mapping_of(co), STACK_BYTES);
        return;
    }
    co->next = self.idle;
    self.idle = co;
    self.idle_count++;
}

void coroutine_pool_free(void)
{
    while (self.idle != NULL)
        munmap(mapping_of(take_stack()), STACK_BYTES);
}
