// SPDX-License-Identifier: MIT
#include "coro/threads.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/page.h"
#include "coro/exit_of_last_thread.h"
#include "coro/helper_memory.h"
#include "coro/main_stack.h"
#include "coro/otel_thread_context.h"
#include "coro/process_id.h"
#include "coro/registry.h"
#include "coro/thread_rings.h"
#include "signal/host_stack.h"
#include "signal/mask.h"
#include "signal/rest.h"
#include "signal/spare_stack.h"
#include "signal/ticks.h"
#include "unwind/memo.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

enum {
    HANDLER_STACK_BYTES = 32 << 10, // what the handler itself may use, generously
    FALLBACK_MINSIGSTKSZ = 8192,
    ENDED = 64,       // threads ended last: they are still there for a while
    WARM_BLOCKS = 16, // free ones with the memory of their rings, for programs that start threads all the time
};

const gp_thread_watch_t *_Atomic gp_thread_watch;
bool gp_threads_are_anothers;

static _Atomic pid_t ended[ENDED];
static _Atomic uint32_t ended_count;
static pthread_key_t exit_key;
static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;
static uint32_t last_index, slot_count;
// Any thread puts blocks in; one at a time, with the registry's lock, takes them out: so none is out and in again
// between two steps of that one.
static _Atomic(gp_thread_t *) free_blocks;
static _Atomic int free_count;

// The last thread goes on to be called as long as others' keys are, and then ends the process.
static void threads_on_thread_exit(void *value)
{
    static __thread int calls __attribute__((tls_model("initial-exec")));
    if (gp_process_is_left())
        return;
    gp_thread_detach();
    if (!gp_exit_of_last_thread_is_this())
        return;
    if (++calls >= PTHREAD_DESTRUCTOR_ITERATIONS)
        exit(0);
    pthread_setspecific(exit_key, value);
}

static void threads_make_exit_key(void)
{
    pthread_key_create(&exit_key, threads_on_thread_exit);
}

static size_t threads_signal_stack_bytes(void)
{
    size_t minimum = getauxval(AT_MINSIGSTKSZ);
    if (minimum < FALLBACK_MINSIGSTKSZ)
        minimum = FALLBACK_MINSIGSTKSZ;
    return gp_page_round_up(minimum + HANDLER_STACK_BYTES);
}

// [guard | alternate stack | guard | spare stack | block | ring]: what the kernel counts as four mappings, of which a
// process has some 65,000.
static gp_thread_t *threads_map_block(void)
{
    size_t block = (sizeof(gp_thread_t) + 4095) & ~(size_t)4095, stack = threads_signal_stack_bytes();
    size_t guard = gp_page_bytes();
    unsigned char *memory = gp_own_map(guard + stack + guard + GP_SPARE_STACK_BYTES + block + GP_RING_BYTES);
    if (memory == NULL)
        return NULL;
    unsigned char *alternate = memory + guard, *spare = alternate + stack + guard;
    mprotect(memory, guard, PROT_NONE);
    mprotect(spare - guard, guard, PROT_NONE);
    gp_thread_t *thread = (gp_thread_t *)(void *)(spare + GP_SPARE_STACK_BYTES);
    thread->alternate_stack.ss_sp = alternate;
    thread->alternate_stack.ss_size = stack;
    thread->spare_stack = spare + GP_SPARE_STACK_BYTES;
    thread->ring.data = thread->spare_stack + block;
    thread->ring.capacity = GP_RING_BYTES;
    return thread;
}

// Nothing but the list has the block any more.
static void threads_give_block(gp_thread_t *thread)
{
    // Records held up by one begun and never completed are lost with it.
    if (atomic_load_explicit(&free_count, memory_order_relaxed) >= WARM_BLOCKS || gp_ring_unread(&thread->ring) > 0)
        gp_thread_ring_give_back(thread);
    atomic_store_explicit(&thread->state, GP_THREAD_FREE, memory_order_relaxed);
    atomic_fetch_add_explicit(&free_count, 1, memory_order_relaxed);
    thread->next_free = atomic_load_explicit(&free_blocks, memory_order_relaxed);
    // Release: partner of the acquire in threads_take_block_locked().
    while (!atomic_compare_exchange_weak_explicit(&free_blocks, &thread->next_free, thread, memory_order_release,
                                                  memory_order_relaxed))
        ;
}

static gp_thread_t *threads_take_block_locked(void)
{
    gp_thread_t *thread = atomic_load_explicit(&free_blocks, memory_order_acquire);
    while (thread != NULL && !atomic_compare_exchange_weak_explicit(&free_blocks, &thread, thread->next_free,
                                                                    memory_order_acquire, memory_order_acquire))
        ;
    if (thread != NULL) {
        atomic_fetch_sub_explicit(&free_count, 1, memory_order_relaxed);
        return thread;
    }
    thread = slot_count < GP_THREADS_MAX ? threads_map_block() : NULL;
    if (thread == NULL)
        return NULL;
    thread->slot = slot_count++;
    gp_thread_ring_make(thread);
    thread->next = atomic_load_explicit(&gp_thread_list, memory_order_relaxed);
    // Release: partner of the acquires of the list's readers.
    atomic_store_explicit(&gp_thread_list, thread, memory_order_release);
    atomic_store_explicit(&gp_thread_blocks[thread->slot], thread, memory_order_release);
    return thread;
}

static void threads_reset_block(gp_thread_t *thread, prof_coro_t *root)
{
    thread->root = root;
    atomic_store_explicit(&gp_coro_rare(root)->thread, thread, memory_order_release);
    thread->root_id = root->id;
    atomic_store_explicit(&thread->current, root, memory_order_relaxed);
    atomic_store_explicit(&thread->current_id, root->id, memory_order_relaxed);
    atomic_store_explicit(&thread->in_handler, false, memory_order_relaxed);
    atomic_store_explicit(&thread->busy, false, memory_order_relaxed);
    atomic_store_explicit(&thread->unknown_sp, 0, memory_order_relaxed);
    gp_host_stack_is_set(thread, false);
    thread->shown_at = NULL;
    thread->adopted = thread->keyed = false;
    thread->epoch = 0;
    thread->timer.armed = thread->timer.refused = false;
    thread->start_ticks = gp_ticks();
    thread->end_ticks = 0;
    thread->generation++;
    memset(thread->name, 0, sizeof(thread->name));
    thread->ended.coro = NULL;
    gp_thread_hogs_reset(&thread->hog);
    gp_thread_loop_reset(&thread->loop);
    gp_thread_cpu_reset(&thread->cpu);
    gp_thread_language_reset(&thread->language);
    gp_thread_exact_reset(&thread->exact);
    gp_thread_gil_reset(&thread->gil);
    atomic_store_explicit(&thread->exact_ready, NULL, memory_order_relaxed);
    thread->look = (gp_thread_look_t){0};
    thread->off = (gp_thread_off_t){0};
    gp_thread_recorded_reset(&thread->session);
}

static gp_thread_t *threads_new_block(pid_t tid, uintptr_t lo, uintptr_t hi, bool is_guess,
                                      bool (*is_unwanted)(pid_t tid))
{
    gp_coro_birth_t birth = {.lo = lo, .hi = hi, .kind = GP_CORO_THREAD, .keeps_stack = !is_guess};
    prof_coro_t *root = gp_coro_new(&birth);
    if (root == NULL)
        return NULL;
    gp_lock(&gp_registry_lock);
    // The thread itself and the collector may meet here: the second finds the first one's block.
    gp_thread_t *thread = gp_thread_find(tid), *known = thread;
    if (thread == NULL && (is_unwanted == NULL || !is_unwanted(tid))) // it may have begun and ended since it was asked
        thread = threads_take_block_locked();
    if (thread != NULL && thread != known) {
        threads_reset_block(thread, root);
        thread->index = ++last_index;
        gp_thread_set_tid(thread, tid);
        gp_thread_ring_begin(thread);
        // Partner of the acquire in gp_thread_find(), and of gp_ready_threads_look_at_all(): either the latter sees the
        // thread, or we see its request.
        atomic_store(&thread->state, GP_THREAD_LIVE);
        if (atomic_load(&gp_thread_notifies_birth))
            gp_thread_notify_at_once(thread);
    }
    gp_unlock(&gp_registry_lock);
    if (thread == NULL || thread == known)
        gp_coro_retire(root);
    return thread;
}

static void threads_announce(gp_thread_t *thread)
{
    const gp_thread_watch_t *watch = atomic_load_explicit(&gp_thread_watch, memory_order_acquire);
    if (watch != NULL)
        watch->attached(thread);
}

// Make the calling thread the owner of `thread`: pointer, alternate stack, end of life.
static void threads_settle_in(gp_thread_t *thread)
{
    stack_t old;
    if (gp_host_stack_change(NULL, &old) == 0 && (old.ss_flags & SS_DISABLE))
        gp_host_stack_change(&thread->alternate_stack, NULL);
    thread->adopted = true;
    gp_thread_self = thread;
    pthread_once(&exit_key_once, threads_make_exit_key);
    pthread_setspecific(exit_key, thread);
    if (!thread->keyed)
        gp_exit_of_last_thread_begins();
    thread->keyed = true;
}

// The thread that prepared the block could not ask where this stack is: nothing is known of it, or a guess.
static void threads_set_own_stack(prof_coro_t *root)
{
    uintptr_t lo, hi;
    if (root->keeps_stack)
        return;
    gp_thread_own_stack(&lo, &hi);
    atomic_store_explicit(&root->lo, lo, memory_order_relaxed);
    atomic_store_explicit(&root->hi, hi, memory_order_relaxed);
    root->keeps_stack = hi != 0;
}

static gp_thread_t *threads_attach(void)
{
    gp_thread_t *thread;
    pid_t tid = (pid_t)syscall(SYS_gettid);
    if (gp_thread_is_own(tid))
        return NULL;
    thread = gp_thread_find(tid);
    if (thread != NULL) { // prepared by the sampler
        threads_set_own_stack(thread->root);
        threads_settle_in(thread);
        return thread;
    }
    uintptr_t lo, hi;
    gp_thread_own_stack(&lo, &hi);
    thread = threads_new_block(tid, lo, hi, false, NULL);
    if (thread == NULL)
        return NULL;
    threads_set_own_stack(thread->root); // the sampler may have been first
    threads_settle_in(thread);
    threads_announce(thread);
    return thread;
}

gp_thread_t *gp_thread_attach(void)
{
    gp_thread_t *thread = gp_thread_self;
    if (__builtin_expect(thread != NULL && thread->keyed, 1))
        return thread;
    if (gp_threads_are_anothers || gp_process_is_left())
        return NULL;
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); // locks are taken
    if (thread == NULL) {
        thread = threads_attach();
    } else { // the handler has adopted it; what only the thread itself can do remains
        threads_set_own_stack(thread->root);
        threads_settle_in(thread);
    }
    pthread_setcancelstate(cancel, NULL);
    return thread;
}

gp_thread_t *gp_thread_prepare(pid_t tid, bool (*is_unwanted)(pid_t tid))
{
    gp_thread_t *thread = gp_thread_find(tid);
    if (thread != NULL || (is_unwanted != NULL && is_unwanted(tid)))
        return thread;
    uintptr_t lo = 0, hi = 0;
    bool is_own = tid == (pid_t)syscall(SYS_gettid);
    if (is_own)
        gp_thread_own_stack(&lo, &hi);
    else if (tid == getpid())
        gp_main_stack(&lo, &hi);
    // Bounds of other threads' stacks are guessed when the stack pointer is first seen.
    return threads_new_block(tid, lo, hi, !is_own, is_unwanted);
}

bool gp_thread_has_ended(pid_t tid)
{
    for (int i = 0; i < ENDED; i++)
        if (atomic_load_explicit(&ended[i], memory_order_acquire) == tid)
            return true;
    return false;
}

static void threads_note_end(pid_t tid)
{
    uint32_t at = atomic_fetch_add_explicit(&ended_count, 1, memory_order_relaxed) % ENDED;
    // Release: partner of the acquire in gp_thread_has_ended(). Before the block is given away: one of both is seen.
    atomic_store_explicit(&ended[at], tid, memory_order_release);
}

void gp_thread_detach(void)
{
    gp_thread_t *thread = gp_thread_self;
    if (thread == NULL)
        return;
    const gp_thread_watch_t *watch = atomic_load_explicit(&gp_thread_watch, memory_order_acquire);
    if (watch != NULL)
        watch->exiting(thread);
    stack_t now, off = {.ss_flags = SS_DISABLE};
    if (gp_host_stack_change(NULL, &now) == 0 && now.ss_sp == thread->alternate_stack.ss_sp)
        gp_host_stack_change(&off, NULL);
    gp_memo_forget_own();
    gp_otel_thread_end_thread(thread);
    gp_thread_self = NULL;
    if (thread->keyed)
        gp_exit_of_last_thread_ends();
    thread->end_ticks = gp_ticks();
    atomic_store_explicit(&thread->cpu.final_ns, gp_clock_ns(CLOCK_THREAD_CPUTIME_ID), memory_order_relaxed);
    prof_coro_t *root = thread->root;
    threads_note_end((pid_t)syscall(SYS_gettid));
    // The block may be reused from here on. The root goes after it: the collector still reads it through the block.
    if (prof_coro_active || gp_rest_is_now() || gp_ring_unread(&thread->ring) > 0) {
        // Release: partner of the acquire in the collector, which drains the ring one last time.
        atomic_store_explicit(&thread->state, GP_THREAD_EXITED, memory_order_release);
        gp_thread_notify(thread);
    } else {
        gp_lock(&gp_registry_lock);
        threads_give_block(thread);
        gp_unlock(&gp_registry_lock);
    }
    gp_coro_retire(root);
}

void gp_thread_leave(void)
{
    sigset_t mask;
    gp_mask_change(SIG_BLOCK, NULL, &mask);
    gp_thread_detach(); // blocks the sampling signal
    gp_process_leave_thread();
    uint64_t believed;
    memcpy(&believed, &mask, sizeof(believed));
    believed |= gp_mask_believed; // blocked, as the program believes
    memcpy(&mask, &believed, sizeof(believed));
    gp_mask_change(SIG_SETMASK, &mask, NULL);
}

void gp_thread_recycle(gp_thread_t *thread)
{
    gp_lock(&gp_registry_lock);
    threads_give_block(thread);
    gp_unlock(&gp_registry_lock);
}

void gp_thread_after_fork(void)
{
    gp_thread_t *self = gp_thread_self;
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_relaxed);
    gp_thread_rings_after_fork();
    atomic_store_explicit(&free_blocks, NULL, memory_order_relaxed);
    atomic_store_explicit(&free_count, 0, memory_order_relaxed);
    for (; thread != NULL; thread = thread->next) {
        atomic_store_explicit(&thread->has_news, false, memory_order_relaxed);
        atomic_store_explicit(&gp_thread_notified[thread->slot / 64], 0, memory_order_relaxed);
        memset(thread->counters, 0, sizeof(thread->counters));
        if (thread != self)
            threads_give_block(thread);
    }
    gp_memo_forget_others();
    gp_exit_of_last_thread_after_fork(self != NULL && self->keyed);
    if (self == NULL)
        return;
    if (gp_ring_fill(&self->ring) > 0)
        gp_thread_ring_give_back(self);
    gp_thread_set_tid(self, (pid_t)syscall(SYS_gettid));
}
