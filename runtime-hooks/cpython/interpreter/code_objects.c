// SPDX-License-Identifier: MIT
#include "interpreter/code_objects.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "collect/functions.h"
#include "collect/spawn_locate.h"
#include "interpreter/api.h"
#include "interpreter/code_graves.h"
#include "interpreter/frame_walk.h"
#include "interpreter/function_sites.h"
#include "interpreter/lines.h"
#include "interpreter/locks.h"
#include "interpreter/peek_text.h"
#include "signal/handler.h"
#include "signal/rest.h"

enum {
    LIMBO_MAX = 1 << 15, // deaths between two rounds: 650,000 a second
    FREED_AT_ONCE = 64,  // of those that wait, per death: no long pause
    TEXT_SIZE = 2048,
    CACHE_SIZE = 4096,
    BUCKETS = 8192,
    LINES_MAX = 1 << 20,
    HEAD_SIZE = 256,
    TRIES = 1000,
    IS_FREED = 1, // of an address in limbo: what was there could not wait
};

#define REFERENCES_MAX                                                                                                 \
    (1ull << 33) // of a live object, the immortal ones of 3.12 included: else it is a free block's link

static gp_code_t *codes[BUCKETS];
static struct {
    uintptr_t frame;
    uint64_t loc;
} cache[CACHE_SIZE];
static uint32_t epoch; // sampling epoch for which `codes` holds
_Atomic uint32_t gp_cpython_code_generation;

static _Atomic uintptr_t limbo[LIMBO_MAX];
static gp_code_t *graves_of[LIMBO_MAX]; // of what is freed: what it was, NULL = not known; taken by the collector
static _Atomic uint64_t put, scanned;   // see code_objects.h
static _Atomic uint64_t put_freed;      // up to here, some of limbo are freed
static _Atomic uint64_t freed;          // under `busy`
static uint64_t draining_up_to, buried_up_to;
static _Atomic bool lost;    // an address was freed without waiting: what it meant is not known any more
static _Atomic bool resting; // nothing that was sampled is left in the rings
static atomic_flag busy = ATOMIC_FLAG_INIT;
static void (*real_dealloc)(void *code);

extern _Atomic uint32_t gp_ledger_edge_epoch;

static uintptr_t code_objects_limbo_at(uint64_t at)
{
    return atomic_load_explicit(&limbo[at % LIMBO_MAX], memory_order_relaxed);
}

static bool code_objects_is_finalizing(void)
{
    return gp_cpython_runtime.is_finalizing != NULL && gp_cpython_runtime.is_finalizing();
}

// Objects belong to the interpreter that made them, and are freed by it or not at all. The main one's may wait. Its
// end ends the others as well (in 3.13 while finalizing), and at last there is no thread state to ask.
static bool code_objects_may_wait(void)
{
    bool is_last = code_objects_is_finalizing() && (gp_py.current_state == NULL || gp_py.current_state() == NULL);
    return is_last || gp_cpython_is_main();
}

// Take some objects that nothing asks for any more, up to the first waiting one if the caller may not free it.
static int code_objects_take_some(uintptr_t some[FREED_AT_ONCE], bool may_free)
{
    uint64_t upto = atomic_load_explicit(&scanned, memory_order_acquire), at;
    int count = 0;
    if (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
        return 0;
    for (at = freed; count < FREED_AT_ONCE && at < upto && (may_free || code_objects_limbo_at(at) & IS_FREED); at++)
        some[count++] = code_objects_limbo_at(at);
    freed = at;
    atomic_flag_clear_explicit(&busy, memory_order_release);
    return count;
}

static void code_objects_free_waiting(bool may_free)
{
    uintptr_t some[FREED_AT_ONCE];
    int count = code_objects_take_some(some, may_free);
    for (int i = 0; i < count; i++)
        if (!(some[i] & IS_FREED))
            real_dealloc((void *)some[i]); // may come back here for nested code objects
}

// Waiting objects belong to a main interpreter that has ended, and were lost with it.
static void code_objects_abandon_all(void)
{
    uint64_t upto = atomic_load_explicit(&put, memory_order_relaxed);
    for (uint64_t at = freed; at < upto; at++)
        atomic_fetch_or_explicit(&limbo[at % LIMBO_MAX], IS_FREED, memory_order_relaxed);
    atomic_store_explicit(&put_freed, upto, memory_order_release);
}

// Interpreters ending together meet here at each of thousands of deaths: the second one yields to the first.
static bool code_objects_enter(void)
{
    for (int i = 0; i < TRIES; i++) {
        if (!atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
            return true;
        sched_yield();
    }
    return false;
}

// Returns false where there is no room.
static bool code_objects_put_into_limbo(uintptr_t word, gp_code_t *grave)
{
    if (!code_objects_enter())
        return false;
    uint64_t at = atomic_load_explicit(&put, memory_order_relaxed);
    bool full = at - freed >= LIMBO_MAX;
    if (!full) {
        atomic_store_explicit(&limbo[at % LIMBO_MAX], word, memory_order_relaxed);
        graves_of[at % LIMBO_MAX] = grave;
        if (word & IS_FREED)
            atomic_store_explicit(&put_freed, at + 1, memory_order_relaxed);
        // Release: partner of the acquires by the collector.
        atomic_store_explicit(&put, at + 1, memory_order_release);
    }
    atomic_flag_clear_explicit(&busy, memory_order_release);
    return !full;
}

// Holds the interpreter lock. Sub-interpreters with locks of their own may meet here.
static void code_objects_on_dealloc(void *code)
{
    static bool is_ending; // the main interpreter
    gp_function_site_forget(code);
    if (is_ending && !code_objects_is_finalizing()) // another interpreter by now
        code_objects_abandon_all();
    is_ending = code_objects_is_finalizing();
    bool sampling = atomic_load_explicit(&gp_handler_sampling, memory_order_acquire);
    bool is_asked_for = sampling || !atomic_load_explicit(&resting, memory_order_acquire);
    if (!is_asked_for && freed == atomic_load_explicit(&put, memory_order_relaxed)) {
        atomic_store_explicit(&lost, true, memory_order_release); // for a census while nothing is sampled
        real_dealloc(code);
        return;
    }
    bool waits = code_objects_may_wait();
    gp_code_t *grave = is_asked_for && !waits ? gp_code_grave_make(code) : NULL;
    bool is_put = is_asked_for && code_objects_put_into_limbo((uintptr_t)code | (waits ? 0 : IS_FREED), grave);
    if (!is_put) {
        atomic_store_explicit(&lost, true, memory_order_release);
        gp_code_grave_free(grave);
    }
    if (!is_put || !waits)
        real_dealloc(code);
    code_objects_free_waiting(waits);
}

void gp_cpython_code_watch(void (**slot)(void *code))
{
    real_dealloc = *slot;
    atomic_store_explicit(&resting, true, memory_order_relaxed);
    __atomic_store_n(slot, code_objects_on_dealloc, __ATOMIC_RELEASE);
}

// Where a code object is linked in, or would be.
static gp_code_t **code_objects_link(uintptr_t address)
{
    gp_code_t **link = &codes[gp_hash_u64(address) % BUCKETS];
    while (*link != NULL && (*link)->address != address)
        link = &(*link)->next;
    return link;
}

static void code_objects_forget(gp_code_t *code)
{
    // -Wanalyzer-use-after-free: the bucket begins with another one, once one was forgotten.
    if (code->in_site) // before its address is free: partner of the acquire in gp_cpython_spawn_site()
        atomic_fetch_add_explicit(&gp_cpython_code_generation, 1, memory_order_release);
    *code_objects_link(code->address) = code->next;
    // -Wanalyzer-double-free: likewise.
    free(code->lines);
    free(code);
}

static void code_objects_forget_all(void)
{
    for (size_t i = 0; i < BUCKETS; i++)
        while (codes[i] != NULL)
            code_objects_forget(codes[i]);
    memset(cache, 0, sizeof(cache));
}

static bool code_objects_has_freed(void)
{
    return atomic_load_explicit(&put_freed, memory_order_acquire) >
           atomic_load_explicit(&scanned, memory_order_relaxed);
}

// Addresses in this round's samples may mean the freed objects, or the new ones in their place.
static void code_objects_forget_freed(uint64_t upto)
{
    for (; buried_up_to < upto; buried_up_to++) {
        uintptr_t word = code_objects_limbo_at(buried_up_to), address = word & ~(uintptr_t)IS_FREED;
        gp_code_t *code = word & IS_FREED ? *code_objects_link(address) : NULL;
        gp_code_t *grave = graves_of[buried_up_to % LIMBO_MAX];
        graves_of[buried_up_to % LIMBO_MAX] = NULL;
        if (code != NULL)
            code_objects_forget(code);
        if (grave != NULL)
            gp_code_graves_bury(grave, buried_up_to);
        if (word & IS_FREED)
            memset(cache, 0, sizeof(cache));
    }
}

void gp_cpython_code_before_drain(void)
{
    uint32_t now = atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_acquire);
    bool was_lost = atomic_exchange_explicit(&lost, false, memory_order_acq_rel);
    bool was_resting = atomic_load_explicit(&resting, memory_order_relaxed);
    if ((now != epoch && was_resting) || was_lost) // deaths were not counted while nothing was sampled
        code_objects_forget_all();
    epoch = now;
    draining_up_to = atomic_load_explicit(&put, memory_order_acquire);
    buried_up_to = atomic_load_explicit(&scanned, memory_order_relaxed);
    code_objects_forget_freed(draining_up_to);
    if (atomic_load_explicit(&gp_handler_sampling, memory_order_acquire))
        atomic_store_explicit(&resting, false, memory_order_release);
}

void gp_cpython_code_after_drain(void)
{
    bool any = code_objects_has_freed();
    gp_spawn_locate(); // a site may name a dead object
    uint64_t from = atomic_load_explicit(&scanned, memory_order_relaxed);
    for (uint64_t i = from; i < draining_up_to; i++) {
        gp_code_t *code = *code_objects_link(code_objects_limbo_at(i) & ~(uintptr_t)IS_FREED);
        if (code != NULL) {
            code_objects_forget(code);
            any = true;
        }
    }
    if (any)
        memset(cache, 0, sizeof(cache));
    gp_code_graves_clear(draining_up_to);
    // Release: partner of the acquire in code_objects_free_waiting().
    atomic_store_explicit(&scanned, draining_up_to, memory_order_release);
    if (!atomic_load_explicit(&gp_handler_sampling, memory_order_acquire) && !gp_rest_is_now())
        atomic_store_explicit(&resting, true, memory_order_release);
}

static bool code_objects_is_in_limbo(uintptr_t word)
{
    uint64_t upto = atomic_load_explicit(&put, memory_order_acquire);
    for (uint64_t i = atomic_load_explicit(&scanned, memory_order_relaxed); i < upto; i++)
        if (code_objects_limbo_at(i) == word)
            return true;
    return false;
}

static uint64_t code_objects_field(const unsigned char *head, unsigned offset)
{
    uint64_t value;
    // -Wanalyzer-malloc-leak: code_objects_read_code() has what it allocated.
    memcpy(&value, head + offset, sizeof(value));
    return value;
}

static bool code_objects_is_code(uintptr_t address, const unsigned char *head)
{
    uint64_t references = code_objects_field(head, 0) & ((1ull << GP_CPYTHON_REFERENCES_BITS) - 1);
    return code_objects_field(head, GP_CPYTHON_OBJECT_TYPE) == gp_cpython_runtime.code_type &&
           references < REFERENCES_MAX && (references > 0 || code_objects_is_in_limbo(address)) &&
           !(code_objects_has_freed() && code_objects_is_in_limbo(address | IS_FREED));
}

static bool code_objects_ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

bool gp_cpython_is_own_file(const char *file)
{
    static const char *const files[] = {"/greenprof/__main__.py", "/greenprof/__init__.py", "/greenprof/wsgi.py",
                                        "/greenprof/servers.py", "<greenprof>"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (code_objects_ends_with(file, files[i]))
            return true;
    return false;
}

// greenprof's own package is not shown, nor what started the program for `python3 -m greenprof`, nor what a task in
// Python has between its loop and its coroutine, where one in C has nothing.
static void code_objects_look_at_file(gp_code_t *code, const char *name, const char *file)
{
    if (code_objects_ends_with(file, "/greenprof/__main__.py"))
        code->fixed = GP_LOC_CUT;
    else
        code->hidden = gp_cpython_is_own_file(file) || (code_objects_ends_with(file, "/asyncio/tasks.py") &&
                                                        code_objects_ends_with(name, "__step_run_and_handle_result"));
}

static void code_objects_name(gp_code_t *code, const char *name, size_t name_len, const char *file, size_t file_len)
{
    code->function = gp_functions_number(name, name_len, file, file_len, code->first_line);
    if (gp_functions_is_other(code->function)) // lines of many files: they would say nothing
        code->fixed = GP_LOC(GP_MODULE_LANGUAGE, GP_LANGUAGE_OFFSET(code->function, 0));
    code_objects_look_at_file(code, name, file);
}

static void code_objects_read_lines(gp_code_t *code, uintptr_t bytes)
{
    uint64_t length = 0;
    if (!gp_peek(bytes + GP_CPYTHON_OBJECT_SIZE, &length, sizeof(length)) || length > LINES_MAX)
        return;
    code->lines = malloc(length + 1);
    if (code->lines != NULL && gp_peek(bytes + GP_CPYTHON_BYTES_DATA, code->lines, length))
        code->lines_len = length;
}

static gp_code_t *code_objects_read_code(uintptr_t address)
{
    const gp_cpython_layout_t *layout = gp_cpython_runtime.layout;
    unsigned char head[HEAD_SIZE];
    char name[TEXT_SIZE], file[TEXT_SIZE];
    if (!gp_peek(address, head, layout->code_instructions) || !code_objects_is_code(address, head))
        return NULL;
    int name_len = gp_cpython_peek_text(layout, code_objects_field(head, layout->code_name), name, sizeof(name));
    int file_len = gp_cpython_peek_text(layout, code_objects_field(head, layout->code_file), file, sizeof(file));
    gp_code_t *code = name_len >= 0 && file_len >= 0 ? calloc(1, sizeof(*code)) : NULL;
    if (code == NULL)
        return NULL;
    code->address = address;
    code->first_line = (uint32_t)code_objects_field(head, layout->code_first_line);
    code_objects_name(code, name, (size_t)name_len, file, (size_t)file_len);
    code_objects_read_lines(code, code_objects_field(head, layout->code_lines));
    *code_objects_link(address) = code;
    return code;
}

// The code object of an address at that time; NULL = not known.
static gp_code_t *code_objects_find(uintptr_t address, uint64_t ticks)
{
    gp_code_t *code = gp_code_graves_find(address, ticks);
    if (code != NULL) {
        if (code->function == 0)
            code_objects_name(code, code->name, code->name_len, code->name + code->name_len + 1, code->file_len);
        return code;
    }
    code = *code_objects_link(address);
    if (code == NULL)
        code = code_objects_read_code(address);
    // -Wanalyzer-malloc-leak: the table keeps what was read
    if (code != NULL)
        code->in_site |= gp_spawn_is_locating;
    return code;
}

static uint64_t code_objects_locate(uintptr_t frame, uint64_t ticks)
{
    if (gp_locks_is_word(frame))
        return gp_locks_locate(frame, code_objects_locate(gp_locks_word_frame(frame), ticks));
    const gp_code_t *code = code_objects_find(gp_cpython_word_code(frame), ticks);
    if (code == NULL || code->function == 0)
        return GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_UNKNOWN);
    if (code->hidden || code->fixed != 0)
        return code->fixed;
    int index = gp_cpython_word_index(frame);
    uint32_t line = index == -2 ? 0 : gp_cpython_line(code->lines, code->lines_len, code->first_line, index);
    return GP_LOC(GP_MODULE_LANGUAGE, GP_LANGUAGE_OFFSET(code->function, line));
}

uint64_t gp_cpython_code_locate(uintptr_t frame, uint64_t ticks)
{
    frame &= ~(uintptr_t)GP_LANGUAGE_ENTRY;
    size_t slot = (frame * 0x9e3779b97f4a7c15ull) >> 52;                       // 4096 slots
    if (atomic_load_explicit(&put_freed, memory_order_acquire) > buried_up_to) // since the round began
        code_objects_forget_freed(atomic_load_explicit(&put, memory_order_acquire));
    if (gp_code_graves_are_any())
        return code_objects_locate(frame, ticks);
    if (cache[slot].frame != frame || gp_spawn_is_locating) {
        cache[slot].loc = code_objects_locate(frame, ticks);
        cache[slot].frame = frame;
    }
    return cache[slot].loc;
}

// Files of the libraries that start coroutines: what they call is what the coroutine runs.
static bool code_objects_is_starter(const char *file)
{
    static const char *const starters[] = {"/eventlet/greenthread.py", "/eventlet/greenpool.py",
                                           "/eventlet/tpool.py",       "/gevent/greenlet.py",
                                           "/gevent/pool.py",          "/gevent/threadpool.py"};
    for (size_t i = 0; i < sizeof(starters) / sizeof(starters[0]); i++)
        if (code_objects_ends_with(file, starters[i]))
            return true;
    return false;
}

const char *gp_cpython_coro_name(const uint64_t *locs, size_t depth)
{
    while (depth-- > 0) {
        if (GP_LOC_MODULE(locs[depth]) != GP_MODULE_LANGUAGE)
            return NULL;
        const gp_function_name_t *function = gp_functions_at(GP_LANGUAGE_FUNCTION(GP_LOC_OFFSET(locs[depth])));
        if (function == NULL)
            return NULL;
        if (strstr(function->file, "/eventlet/hubs/") != NULL ||
            code_objects_ends_with(function->file, "/gevent/hub.py"))
            return "[hub]";
        if (!code_objects_is_starter(function->file))
            return function->name;
    }
    return NULL;
}
