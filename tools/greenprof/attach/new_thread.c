// SPDX-License-Identifier: MIT
#include "new_thread.h"

#include <errno.h>
#include <pthread.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "thread_stop.h"

enum { STACK_BYTES = 1 << 18 };

#define STOP_NS 10000000000ull

enum { ATTR_INIT, ATTR_DETACHED, ATTR_STACK, CREATE, FUNCTIONS };
static const char *const names[FUNCTIONS] = {
    [ATTR_INIT] = "pthread_attr_init",
    [ATTR_DETACHED] = "pthread_attr_setdetachstate",
    [ATTR_STACK] = "pthread_attr_setstacksize",
    [CREATE] = "pthread_create",
};

static const char *const work = "sched_yield";

_Static_assert(sizeof(pthread_attr_t) + sizeof(pthread_t) <= GP_NEW_THREAD_BYTES, "there is room");

// Before glibc 2.34 threads have a library of their own.
static int new_thread_find_functions(const gp_target_modules_t *modules, gp_target_function_t functions[FUNCTIONS])
{
    static const char *const places[] = {"libc.so.6", "libpthread.so.0"};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const gp_target_module_t *module = gp_target_module_named(modules, places[i]);
        int error = module != NULL ? gp_target_functions(modules, module, names, FUNCTIONS, functions) : 0;
        if (error != 0)
            return error;
        if (module != NULL && functions[CREATE].address != 0 && functions[ATTR_STACK].address != 0)
            return 0;
    }
    return -ENOEXEC;
}

// A function that returns an error number. Returns 0 or a negative errno value.
static int new_thread_ask(gp_thread_call_t *call, const gp_target_function_t *function, uint64_t a, uint64_t b,
                          uint64_t c)
{
    uint64_t result = 0;
    int error = gp_thread_call_function(call, function->address, (const uint64_t[]){a, b, c}, &result);
    return error != 0 ? error : -(int)result;
}

pid_t gp_new_thread_create(gp_thread_call_t *creator, const gp_target_modules_t *modules, uint64_t memory)
{
    gp_target_function_t functions[FUNCTIONS], begin = {0};
    uint64_t attributes = memory + sizeof(pthread_t);
    int error = new_thread_find_functions(modules, functions);
    if (error == 0)
        error = gp_target_functions(modules, gp_target_module_named(modules, "libc.so.6"), &work, 1, &begin);
    if (error == 0 && begin.address == 0)
        error = -ENOEXEC;
    if (error == 0)
        error = new_thread_ask(creator, &functions[ATTR_INIT], attributes, 0, 0);
    if (error == 0)
        error = new_thread_ask(creator, &functions[ATTR_DETACHED], attributes, PTHREAD_CREATE_DETACHED, 0);
    if (error == 0)
        error = new_thread_ask(creator, &functions[ATTR_STACK], attributes, STACK_BYTES, 0);
    if (error == 0 && ptrace(PTRACE_SETOPTIONS, creator->tid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE) != 0)
        error = -errno;
    if (error == 0)
        error = new_thread_ask(creator, &functions[CREATE], memory, attributes, begin.address);
    ptrace(PTRACE_SETOPTIONS, creator->tid, 0, PTRACE_O_TRACESYSGOOD);
    return error != 0 ? error : creator->made != 0 ? creator->made : -EIO;
}

int gp_new_thread_take(gp_thread_call_t *call, pid_t tid)
{
    int status, error = gp_thread_stop_wait(tid, STOP_NS, &status);
    call->tid = tid;
    if (error == 0 && ptrace(PTRACE_SETOPTIONS, tid, 0, PTRACE_O_TRACESYSGOOD) != 0)
        error = -errno;
    return error == 0 ? gp_thread_call_until(call, SYS_sched_yield) : error;
}
