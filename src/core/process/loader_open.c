// SPDX-License-Identifier: MIT
// dlopen() is interposed for libraries that are to be bound past what is interposed (RTLD_DEEPBIND: Apache's modules).
//
// The loader looks for a library where the caller's own paths say, so the caller must stay the program: all but these
// calls are jumps. With a path that has nothing to be filled in it does not matter who calls.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "coro/process_id.h"
#include "coro/threads.h"
#include "greenprof/coro.h"
#include "process/got.h"

#if defined(__clang__)
#define AS_JUMP
#define JUMP __attribute__((musttail)) return
#else
#define AS_JUMP __attribute__((optimize("O2"))) // whatever the rest is built with
#define JUMP    return
#endif

typedef void *open_t(const char *, int);

static open_t *loader_open_real_open(void)
{
    static open_t *_Atomic next;
    if (next == NULL)
        next = (open_t *)(uintptr_t)dlsym(RTLD_NEXT, "dlopen");
    return next;
}

__attribute__((noinline)) static void *loader_open_deep(const char *path, int mode)
{
    size_t before = gp_got_modules();
    void *handle = loader_open_real_open()(path, mode);
    int error = errno;
    if (handle != NULL && !gp_threads_are_anothers && gp_process_is_open())
        gp_got_take_deep(before);
    errno = error;
    return handle;
}

static bool loader_open_is_deep(const char *path, int mode)
{
    return (mode & RTLD_DEEPBIND) && path != NULL && strchr(path, '/') != NULL && strchr(path, '$') == NULL;
}

AS_JUMP PROF_API void *dlopen(const char *path, int mode)
{
    open_t *to = loader_open_is_deep(path, mode) ? loader_open_deep : loader_open_real_open();
    JUMP to(path, mode);
}
