// SPDX-License-Identifier: MIT
#include "symbolizer_cache.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "interface.h"

enum {
    NICE = 10,
    LOOK_MS = 25,       // at what samples have reached
    LOOKS = 80,         // then the thread ends
    REST_MIN_MS = 1000, // before a profile that begins has it look again; twice as long each time
    REST_MAX_MS = 64000,
    TURNS = 2, // dumps at once
    PATIENCE_S = 1,
};

static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static gp_dump_names_t *current_names;
static sem_t turns;
static _Atomic int in_turn; // that have or wait for one

static _Atomic bool is_preparing;
static _Atomic uint64_t look_again_ms; // not before
static _Atomic uint32_t rest_ms;

static void symbolizer_cache_start_anew(void)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    names_lock = fresh;
    current_names = NULL;
    sem_init(&turns, 0, TURNS);
    atomic_store_explicit(&in_turn, 0, memory_order_relaxed);
    atomic_store_explicit(&look_again_ms, 0, memory_order_relaxed);
    atomic_store_explicit(&rest_ms, REST_MIN_MS, memory_order_relaxed);
    atomic_store_explicit(&is_preparing, false, memory_order_release);
}

// In a child of fork() the locks may be held by threads that do not exist there.
static void symbolizer_cache_begin_once(void)
{
    symbolizer_cache_start_anew();
    pthread_atfork(NULL, NULL, symbolizer_cache_start_anew);
}

static void symbolizer_cache_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, symbolizer_cache_begin_once);
}

static gp_dump_names_t *symbolizer_cache_make_names(void)
{
    gp_dump_names_t *names = calloc(1, sizeof(*names));
    if (names != NULL)
        names->symbolizer = gp_symbolizer_create();
    if (names != NULL && names->symbolizer == NULL) {
        free(names);
        return NULL;
    }
    if (names != NULL)
        gp_symbolizer_own_perf_map(names->symbolizer);
    return names;
}

gp_dump_names_t *gp_dump_names_take(void)
{
    symbolizer_cache_begin();
    pthread_mutex_lock(&names_lock);
    if (current_names == NULL)
        current_names = symbolizer_cache_make_names();
    gp_dump_names_t *names = current_names;
    if (names != NULL)
        names->users++;
    pthread_mutex_unlock(&names_lock);
    return names;
}

// A symbolizer that has grown too large is freed by its last user; later dumps get another.
void gp_dump_names_give_back(gp_dump_names_t *names)
{
    pthread_mutex_lock(&names_lock);
    if (names == current_names && gp_symbolizer_is_crowded(names->symbolizer))
        current_names = NULL;
    bool is_last = --names->users == 0 && names != current_names;
    pthread_mutex_unlock(&names_lock);
    if (!is_last)
        return;
    gp_symbolizer_destroy(names->symbolizer);
    free(names);
}

gp_dump_turn_t gp_dump_turn_take(void)
{
    symbolizer_cache_begin();
    struct timespec until;
    gp_dump_turn_t turn = {.waited = atomic_fetch_add_explicit(&in_turn, 1, memory_order_relaxed) >= TURNS};
    int result = sem_trywait(&turns);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    while (result < 0 && (result = sem_timedwait(&turns, &until)) < 0 && errno == EINTR)
        ;
    turn.has_place = result == 0;
    return turn;
}

void gp_dump_turn_give_back(gp_dump_turn_t turn)
{
    atomic_fetch_sub_explicit(&in_turn, 1, memory_order_relaxed);
    if (turn.has_place)
        sem_post(&turns);
}

void gp_dump_give_way(void)
{
    setpriority(PRIO_PROCESS, 0, NICE); // of the calling thread: Linux has a priority for each
}

// Modules are by id.
static uint32_t symbolizer_cache_number_of(const gp_snapshot_t *snapshot, const uint32_t *numbers, uint32_t id)
{
    uint32_t lo = 0, hi = snapshot->module_count;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (snapshot->modules[mid].id == id)
            return numbers[mid];
        if (snapshot->modules[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return GP_SYMBOLIZER_NO_MODULE;
}

// Read what is not there yet: of modules their tables, then of compilation units what the latest locations need.
//   numbers: uint32_t[module_count], the symbolizer's, to be set
static void symbolizer_cache_prepare_for(const gp_snapshot_t *snapshot, gp_symbolizer_t *symbolizer, uint32_t *numbers)
{
    const gp_core_interface_t *core = prof_core_interface();
    for (uint32_t i = 0; i < snapshot->module_count && core->threads->may_stay(); i++) {
        const gp_module_info_t *module = &snapshot->modules[i];
        numbers[i] = gp_symbolizer_module(symbolizer, module->path, strlen(module->path), module->build_id,
                                          module->build_id_len);
        gp_symbolizer_prepare(symbolizer, numbers[i]);
    }
    for (uint32_t i = 0; i < snapshot->node_count && core->threads->may_stay(); i++) {
        gp_loc_t loc = snapshot->nodes[i].loc;
        uint32_t number = symbolizer_cache_number_of(snapshot, numbers, GP_LOC_MODULE(loc));
        if (gp_symbolizer_is_prepared(symbolizer, number))
            gp_symbolizer_resolve(symbolizer, number, GP_LOC_OFFSET(loc));
    }
}

// Look up the places of the samples after the first `since`.
static void symbolizer_cache_prepare(uint32_t since)
{
    gp_snapshot_t *snapshot = prof_core_interface()->profiles->latest(since);
    gp_dump_names_t *names = snapshot != NULL ? gp_dump_names_take() : NULL;
    uint32_t *numbers = names != NULL ? calloc(snapshot->module_count + 1, sizeof(*numbers)) : NULL;
    if (numbers != NULL)
        symbolizer_cache_prepare_for(snapshot, names->symbolizer, numbers);
    if (names != NULL)
        gp_dump_names_give_back(names);
    free(numbers);
    prof_core_interface()->profiles->release(snapshot);
}

// Code is reached little by little, and modules are loaded later: it looks for a while.
static void *symbolizer_cache_prepare_all(void *unused)
{
    const gp_core_interface_t *core = prof_core_interface();
    uint32_t prepared = 0;
    gp_dump_give_way();
    for (int look = 0; look < LOOKS && core->threads->may_stay(); look++) {
        uint32_t looked_up = core->profiles->looked_up();
        if (looked_up != prepared)
            symbolizer_cache_prepare(prepared);
        prepared = looked_up;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
    // Release: partner of the acquire in symbolizer_cache_begun().
    atomic_store_explicit(&is_preparing, false, memory_order_release);
    return unused;
}

static uint64_t symbolizer_cache_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

// fork() does not wait for the locks of AddressSanitizer's allocator (gcc 12, clang 14): where a program of one thread
// forks while this thread allocates, the child hangs at its first malloc().
extern void __asan_init(void) __attribute__((weak));

// A profile has begun.
static void symbolizer_cache_begun(void)
{
    pthread_t thread;
    uint64_t now = symbolizer_cache_now_ms();
    if (now < atomic_load_explicit(&look_again_ms, memory_order_relaxed) ||
        atomic_exchange_explicit(&is_preparing, true, memory_order_acquire))
        return;
    uint32_t rest = atomic_load_explicit(&rest_ms, memory_order_relaxed);
    atomic_store_explicit(&look_again_ms, now + rest, memory_order_relaxed);
    atomic_store_explicit(&rest_ms, rest < REST_MAX_MS ? 2 * rest : REST_MAX_MS, memory_order_relaxed);
    if (prof_core_interface()->threads->start(symbolizer_cache_prepare_all, NULL, &thread) == 0)
        pthread_detach(thread);
    else
        atomic_store_explicit(&is_preparing, false, memory_order_release);
}

__attribute__((constructor)) static void symbolizer_cache_watch_profiles(void)
{
    const gp_core_interface_t *core = prof_core_interface();
    symbolizer_cache_begin();
    if (core->size >= sizeof(*core) && core->profiles->on_begin != NULL && __asan_init == NULL)
        core->profiles->on_begin(symbolizer_cache_begun);
}
