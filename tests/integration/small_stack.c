// SPDX-License-Identifier: MIT
// Coroutines on 16 KiB stacks with 13 KiB in use. A guard page lies below each stack, canaries fill what must stay
// untouched below the deepest frame, and a page of canaries lies above.
//   small_stack deep SECONDS | api DIRECTORY
#include "truth.h"

#include "../context.h"
#include <sys/mman.h>

#include <greenprof/prof.h>

enum {
    STACK_BYTES = 16384,
    PAGE_BYTES = 4096,
    USED_BYTES = 13 << 10,
    API_USED_BYTES = 11 << 10, // greenprof's calls want 4 KiB
    CANARY_BYTES = 512,        // lowest bytes of the stack
    COROUTINES = 8,
    FRAME_BYTES = 200,
};

WORK(shallow)
WORK(deep)

typedef struct small {
    ucontext_t context;
    unsigned char *stack;
    uintptr_t lowest; // address of the deepest frame
} small_t;

static small_t smalls[COROUTINES];
static ucontext_t loop;
static int going = 1, left = COROUTINES;
static unsigned long yields;
static const char *directory;

static unsigned char pattern(size_t i)
{
    return (unsigned char)(i * 37 + 11);
}

static void fail(const char *what)
{
    fprintf(stderr, "small_stack: %s\n", what);
    _exit(3);
}

static void check_canaries(const small_t *small)
{
    for (size_t i = 0; i < CANARY_BYTES; i++)
        if (small->stack[i] != pattern(i))
            fail("bytes below the deepest frame were overwritten");
    for (size_t i = 0; i < PAGE_BYTES; i++)
        if (small->stack[STACK_BYTES + i] != pattern(i))
            fail("bytes above the stack were overwritten");
}

// Frames of known content down to `used` bytes, `bottom` there, and all of it checked on the way back.
static TRUTH_OUT_OF_LINE void descend(small_t *small, uintptr_t top, size_t used, void (*bottom)(small_t *))
{
    volatile unsigned char frame[FRAME_BYTES];
    for (size_t i = 0; i < FRAME_BYTES; i++)
        frame[i] = pattern(i + used);
    if (top - (uintptr_t)frame + 2 * FRAME_BYTES < used)
        descend(small, top, used, bottom);
    else
        bottom(small);
    for (size_t i = 0; i < FRAME_BYTES; i++)
        if (frame[i] != pattern(i + used))
            fail("a frame was overwritten");
}

static void work_at_the_bottom(small_t *small)
{
    work_deep(400000);
    swapcontext(&small->context, &loop);
    work_deep(100000);
}

static void run_deep(int id)
{
    small_t *small = &smalls[id];
    uintptr_t top = (uintptr_t)small->stack + STACK_BYTES;
    while (going) {
        descend(small, top, USED_BYTES, work_at_the_bottom);
        work_shallow(100000);
        swapcontext(&small->context, &loop);
    }
    left--;
}

// Everything the API has, with 4 KiB to go. Stack for libc (fopen...) is not the caller's stack's business.
static void call_api(small_t *small)
{
    char path[256];
    prof_options_t options = PROF_OPTIONS_INIT;
    options.frequency_hz = 5000;
    prof_t *profile = prof_start(&options);
    if (profile == NULL)
        fail("prof_start");
    work_deep(30000000);
    swapcontext(&small->context, &loop);
    work_deep(30000000);
    if (prof_stop(profile) != 0 || prof_resume(profile) != 0)
        fail("prof_stop, prof_resume");
    work_deep(30000000);
    if (prof_stop(profile) != 0)
        fail("prof_stop");
    strcpy(path, directory);
    strcat(path, "/");
    size_t len = strlen(path);
    path[len] = (char)('0' + (small - smalls));
    strcpy(path + len + 1, ".prof");
    if (prof_dump_stats(profile, path) != 0)
        fail("prof_dump_stats");
    strcpy(path + len + 1, ".folded");
    if (prof_dump(profile, "folded", path) != 0)
        fail("prof_dump");
    prof_free(profile);
}

static void run_api(int id)
{
    small_t *small = &smalls[id];
    uintptr_t top = (uintptr_t)small->stack + STACK_BYTES;
    descend(small, top, API_USED_BYTES, call_api);
    going = 0;
    left--;
}

static void make(small_t *small, void (*entry)(int), int id)
{
    unsigned char *memory =
        mmap(NULL, PAGE_BYTES + STACK_BYTES + PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, PAGE_BYTES, PROT_NONE) != 0)
        fail("mmap");
    small->stack = memory + PAGE_BYTES;
    for (size_t i = 0; i < CANARY_BYTES; i++)
        small->stack[i] = pattern(i);
    for (size_t i = 0; i < PAGE_BYTES; i++)
        small->stack[STACK_BYTES + i] = pattern(i);
    context_on(&small->context, small->stack, STACK_BYTES, &loop);
    makecontext(&small->context, (void (*)(void))entry, 1, id);
}

int main(int argc, char **argv)
{
    truth_thread_begin();
    if (argc < 3)
        return 2;
    int deep = strcmp(argv[1], "deep") == 0;
    directory = argv[2];
    uint64_t end = truth_cpu_ns() + (deep ? (uint64_t)(atof(argv[2]) * 1e9) : UINT64_MAX / 2);
    for (int i = 0; i < COROUTINES; i++)
        make(&smalls[i], deep ? run_deep : run_api, i);
    int done[COROUTINES] = {0};
    for (int i = 0; left > 0; i = (i + 1) % COROUTINES) {
        if (done[i])
            continue;
        int before = left;
        swapcontext(&loop, &smalls[i].context);
        done[i] = left != before;
        yields++;
        check_canaries(&smalls[i]);
        if (truth_cpu_ns() > end)
            going = 0;
    }
    EXPECT(shallow);
    EXPECT(deep);
    printf("YIELDS %lu\n", yields);
    truth_print_total();
    return 0;
}
