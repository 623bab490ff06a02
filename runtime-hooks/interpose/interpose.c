// SPDX-License-Identifier: MIT
#include "interpose/interpose.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "coro/hook_returns.h"
#include "process/loader_hook.h"

enum { PLACES = 256, PATH_BYTES = 512 }; // of a path: this runs on stacks of the program's

// Originals that depend on the caller, by place of call. An entry is believed while nothing has been unloaded since;
// the sequence makes a reader miss what is just being written.
typedef struct place {
    _Atomic uint32_t sequence; // odd: being written
    _Atomic uint32_t unloads;
    _Atomic uintptr_t caller;
    const char *_Atomic name;
    void *_Atomic original;
} place_t;

static place_t places[PLACES];

// Names of a function in versions of its runtime, by arguments and result: a program may call it by the one, and a
// library define it by the other.
static const struct {
    const char *name, *other;
} names[] = {
    {"jump_fcontext", "_ZN5boost7context6detail13jump_fcontextEPvS2_"},
    {"ontop_fcontext", "_ZN5boost7context6detail14ontop_fcontextEPvS2_PFNS1_10transfer_tES3_E"},
    {"make_fcontext", "_ZN5boost7context6detail13make_fcontextEPvmPFvNS1_10transfer_tEE"},
};

static const char *interpose_other_name(const char *name)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].other;
    return NULL;
}

static place_t *interpose_place_of(uintptr_t caller, const char *name)
{
    uint64_t hash = (caller ^ (uintptr_t)name) * 0x9e3779b97f4a7c15ull;
    return &places[hash >> 56];
}

static void *interpose_known(place_t *place, const char *name, uintptr_t caller)
{
    uint32_t before = atomic_load_explicit(&place->sequence, memory_order_acquire);
    void *original = atomic_load_explicit(&place->original, memory_order_relaxed);
    bool fits = atomic_load_explicit(&place->caller, memory_order_relaxed) == caller &&
                atomic_load_explicit(&place->name, memory_order_relaxed) == name &&
                atomic_load_explicit(&place->unloads, memory_order_relaxed) == gp_loader_unloads();
    atomic_thread_fence(memory_order_acquire);
    return fits && !(before & 1) && atomic_load_explicit(&place->sequence, memory_order_relaxed) == before ? original
                                                                                                           : NULL;
}

static void interpose_remember(place_t *place, const char *name, uintptr_t caller, void *original)
{
    uint32_t sequence = atomic_load_explicit(&place->sequence, memory_order_relaxed) & ~1u;
    if (!atomic_compare_exchange_strong_explicit(&place->sequence, &sequence, sequence + 1, memory_order_acquire,
                                                 memory_order_relaxed))
        return; // another thread is at it
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&place->unloads, gp_loader_unloads(), memory_order_relaxed);
    atomic_store_explicit(&place->caller, caller, memory_order_relaxed);
    atomic_store_explicit(&place->name, name, memory_order_relaxed);
    atomic_store_explicit(&place->original, original, memory_order_relaxed);
    atomic_store_explicit(&place->sequence, sequence + 2, memory_order_release);
}

// A stub of ours is no original, where the object's scope has the core first.
static bool interpose_is_own(const void *function)
{
    Dl_info own, other;
    return dladdr((void *)(uintptr_t)gp_interpose_find, &own) != 0 && dladdr(function, &other) != 0 &&
           own.dli_fbase == other.dli_fbase;
}

static void *interpose_in_object(const char *path, const char *name)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL)
        return NULL;
    void *original = dlsym(handle, name);
    gp_loader_put(handle);
    return original != NULL && interpose_is_own(original) ? NULL : original;
}

typedef struct turn { // of the loader's list
    size_t left;      // modules before the one that is wanted
    char path[PATH_BYTES];
} turn_t;

static int interpose_note_path(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    turn_t *turn = argument;
    if (turn->left-- > 0)
        return 0;
    size_t len = info->dlpi_name != NULL ? strlen(info->dlpi_name) + 1 : 0;
    turn->path[0] = '\0';
    if (len > 0 && len <= sizeof(turn->path))
        memcpy(turn->path, info->dlpi_name, len);
    return 1;
}

// Look into one object after the other: opening a module waits for the loader, which may itself wait for its list.
static void *interpose_in_any(const char *name)
{
    turn_t turn;
    void *original = NULL;
    for (size_t i = 0; original == NULL; i++) {
        turn.left = i;
        if (dl_iterate_phdr(interpose_note_path, &turn) == 0)
            return NULL;
        if (turn.path[0] == '/')
            original = interpose_in_object(turn.path, name);
    }
    return original;
}

static void *interpose_in_scope_of(uintptr_t caller, const char *name)
{
    Dl_info info;
    void *original = NULL;
    if (dladdr((void *)caller, &info) != 0 && info.dli_fname != NULL)
        original = interpose_in_object(info.dli_fname, name);
    // The caller may be a dependency of the plugin, beside the one that has the name.
    return original != NULL ? original : interpose_in_any(name);
}

void *gp_interpose_resolve(void **slot, const char *name, uintptr_t caller)
{
    place_t *place = interpose_place_of(caller, name);
    void *original = interpose_known(place, name, caller);
    if (original != NULL)
        return original;
    const char *other = interpose_other_name(name);
    original = dlsym(RTLD_NEXT, name);
    if (original == NULL && other != NULL)
        original = dlsym(RTLD_NEXT, other);
    if (original != NULL) {
        gp_hook_returns_found(slot, original);
        return original;
    }
    original = interpose_in_scope_of(caller, name);
    if (original == NULL && other != NULL)
        original = interpose_in_scope_of(caller, other);
    if (original == NULL)
        __builtin_trap();
    interpose_remember(place, name, caller, original);
    return original;
}

// A core that came into a running program has nothing behind it: the name is before it then.
void *gp_interpose_find(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name), *global = found == NULL ? dlsym(RTLD_DEFAULT, name) : NULL;
    return global != NULL && !interpose_is_own(global) ? global : found;
}

bool gp_interpose_find_all(const gp_interpose_wanted_t *all, size_t count, bool is_shared)
{
    for (size_t i = 0; i < count; i++) {
        void *found = is_shared ? dlsym(RTLD_DEFAULT, all[i].name) : gp_interpose_find(all[i].name);
        if (found == NULL)
            return false;
        memcpy(all[i].slot, &found, sizeof(found));
    }
    return true;
}
