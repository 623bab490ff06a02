// SPDX-License-Identifier: MIT
// Loaded first: fails the N-th call of one function, of those calls that greenprof's own code makes.
//
// Environment: FAULT_MODULE part of the name of the modules with calls that may fail, "" = the program itself;
// FAULT_CALL the function; FAULT_NUMBER N; FAULT_LASTS set = all calls from the N-th on; FAULT_LOG file that gets a
// line when a call is failed, and without FAULT_CALL, at exit, a line "FUNCTION CALLS" each. Signals: safe, once the
// first call is over; faults_fails() allocates nothing and takes no lock.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "faults.h"

#define CALLS(X)                                                                                                       \
    X(malloc)                                                                                                          \
    X(calloc)                                                                                                          \
    X(realloc)                                                                                                         \
    X(reallocarray)                                                                                                    \
    X(posix_memalign)                                                                                                  \
    X(strdup)                                                                                                          \
    X(mmap)                                                                                                            \
    X(mremap)                                                                                                          \
    X(mprotect)                                                                                                        \
    X(open)                                                                                                            \
    X(openat)                                                                                                          \
    X(fopen)                                                                                                           \
    X(opendir)                                                                                                         \
    X(read)                                                                                                            \
    X(pread)                                                                                                           \
    X(write)                                                                                                           \
    X(fwrite)                                                                                                          \
    X(writev)                                                                                                          \
    X(pwrite)                                                                                                          \
    X(ftruncate)                                                                                                       \
    X(fstat)                                                                                                           \
    X(stat)                                                                                                            \
    X(lseek)                                                                                                           \
    X(rename)                                                                                                          \
    X(mkostemp)                                                                                                        \
    X(fcntl)                                                                                                           \
    X(readlink)                                                                                                        \
    X(realpath)                                                                                                        \
    X(process_vm_readv)                                                                                                \
    X(sigaltstack)                                                                                                     \
    X(timer_create)                                                                                                    \
    X(timer_settime)                                                                                                   \
    X(perf_event_open)                                                                                                 \
    X(close_range)                                                                                                     \
    X(rt_tgsigqueueinfo)                                                                                               \
    X(pthread_key_create)                                                                                              \
    X(pthread_setspecific)                                                                                             \
    X(pthread_getattr_np)                                                                                              \
    X(pthread_create)                                                                                                  \
    X(sem_init)                                                                                                        \
    X(setenv)                                                                                                          \
    X(ioctl)                                                                                                           \
    X(mkdir)

#define NUMBER(name) CALL_##name,
enum call { CALLS(NUMBER) CALL_COUNT };
#define NAME(name) #name,
static const char *const names[] = {CALLS(NAME)};

enum { RANGES_MAX = 4, STREAM_FAILED = 0x20 };
static struct {
    uintptr_t lo, hi;
} ranges[RANGES_MAX];
static int range_count;
static uintptr_t base; // of the first of them
static _Atomic unsigned counts[CALL_COUNT];
static int failing_call = -1;
static unsigned failing_number;
static bool lasts;
static const char *log_path, *module;
static __typeof__(syscall) *libc_syscall;
static _Atomic int is_ready;

static int add_module(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    bool is_program = info->dlpi_name[0] == '\0';
    if (is_program ? module[0] != '\0' : module[0] == '\0' || strstr(info->dlpi_name, module) == NULL)
        return 0;
    for (int i = 0; i < info->dlpi_phnum && range_count < RANGES_MAX; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || (header->p_flags & PF_X) == 0)
            continue;
        base = range_count == 0 ? info->dlpi_addr : base;
        ranges[range_count].lo = info->dlpi_addr + header->p_vaddr;
        ranges[range_count].hi = ranges[range_count].lo + header->p_memsz;
        range_count++;
    }
    return module[0] == '\0';
}

static void find_call(const char *name)
{
    for (int i = 0; name != NULL && i < CALL_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            failing_call = i;
}

// By the first call of all, while there is one thread.
static void get_ready(void)
{
    is_ready = 1;
    const char *number = getenv("FAULT_NUMBER");
    libc_syscall = (__typeof__(syscall) *)(uintptr_t)dlsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), "syscall");
    module = getenv("FAULT_MODULE");
    log_path = getenv("FAULT_LOG");
    lasts = getenv("FAULT_LASTS") != NULL;
    failing_number = number != NULL ? (unsigned)atoi(number) : 0;
    find_call(getenv("FAULT_CALL"));
    if (module != NULL)
        dl_iterate_phdr(add_module, NULL);
    is_ready = 2;
}

static void note(const char *text)
{
    if (log_path == NULL)
        return;
    long fd = libc_syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    libc_syscall(SYS_write, fd, text, strlen(text));
    libc_syscall(SYS_close, fd);
}

// "failed 0x...": where in its module, for addr2line.
static void note_place(const void *caller)
{
    char line[32] = "failed 0x";
    size_t at = strlen(line);
    uintptr_t place = (uintptr_t)caller - base;
    for (int shift = 28; shift >= 0; shift -= 4)
        line[at++] = "0123456789abcdef"[place >> shift & 15];
    line[at] = '\n';
    note(line);
}

static bool is_ours(const void *caller)
{
    for (int i = 0; i < range_count; i++)
        if ((uintptr_t)caller >= ranges[i].lo && (uintptr_t)caller < ranges[i].hi)
            return true;
    return false;
}

static bool fails(enum call call, const void *caller, int error)
{
    if (is_ready == 0)
        get_ready();
    if (is_ready != 2 || !is_ours(caller))
        return false;
    unsigned number = atomic_fetch_add_explicit(&counts[call], 1, memory_order_relaxed) + 1;
    if ((int)call != failing_call || (lasts ? number < failing_number : number != failing_number))
        return false;
    if (number == failing_number)
        note_place(caller);
    errno = error;
    return true;
}

__attribute__((destructor)) static void print_counts(void)
{
    char line[64];
    if (is_ready != 2 || failing_call >= 0)
        return;
    for (int i = 0; i < CALL_COUNT; i++) {
        snprintf(line, sizeof(line), "%s %u\n", names[i], counts[i]);
        if (counts[i] > 0)
            note(line);
    }
}

#define CALLER __builtin_return_address(0)
#define NEXT(name)                                                                                                     \
    static __typeof__(name) *_Atomic next;                                                                             \
    if (next == NULL)                                                                                                  \
    next = (__typeof__(name) *)(uintptr_t)dlsym(RTLD_NEXT, #name)

// libc's own, which are there before anything can be asked for its address.
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

EXPORT void *malloc(size_t bytes)
{
    return fails(CALL_malloc, CALLER, ENOMEM) ? NULL : __libc_malloc(bytes);
}

EXPORT void *calloc(size_t count, size_t bytes)
{
    return fails(CALL_calloc, CALLER, ENOMEM) ? NULL : __libc_calloc(count, bytes);
}

EXPORT void *realloc(void *block, size_t bytes)
{
    return fails(CALL_realloc, CALLER, ENOMEM) ? NULL : __libc_realloc(block, bytes);
}

EXPORT void *reallocarray(void *block, size_t count, size_t bytes)
{
    size_t whole;
    if (__builtin_mul_overflow(count, bytes, &whole) || fails(CALL_reallocarray, CALLER, ENOMEM))
        return NULL;
    return __libc_realloc(block, whole);
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    *block = fails(CALL_posix_memalign, CALLER, ENOMEM) ? NULL : __libc_memalign(alignment, bytes);
    return *block != NULL ? 0 : ENOMEM;
}

EXPORT char *strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = fails(CALL_strdup, CALLER, ENOMEM) ? NULL : __libc_malloc(bytes);
    return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

#define WRAP(type, name, parameters, arguments, error, failed)                                                         \
    EXPORT type name parameters                                                                                        \
    {                                                                                                                  \
        NEXT(name);                                                                                                    \
        return fails(CALL_##name, CALLER, error) ? (failed) : next arguments;                                          \
    }

WRAP(void *, mmap, (void *at, size_t bytes, int protection, int flags, int fd, off_t offset),
     (at, bytes, protection, flags, fd, offset), ENOMEM, MAP_FAILED)
WRAP(int, mprotect, (void *at, size_t bytes, int protection), (at, bytes, protection), ENOMEM, -1)
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), EMFILE, NULL)
WRAP(DIR *, opendir, (const char *path), (path), EMFILE, NULL)
WRAP(ssize_t, read, (int fd, void *data, size_t bytes), (fd, data, bytes), EIO, -1)
WRAP(ssize_t, pread, (int fd, void *data, size_t bytes, off_t offset), (fd, data, bytes, offset), EIO, -1)
WRAP(ssize_t, write, (int fd, const void *data, size_t bytes), (fd, data, bytes), ENOSPC, -1)
WRAP(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count), ENOSPC, -1)
WRAP(ssize_t, pwrite, (int fd, const void *data, size_t bytes, off_t offset), (fd, data, bytes, offset), ENOSPC, -1)
WRAP(int, ftruncate, (int fd, off_t bytes), (fd, bytes), EIO, -1)
WRAP(int, fstat, (int fd, struct stat *status), (fd, status), EIO, -1)
WRAP(int, stat, (const char *path, struct stat *status), (path, status), EACCES, -1)
WRAP(off_t, lseek, (int fd, off_t offset, int from), (fd, offset, from), EIO, -1)
WRAP(int, rename, (const char *from, const char *to), (from, to), ENOSPC, -1)
WRAP(int, mkostemp, (char *path, int flags), (path, flags), EACCES, -1)
WRAP(ssize_t, readlink, (const char *path, char *text, size_t bytes), (path, text, bytes), EACCES, -1)
WRAP(char *, realpath, (const char *path, char *whole), (path, whole), EACCES, NULL)
WRAP(ssize_t, process_vm_readv,
     (pid_t pid, const struct iovec *to, unsigned long to_count, const struct iovec *from, unsigned long from_count,
      unsigned long flags),
     (pid, to, to_count, from, from_count, flags), EPERM, -1)
WRAP(int, sigaltstack, (const stack_t *stack, stack_t *old), (stack, old), ENOMEM, -1)
WRAP(int, timer_create, (clockid_t clock, struct sigevent *event, timer_t *timer), (clock, event, timer), EAGAIN, -1)
WRAP(int, timer_settime, (timer_t timer, int flags, const struct itimerspec *time, struct itimerspec *old),
     (timer, flags, time, old), EINVAL, -1)
WRAP(int, pthread_key_create, (pthread_key_t * key, void (*end)(void *)), (key, end), EAGAIN, EAGAIN)
WRAP(int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value), ENOMEM, ENOMEM)
WRAP(int, pthread_getattr_np, (pthread_t thread, pthread_attr_t *attributes), (thread, attributes), ENOMEM, ENOMEM)
WRAP(int, sem_init, (sem_t * semaphore, int shared, unsigned value), (semaphore, shared, value), EINVAL, -1)
WRAP(int, setenv, (const char *name, const char *value, int overwrite), (name, value, overwrite), ENOMEM, -1)
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), EACCES, -1)

EXPORT size_t fwrite(const void *data, size_t size, size_t count, FILE *file)
{
    NEXT(fwrite);
    if (!fails(CALL_fwrite, CALLER, ENOSPC))
        return next(data, size, count, file);
    file->_flags |= STREAM_FAILED; // as ferror() sees it
    return 0;
}

// With arguments that may be missing: passing on what is not there harms nothing.
#define OPTIONAL(last, from)                                                                                           \
    va_list list;                                                                                                      \
    va_start(list, from);                                                                                              \
    long last = va_arg(list, long);                                                                                    \
    va_end(list)

EXPORT int open(const char *path, int flags, ...)
{
    NEXT(open);
    OPTIONAL(mode, flags);
    return fails(CALL_open, CALLER, EMFILE) ? -1 : next(path, flags, mode);
}

EXPORT int openat(int folder, const char *path, int flags, ...)
{
    NEXT(openat);
    OPTIONAL(mode, flags);
    return fails(CALL_openat, CALLER, EMFILE) ? -1 : next(folder, path, flags, mode);
}

EXPORT int fcntl(int fd, int command, ...)
{
    NEXT(fcntl);
    OPTIONAL(argument, command);
    return fails(CALL_fcntl, CALLER, EMFILE) ? -1 : next(fd, command, argument);
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
    NEXT(ioctl);
    OPTIONAL(argument, request);
    bool is_question = request == PERF_EVENT_IOC_ID; // asks whether it is an event: cannot fail on one
    return !is_question && fails(CALL_ioctl, CALLER, EIO) ? -1 : next(fd, request, argument);
}

EXPORT void *mremap(void *at, size_t bytes, size_t wanted, int flags, ...)
{
    NEXT(mremap);
    OPTIONAL(to, flags);
    return fails(CALL_mremap, CALLER, ENOMEM) ? MAP_FAILED : next(at, bytes, wanted, flags, (void *)to);
}

// Calls that libc has no function for. Waiting, signals' masks and the like do not fail.
static bool fails_by_number(long number, const void *caller)
{
    switch (number) {
    case SYS_perf_event_open:
        return fails(CALL_perf_event_open, caller, EMFILE);
    case SYS_close_range:
        return fails(CALL_close_range, caller, ENOSYS);
    case SYS_rt_tgsigqueueinfo:
        return fails(CALL_rt_tgsigqueueinfo, caller, EAGAIN);
    default:
        return false;
    }
}

EXPORT long syscall(long number, ...)
{
    NEXT(syscall);
    va_list list;
    long words[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        words[i] = va_arg(list, long);
    va_end(list);
    if (fails_by_number(number, CALLER))
        return -1;
    return next(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

// The program's own calls come through libgreenprof-core, too: by the function that it exports.
bool faults_fails_thread(const void *caller)
{
    Dl_info info;
    if (dladdr(caller, &info) != 0 && info.dli_sname != NULL && strcmp(info.dli_sname, "pthread_create") == 0)
        return false;
    return fails(CALL_pthread_create, caller, EAGAIN);
}
