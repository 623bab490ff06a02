// SPDX-License-Identifier: MIT
#include "process/got.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "model/counters.h"
#include "process/got_calls.h"
#include "signal/thread.h"
#include "unwind/module.h"

// A weak name's slot tells nothing of whether it is relocated: as many looks after its module came.
enum { LOOKS = 20 };

typedef struct slot { // one for each place
    uintptr_t *at;
    uintptr_t before, after;
    bool is_there; // at the present look
} slot_t;

static slot_t *slots; // the first `sorted_count` by place
static size_t slot_count, slot_room, sorted_count;
static bool is_short; // of room: nothing is allocated while the loader's lock is held
static bool is_early; // there is a module that is not relocated yet
static bool is_attached;
static _Atomic pid_t busy; // the process, one thread of which takes slots; 0 = none. A child may find its parent's
static unsigned long long seen_adds;
static unsigned looks_left;
static int memory = -1; // /proc/self/mem, while slots are written

static bool got_write_slot(const gp_got_call_t *call, uintptr_t before, uintptr_t value)
{
    if (call->is_protected)
        return memory >= 0 &&
               pwrite(memory, &value, sizeof(value), (off_t)(uintptr_t)call->at) == (ssize_t)sizeof(value);
    // Another thread may be binding the slot: the address found by it stays, until the next look.
    is_early |= !__atomic_compare_exchange_n(call->at, &before, value, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    return true;
}

static int got_by_place(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const slot_t *)a)->at, y = (uintptr_t)((const slot_t *)b)->at;
    return (x > y) - (x < y);
}

static void got_sort_slots(void)
{
    if (slot_count > 0)
        qsort(slots, slot_count, sizeof(slots[0]), got_by_place);
    sorted_count = slot_count;
}

static slot_t *got_find_slot(uintptr_t *at)
{
    const slot_t key = {.at = at};
    return sorted_count > 0 ? bsearch(&key, slots, sorted_count, sizeof(slots[0]), got_by_place) : NULL;
}

// Is it the address of code, or as the file has it: of code in the module as if that were loaded at 0?
static bool got_is_relocated(const struct dl_phdr_info *info, uintptr_t value)
{
    gp_unwind_module_t module;
    bool as_in_file = false;
    for (int i = 0; i < info->dlpi_phnum && info->dlpi_addr != 0; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        as_in_file |=
            header->p_type == PT_LOAD && (header->p_flags & PF_X) && value - header->p_vaddr < header->p_memsz;
    }
    is_early |= as_in_file;
    return !as_in_file && gp_module_find(value, &module) != GP_MODULE_NONE;
}

static void got_take_slot(const gp_got_call_t *call)
{
    uintptr_t before = __atomic_load_n(call->at, __ATOMIC_ACQUIRE);
    slot_t *slot = got_find_slot(call->at);
    if (slot != NULL)
        slot->is_there = true;
    // A weak name that nothing defines stays so.
    if (before == 0 || before == call->after || !got_is_relocated(call->info, before))
        return;
    is_short |= slot == NULL && slot_count == slot_room;
    if (slot == NULL && slot_count == slot_room)
        return;
    if (slot == NULL)
        slot = &slots[slot_count++];
    *slot = (slot_t){call->at, before, call->after, true};
    if (!got_write_slot(call, before, call->after))
        atomic_fetch_add_explicit(&gp_thread_orphan_counters[GP_COUNTER_UNPATCHED], 1, memory_order_relaxed);
}

static void got_give_slot_back(const gp_got_call_t *call)
{
    const slot_t *slot = got_find_slot(call->at);
    if (slot != NULL && __atomic_load_n(call->at, __ATOMIC_ACQUIRE) == call->after)
        got_write_slot(call, call->after, slot->before);
}

// Take a slot of a module loaded to look into its own libraries first: bound to the C library past the core, or about
// to be.
static void got_take_deep_slot(const gp_got_call_t *call)
{
    gp_location_t value, libc;
    uintptr_t before = __atomic_load_n(call->at, __ATOMIC_ACQUIRE);
    if (before == 0 || before == call->after || !call->is_undefined || !got_is_relocated(call->info, before) ||
        !gp_module_locate(before, &value) || !gp_module_locate((uintptr_t)getppid, &libc))
        return;
    if (gp_got_holds(call->info, before) || value.link_map == libc.link_map)
        got_write_slot(call, before, call->after);
}

static void got_visit_all(gp_got_visit_t *visit, size_t first)
{
    memory = gp_descriptor_open(AT_FDCWD, "/proc/thread-self/mem", O_RDWR, 0);
    bool is_one_early = gp_got_calls_each(visit, first);
    is_early |= is_one_early;
    if (memory >= 0)
        close(memory);
}

static int got_read_adds(struct dl_phdr_info *info, size_t size, void *adds)
{
    (void)size;
    *(unsigned long long *)adds = info->dlpi_adds;
    return 1;
}

// Slots of unloaded modules went with them.
static void got_forget_gone(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < slot_count; i++)
        if (slots[i].is_there)
            slots[kept++] = slots[i];
    slot_count = sorted_count = kept;
}

// Returns false where memory is short.
static bool got_make_room(void)
{
    size_t room = slot_room > 0 ? 2 * slot_room : 1024;
    slot_t *grown = realloc(slots, room * sizeof(*grown));
    if (grown == NULL)
        return false;
    slots = grown;
    slot_room = room;
    return true;
}

// Returns false where another thread does not come to an end.
static bool got_begin(void)
{
    enum { TRIES = 1000, PAUSE_NS = 100000 };
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    pid_t own = getpid();
    for (int i = 0; i < TRIES; i++) {
        pid_t other = atomic_load_explicit(&busy, memory_order_relaxed);
        if (other != own &&
            atomic_compare_exchange_strong_explicit(&busy, &other, own, memory_order_acquire, memory_order_relaxed))
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

static void got_end(void)
{
    atomic_store_explicit(&busy, 0, memory_order_release);
}

static void got_take_all(void)
{
    for (size_t i = 0; i < slot_count; i++)
        slots[i].is_there = false;
    do {
        is_short = is_early = false;
        got_visit_all(got_take_slot, 0);
        got_sort_slots();
    } while (is_short && got_make_room());
    got_forget_gone();
}

void gp_got_take(void)
{
    unsigned long long adds = 0;
    dl_iterate_phdr(got_read_adds, &adds);
    if ((adds == seen_adds && looks_left == 0) || !got_begin())
        return;
    looks_left = adds == seen_adds && !is_early ? looks_left - 1 : LOOKS;
    seen_adds = adds;
    is_attached = true;
    got_take_all();
    got_end();
}

static int got_count_module(struct dl_phdr_info *info, size_t size, void *count)
{
    (void)info;
    (void)size;
    ++*(size_t *)count;
    return 0;
}

size_t gp_got_modules(void)
{
    size_t count = 0;
    dl_iterate_phdr(got_count_module, &count);
    return count;
}

void gp_got_take_deep(size_t first)
{
    if (!got_begin())
        return;
    if (is_attached)
        got_take_all();
    else
        got_visit_all(got_take_deep_slot, first);
    got_end();
}

void gp_got_give_back(void)
{
    if (!got_begin())
        return;
    got_visit_all(got_give_slot_back, 0);
    free(slots);
    slots = NULL;
    slot_count = slot_room = sorted_count = 0;
    seen_adds = 0;
    looks_left = 0;
    is_attached = false;
    got_end();
}
