// SPDX-License-Identifier: MIT
// PHP's Fibers (8.1 and later): the engine calls observers when a Fiber is made, switched and destroyed, and exports
// how to register one. The observer must be registered after the engine has started: its first call of mmap() for a
// Fiber's stack is the moment, right before the report of this Fiber.
//
// A zend_fiber_context begins with its fcontext, the stack pointer at which it was left.
// Source: PHP 8.2, Zend/zend_fibers.h, zend_fibers.c (zend_fiber_init_context, zend_fiber_switch_context),
// zend_observer.c.
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "coro/announce.h"
#include "interpose/interpose.h"
#include "php_frames.h"
#include "php_names.h"
#include "signal/region.h"

typedef struct context {
    void *handle;
} context_t;

typedef void one_context_t(context_t *context);
typedef void two_contexts_t(context_t *from, context_t *to);

static __thread uintptr_t mapped_lo __attribute__((tls_model("initial-exec")));
static __thread uintptr_t mapped_hi __attribute__((tls_model("initial-exec")));

static void php_made(context_t *context)
{
    uintptr_t sp = (uintptr_t)context->handle;
    char name[48] = "fiber";
    if (sp < mapped_lo || sp >= mapped_hi)
        return;
    gp_php_name(context, name, sizeof(name));
    gp_coro_announce(mapped_lo, mapped_hi, 0, name);
}

static void php_switched(context_t *from, context_t *to)
{
    (void)from;
    if (!__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED))
        return;
    const uintptr_t *frame = __builtin_frame_address(0);
    gp_park_t park = {.pc = (uintptr_t)__builtin_return_address(0), .sp = (uintptr_t)(frame + 2), .fp = frame[0]};
    if (!gp_hook_park_outward(&park)) // of the engine's helper that calls all observers
        park.pc = 0;
    gp_php_note_switch((uintptr_t)frame, (uintptr_t)to->handle);
    gp_switch_to_stack((uintptr_t)to->handle, &park);
    gp_php_runtime.next_frame = 0;
}

static void php_destroyed(context_t *context)
{
    uint64_t id;
    prof_coro_t *coro = gp_region_find((uintptr_t)context->handle, &id);
    if (coro != NULL && coro->kind == GP_CORO_ANNOUNCED)
        gp_coro_retire(coro);
}

// In the program itself, where it is no plugin of a web server's.
static void *php_find(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

static void php_observe(void)
{
    static _Atomic bool done;
    void (*on_init)(one_context_t *) = php_find("zend_observer_fiber_init_register");
    void (*on_switch)(two_contexts_t *) = php_find("zend_observer_fiber_switch_register");
    void (*on_destroy)(one_context_t *) = php_find("zend_observer_fiber_destroy_register");
    if (on_init == NULL || on_switch == NULL || on_destroy == NULL || atomic_exchange(&done, true))
        return;
    on_init(php_made);
    on_switch(php_switched);
    on_destroy(php_destroyed);
}

typedef void *mmap_t(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);

static mmap_t *next;

// Others may have replaced mmap(), too. Earlier mappings, while libraries are loaded, are for the kernel alone.
__attribute__((constructor)) static void php_find_next(void)
{
    next = (mmap_t *)(uintptr_t)dlsym(RTLD_NEXT, "mmap");
}

static void *php_map(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    void *memory = next != NULL ? next(address, bytes, protection, flags, fd, offset)
                                : (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
    if (__builtin_expect((flags & MAP_STACK) != 0 && memory != MAP_FAILED, 0)) {
        mapped_lo = (uintptr_t)memory;
        mapped_hi = mapped_lo + bytes;
        php_observe();
    }
    return memory;
}

PROF_API void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return php_map(address, bytes, protection, flags, fd, offset);
}

PROF_API void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return php_map(address, bytes, protection, flags, fd, offset);
}
