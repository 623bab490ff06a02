// SPDX-License-Identifier: MIT
// Little memory and few descriptors. Promises to the program hold beside a reserve for others in its process: the
// numbers below are in doc/limits.md.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "features.h"

enum {
    DESCRIPTORS = 64,
    DESCRIPTORS_USED = 32,
    OPEN_MAX = 4096,
    QUEUED = 200,
    STRAYS = 50,
    NAPS = 16,
    NAP_NS = 1000000,
    BLOCK_BYTES = 1 << 20
};
#define MEMORY_RESERVE ((size_t)256 << 20)
#define TIGHT_RESERVE  ((size_t)256 << 10)
#define TOO_MUCH       ((size_t)64 << 30)

static size_t address_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL && fscanf(file, "%lu", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void limit_memory(size_t reserve)
{
    size_t bytes = address_space() + reserve;
    setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes});
}

static void limit_memory_amply(void)
{
    limit_memory(MEMORY_RESERVE);
}

static void limit_memory_tightly(void)
{
    limit_memory(TIGHT_RESERVE);
}

static bool can_map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED)
        munmap(memory, bytes);
    return memory != MAP_FAILED;
}

uint64_t feature_rlimit_as(int id, int round)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, limit_memory_amply);
    char *block = malloc(BLOCK_BYTES);
    if (block == NULL)
        return features_fail("malloc");
    memset(block, 1, BLOCK_BYTES);
    free(block);
    return can_map(TOO_MUCH) ? features_fail("there is no limit") : (uint64_t)(id + round);
}

// Too little for what greenprof asks for: it is to do without.
uint64_t feature_rlimit_as_tight(int id, int round)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, limit_memory_tightly);
    return can_map(TOO_MUCH) ? features_fail("there is no limit") : (uint64_t)(id + round);
}

static void limit_descriptors(void)
{
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){DESCRIPTORS, DESCRIPTORS});
}

// Returns how many of `wanted` could be opened; they are closed again.
static int open_many(int wanted)
{
    int opened[DESCRIPTORS], count = 0;
    while (count < wanted && (opened[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        count++;
    features_work(1, 200); // is sampled while there are so few
    for (int i = 0; i < count; i++)
        close(opened[i]);
    return count;
}

// To the very limit, of which nothing follows but that the program goes on; then what is promised.
uint64_t feature_rlimit_nofile(int id, int round)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, limit_descriptors);
    pthread_mutex_lock(&features_mutex);
    open_many(DESCRIPTORS);
    int promised = open_many(DESCRIPTORS_USED);
    pthread_mutex_unlock(&features_mutex);
    return promised == DESCRIPTORS_USED ? (uint64_t)(id + round) : features_fail("too few descriptors are left");
}

static bool is_kept(int fd)
{
    for (const int *kept = features_kept_descriptors; *kept >= 0; kept++)
        if (*kept == fd)
            return true;
    return false;
}

// Others stand in the place of all that are open, and are closed again.
uint64_t feature_replaced_descriptors(int id, int round)
{
    pthread_mutex_lock(&features_mutex);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (int fd = 3; fd < OPEN_MAX; fd++)
        if (!is_kept(fd) && fd != null && fcntl(fd, F_GETFD) >= 0)
            dup3(null, fd, O_CLOEXEC);
    features_work(1, 200);
    for (int fd = 3; fd < OPEN_MAX; fd++)
        if (!is_kept(fd))
            close(fd);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool is_usable = fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC && close(fd) == 0;
    pthread_mutex_unlock(&features_mutex);
    return is_usable ? (uint64_t)(id + round) : features_fail("open");
}

static void *nap(void *unused)
{
    for (;;)
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    return unused;
}

// Each of whom greenprof asks the kernel about.
static void begin_naps(void)
{
    pthread_t thread;
    for (int i = 0; i < NAPS; i++)
        if (pthread_create(&thread, NULL, nap, NULL) == 0)
            pthread_detach(thread);
}

static bool are_there(const int ends[2])
{
    char byte = 1;
    return write(ends[1], &byte, 1) == 1 && read(ends[0], &byte, 1) == 1;
}

// As bash does: it closes once more what it has closed, and takes numbers that are free. Files opened there stay the
// program's own.
uint64_t feature_stray_close(int id, int round)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int lost = 0, ends[2];
    pthread_once(&once, begin_naps);
    pthread_mutex_lock(&features_mutex);
    for (int i = 0; i < STRAYS && lost == 0; i++) {
        lost += pipe2(ends, O_CLOEXEC) != 0;
        close(ends[0]);
        close(ends[1]);
        for (int k = 0; k < 2; k++)
            lost += close(ends[k]) == 0;
        lost += pipe2(ends, O_CLOEXEC) != 0;
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC), highest = ends[1] > ends[0] ? ends[1] : ends[0];
        int free_one =
            (null > highest ? null : highest) + 1; // the pipe may be above: a lower number is free since then
        lost += dup2(null, free_one) != free_one;
        features_work(1, 5);
        lost += !are_there(ends) || fcntl(free_one, F_GETFD) != 0 || close(free_one) != 0 || close(null) != 0 ||
                close(ends[0]) != 0 || close(ends[1]) != 0;
    }
    pthread_mutex_unlock(&features_mutex);
    return lost == 0 ? (uint64_t)(id + round) : features_fail("a descriptor of the program's was closed");
}

static void limit_queue(void)
{
    setrlimit(RLIMIT_SIGPENDING, &(struct rlimit){QUEUED, QUEUED});
}

// No signal that comes has a place in the user's queue, and so none has a siginfo, while the program works.
uint64_t feature_signal_queue(int id, int round)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct timespec none = {0};
    sigset_t one, old;
    siginfo_t info;
    pthread_once(&once, limit_queue);
    pthread_mutex_lock(&features_mutex);
    sigemptyset(&one);
    sigaddset(&one, SIGRTMIN + 8);
    pthread_sigmask(SIG_BLOCK, &one, &old);
    pthread_t self = pthread_self();
    int queued = 0;
    while (pthread_sigqueue(self, SIGRTMIN + 8, (union sigval){.sival_int = 0}) == 0)
        queued++;
    uint64_t value = features_work((uint64_t)(id + round), 1000);
    while (sigtimedwait(&one, &info, &none) > 0)
        queued--;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_mutex_unlock(&features_mutex);
    return queued == 0 ? value : features_fail("a signal is missing");
}

// As a daemon does: all descriptors, greenprof's among them.
uint64_t feature_closed_descriptors(int id, int round)
{
    pthread_mutex_lock(&features_mutex);
    for (int fd = 3; fd < OPEN_MAX; fd++)
        if (!is_kept(fd))
            close(fd);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool is_usable = fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC && close(fd) == 0;
    pthread_mutex_unlock(&features_mutex);
    return is_usable ? (uint64_t)(id + round) : features_fail("open");
}
