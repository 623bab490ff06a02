// SPDX-License-Identifier: MIT
// Random call trees on coroutines, with the truth about them (truth.h). Built as C (with longjmp) and as C++ (with
// exceptions), with the compiler's hooks (-finstrument-functions) and with prof_enter() and prof_exit() (-DBY_HAND).
//
//   calls mix SEED       coroutines in one thread that spawn others, are abandoned half-way, start and stop profiles of
//                        every scope wherever they are, and jump out of calls
//   calls crowd N SEED   N coroutines on four threads, migrating, each with a profile of its own, one of the process
//   over all calls deep SEED      one coroutine, deep recursion, a switch at every level calls run SEED       like mix,
//   without a profile of its own: for `greenprof run --exact`
//
// Writes truth.json and *.prof into the current directory.
#include <pthread.h>
#include <setjmp.h>
#include <string.h>
#include <ucontext.h>

#include <greenprof/exact.h>
#include <greenprof/prof.h>

#include "calls.h"

enum { STACK_BYTES = 256 << 10, COROS_MAX = 64, PROFILES_TOTAL = 24, SPAWNS_TOTAL = 60, LEVEL_MAX = 12 };

typedef struct profile {
    prof_t *prof;
    truth_table_t *table;
    prof_scope_t scope;
    int number;
} profile_t;

FILE *truth_file;
static bool mixed; // actions of the mixed scenario
static coro_t *coros[COROS_MAX];
static profile_t profiles[TABLES_MAX];
static int started, spawned;
static ucontext_t scheduler;

typedef void function_t(coro_t *self, int level);
extern function_t *const functions[];

PLAIN static unsigned draw(coro_t *self, unsigned limit)
{
    self->random = self->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(self->random >> 33) % limit;
}

PLAIN void yield(coro_t *self)
{
    swapcontext(&self->context, self->back);
}

// --- Calls that are jumped out of.

#ifdef __cplusplus
PLAIN __attribute__((noinline)) static void call_and_catch(coro_t *self, int level)
{
    int depth = self->truth.depth;
    self->catch_count++;
    try {
        functions[draw(self, 16)](self, level + 1);
    } catch (int) {
        truth_leave(&self->truth, depth);
    }
    self->catch_count--;
}

PLAIN static void jump_out(coro_t *self)
{
    if (self->catch_count > self->catch_floor)
        throw 1;
}
#else
PLAIN __attribute__((noinline)) static void call_and_catch(coro_t *self, int level)
{
    jmp_buf catcher;
    int depth = self->truth.depth;
    if (self->catch_count == CATCHES_MAX)
        return;
    self->catches[self->catch_count++] = &catcher;
    if (setjmp(catcher) == 0)
        functions[draw(self, 16)](self, level + 1);
    else
        truth_leave(&self->truth, depth);
    self->catch_count--;
}

PLAIN static void jump_out(coro_t *self)
{
    // Not always to the nearest one.
    if (self->catch_count > self->catch_floor) {
        self->catch_count -= (int)draw(self, (unsigned)(self->catch_count - self->catch_floor));
        longjmp(*self->catches[self->catch_count - 1], 1);
    }
}
#endif

// --- Profiles of the mixed scenario.

PLAIN static void start_profile(coro_t *self)
{
    int slot = (int)draw(self, TABLES_MAX);
    profile_t *profile = &profiles[slot];
    if (profile->prof != NULL || started == PROFILES_TOTAL)
        return;
    prof_options_t options = PROF_OPTIONS_INIT;
    options.mode = PROF_MODE_EXACT;
    options.scope = profile->scope = (prof_scope_t)draw(self, 3);
    options.clock = draw(self, 2) ? PROF_CLOCK_CPU : PROF_CLOCK_WALL;
    profile->table = (truth_table_t *)calloc(1, sizeof(truth_table_t));
    profile->number = started++;
    profile->prof = prof_start(&options);
    if (profile->prof == NULL)
        abort();
    for (int i = 0; i < COROS_MAX; i++)
        if (coros[i] != NULL && (coros[i] == self || profile->scope != PROF_SCOPE_REQUEST))
            truth_cover(&coros[i]->truth, slot, profile->table);
}

PLAIN static void uncover(int slot)
{
    for (int i = 0; i < COROS_MAX; i++)
        if (coros[i] != NULL)
            coros[i]->truth.tables[slot] = NULL;
}

PLAIN static void finish_profile(int slot)
{
    profile_t *profile = &profiles[slot];
    char name[64];
    if (profile->prof == NULL)
        return;
    prof_stop(profile->prof);
    uncover(slot);
    snprintf(name, sizeof(name), "%d.prof", profile->number);
    if (prof_dump_stats(profile->prof, name) != 0)
        abort();
    truth_print(truth_file, name, profile->table);
    prof_free(profile->prof);
    free(profile->table);
    profile->prof = NULL;
}

// Stop for a moment, with calls that are not seen.
PLAIN static void pause_profile(coro_t *self, int level)
{
    int slot = (int)draw(self, TABLES_MAX);
    profile_t *profile = &profiles[slot];
    if (profile->prof == NULL || profile->scope == PROF_SCOPE_REQUEST || self->calls_left < 10)
        return;
    prof_t *prof = profile->prof;
    profile->prof = NULL; // no other thread finds it
    prof_stop(prof);
    uncover(slot);
    int calls_left = self->calls_left, catch_floor = self->catch_floor;
    self->calls_left = 5;
    self->catch_floor = self->catch_count;
    self->pinned = true;
    mixed = false;
    functions[draw(self, 16)](self, level + 1);
    self->calls_left = calls_left;
    self->catch_floor = catch_floor;
    self->pinned = false;
    mixed = true;
    if (prof_resume(prof) != 0)
        abort();
    profile->prof = prof;
    for (int i = 0; i < COROS_MAX; i++)
        if (coros[i] != NULL)
            truth_cover(&coros[i]->truth, slot, profile->table);
}

static coro_t *spawn(coro_t *spawner, uint64_t seed, int calls);

// The body of a function: calls others, switches, jumps out.
PLAIN static void act(coro_t *self, int level)
{
    unsigned many = 1 + draw(self, 4);
    for (unsigned i = 0; i < many && self->calls_left > 0; i++) {
        unsigned what = draw(self, 100);
        if (what < 12)
            yield(self);
        else if (what < 18 && mixed)
            start_profile(self);
        else if (what < 22 && mixed)
            finish_profile((int)draw(self, TABLES_MAX));
        else if (what < 25 && mixed)
            pause_profile(self, level);
        else if (what < 28 && mixed)
            spawn(self, self->random, 200);
        else if (what < 34)
            jump_out(self);
        else if (level < self->level_max && what < 45)
            call_and_catch(self, level);
        else if (level < self->level_max)
            functions[draw(self, 16)](self, level + 1);
    }
}

#ifdef BY_HAND
#define ENTER(name, number)                                                                                            \
    prof_enter((void *)name);                                                                                          \
    truth_enter(&self->truth, number)
#define LEAVE(name)                                                                                                    \
    truth_leave(&self->truth, self->truth.depth - 1);                                                                  \
    prof_exit((void *)name)
#else
#define ENTER(name, number) truth_enter(&self->truth, number)
#define LEAVE(name)         truth_leave(&self->truth, self->truth.depth - 1)
#endif

// Inlined into their callers, and instrumented there.
#define INLINED(number)                                                                                                \
    static inline __attribute__((always_inline)) void f##number(coro_t *self, int level)                               \
    {                                                                                                                  \
        ENTER(f##number, number);                                                                                      \
        self->calls_left--;                                                                                            \
        if (level < self->level_max && draw(self, 8) == 0)                                                             \
            act(self, level + 1);                                                                                      \
        LEAVE(f##number);                                                                                              \
    }
INLINED(16)
INLINED(17)
INLINED(18)
INLINED(19)

// `bytes` of own frame, `inlined` functions.
#define FUNCTION(number, bytes, inlined)                                                                               \
    void f##number(coro_t *self, int level);                                                                           \
    __attribute__((noinline)) void f##number(coro_t *self, int level)                                                  \
    {                                                                                                                  \
        ENTER(f##number, number);                                                                                      \
        volatile char frame[bytes];                                                                                    \
        frame[0] = frame[(bytes)-1] = 0;                                                                               \
        self->calls_left--;                                                                                            \
        inlined;                                                                                                       \
        act(self, level);                                                                                              \
        LEAVE(f##number);                                                                                              \
    }
#define NOTHING (void)0
FUNCTION(0, 1, NOTHING)
FUNCTION(1, 500, NOTHING)
FUNCTION(2, 8, f16(self, level))
FUNCTION(3, 100, (f16(self, level), f17(self, level)))
FUNCTION(4, 1, (f18(self, level), f18(self, level)))
FUNCTION(5, 2000, NOTHING)
FUNCTION(6, 24, NOTHING)
FUNCTION(7, 1, f19(self, level))
FUNCTION(8, 64, NOTHING)
FUNCTION(9, 300, (f17(self, level), f19(self, level)))
FUNCTION(10, 1, NOTHING)
FUNCTION(11, 16, NOTHING)
FUNCTION(12, 1000, f16(self, level))

// A frame of changing size, and one on a boundary of its own.
void f13(coro_t *self, int level);
__attribute__((noinline)) void f13(coro_t *self, int level)
{
    ENTER(f13, 13);
    volatile char *room = (volatile char *)__builtin_alloca(16 + draw(self, 500));
    room[0] = 0;
    self->calls_left--;
    act(self, level);
    LEAVE(f13);
}

void f14(coro_t *self, int level);
__attribute__((noinline)) void f14(coro_t *self, int level)
{
    ENTER(f14, 14);
    volatile char aligned[64] __attribute__((aligned(64)));
    aligned[0] = 0;
    aligned[1] = aligned[0];
    self->calls_left--;
    f17(self, level);
    act(self, level);
    LEAVE(f14);
}

// The last thing it does is a call.
void f15(coro_t *self, int level);
__attribute__((noinline)) void f15(coro_t *self, int level)
{
    ENTER(f15, 15);
    self->calls_left--;
    if (level < self->level_max)
        functions[draw(self, 16)](self, level + 1);
    LEAVE(f15);
}

function_t *const functions[] = {f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15};

PLAIN void run_tree(coro_t *self)
{
    while (self->calls_left > 0)
        call_and_catch(self, 0);
}

// --- Coroutines

PLAIN static void entry(unsigned hi, unsigned lo)
{
    coro_t *self = (coro_t *)((uintptr_t)hi << 32 | lo);
    run_tree(self);
    self->over = true;
    for (;;)
        yield(self);
}

PLAIN coro_t *new_coro(uint64_t seed, int calls, void (*start)(unsigned, unsigned))
{
    coro_t *coro = (coro_t *)calloc(1, sizeof(*coro));
    coro->random = seed * 0x9e3779b97f4a7c15u + 1;
    coro->calls_left = calls;
    coro->level_max = LEVEL_MAX;
    coro->stack = malloc(STACK_BYTES);
    getcontext(&coro->context);
    coro->context.uc_stack.ss_sp = coro->stack;
    coro->context.uc_stack.ss_size = STACK_BYTES;
    coro->context.uc_link = NULL;
    uintptr_t address = (uintptr_t)coro;
    makecontext(&coro->context, (void (*)(void))start, 2, (unsigned)(address >> 32), (unsigned)address);
    return coro;
}

PLAIN static coro_t *spawn(coro_t *spawner, uint64_t seed, int calls)
{
    int place = 0;
    while (place < COROS_MAX && coros[place] != NULL)
        place++;
    if (place == COROS_MAX || spawned++ >= SPAWNS_TOTAL)
        return NULL;
    coro_t *coro = new_coro(seed, calls, entry);
    coro->back = &scheduler;
    for (int slot = 0; slot < TABLES_MAX; slot++) {
        bool wide = profiles[slot].prof != NULL && profiles[slot].scope != PROF_SCOPE_REQUEST;
        truth_table_t *inherited = spawner != NULL ? spawner->truth.tables[slot] : NULL;
        truth_table_t *table = wide ? profiles[slot].table : inherited;
        if (table != NULL)
            truth_cover(&coro->truth, slot, table);
    }
    return coros[place] = coro;
}

PLAIN static void drop(int place)
{
    free(coros[place]->stack); // the next coroutine may get it: the end of this one is not reported
    free(coros[place]);
    coros[place] = NULL;
}

truth_table_t whole;

PLAIN static void mix(uint64_t seed)
{
    coro_t dice;
    memset(&dice, 0, sizeof(dice));
    int live = 0;
    dice.random = seed;
    for (int i = 0; i < 20; i++)
        spawn(NULL, seed * 100 + (uint64_t)i, 400);
    do {
        live = 0;
        for (int i = 0; i < COROS_MAX; i++) {
            if (coros[i] == NULL)
                continue;
            live++;
            if (draw(&dice, 3) == 0)
                swapcontext(&scheduler, &coros[i]->context);
            if (coros[i]->over || (!coros[i]->pinned && draw(&dice, 2000) == 0)) // now and then with calls in progress
                drop(i);
        }
    } while (live > 0);
    for (int slot = 0; slot < TABLES_MAX && mixed; slot++)
        finish_profile(slot);
    if (!mixed)
        truth_print(truth_file, "run.prof", &whole);
}

// --- Deep recursion

enum { DEEP = 700 };

void f20(coro_t *self, int level);
void f21(coro_t *self, int level);

__attribute__((noinline)) void f20(coro_t *self, int level)
{
    ENTER(f20, 20);
    yield(self);
    if (level < DEEP)
        (draw(self, 10) == 0 ? f21 : f20)(self, level + 1);
    else
        jump_out(self);
    LEAVE(f20);
}

__attribute__((noinline)) void f21(coro_t *self, int level)
{
    ENTER(f21, 21);
    yield(self);
    if (level < DEEP)
        (draw(self, 3) == 0 ? f21 : f20)(self, level + 1);
    LEAVE(f21);
}

PLAIN __attribute__((noinline)) static void dive(coro_t *self)
{
    int depth = self->truth.depth;
#ifdef __cplusplus
    self->catch_count = 1;
    try {
        f20(self, 0);
    } catch (int) {
        truth_leave(&self->truth, depth);
    }
#else
    jmp_buf catcher;
    self->catches[0] = &catcher;
    self->catch_count = 1;
    if (setjmp(catcher) == 0)
        f20(self, 0);
    else
        truth_leave(&self->truth, depth);
#endif
    self->catch_count = 0;
}

PLAIN static void deep_entry(unsigned hi, unsigned lo)
{
    coro_t *self = (coro_t *)((uintptr_t)hi << 32 | lo);
    for (int i = 0; i < 20; i++)
        dive(self);
    self->over = true;
    for (;;)
        yield(self);
}

PLAIN static void deep(uint64_t seed)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    options.mode = PROF_MODE_EXACT;
    options.scope = PROF_SCOPE_THREAD;
    prof_t *prof = prof_start(&options);
    coro_t *pair[2];
    for (uint64_t i = 0; i < 2; i++) {
        pair[i] = new_coro(seed * 2 + i, 0, deep_entry);
        pair[i]->back = &scheduler;
        truth_cover(&pair[i]->truth, 0, &whole);
    }
    while (!pair[0]->over || !pair[1]->over) {
        for (int i = 0; i < 2; i++)
            if (!pair[i]->over)
                swapcontext(&scheduler, &pair[i]->context);
    }
    prof_stop(prof);
    prof_dump_stats(prof, "deep.prof");
    truth_print(truth_file, "deep.prof", &whole);
    prof_free(prof);
}

PLAIN int main(int argc, char **argv)
{
    uint64_t seed = strtoull(argv[argc - 1], NULL, 10);
    truth_file = fopen("truth.json", "w");
    if (truth_file == NULL)
        return 1;
    if (strcmp(argv[1], "mix") == 0) {
        mixed = true;
        mix(seed);
    } else if (strcmp(argv[1], "run") == 0) {
        profiles[0].prof = (prof_t *)&whole; // stands for the capture
        profiles[0].table = &whole;
        profiles[0].scope = PROF_SCOPE_PROCESS;
        mix(seed + 1000000);
    } else if (strcmp(argv[1], "crowd") == 0) {
        crowd(atoi(argv[2]), seed);
    } else {
        deep(seed);
    }
    return fclose(truth_file);
}
