// SPDX-License-Identifier: MIT
// Threads that come and go, are cancelled, or stand in the way.
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "features.h"

enum { SMALL_PIPE = 4096, PIPE_BYTES = 32 << 10, LATE_NS = 100000 };

static void *work_on_thread(void *value)
{
    *(uint64_t *)value = features_work(*(uint64_t *)value, 50);
    return value;
}

static uint64_t run_thread(uint64_t value)
{
    pthread_t thread;
    void *result = NULL;
    if (pthread_create(&thread, NULL, work_on_thread, &value) != 0 || pthread_join(thread, &result) != 0)
        return features_fail("pthread_create");
    return result == &value ? value : features_fail("pthread_join");
}

uint64_t feature_thread_churn(int id, int round)
{
    return run_thread((uint64_t)(id + round)) ^ run_thread((uint64_t)(id - round));
}

static void count_up(void *count)
{
    ++*(int *)count;
}

typedef struct victim {
    int type, cleaned;
    volatile int begun;
} victim_t;

static void *work_until_cancelled(void *argument)
{
    victim_t *victim = argument;
    pthread_cleanup_push(count_up, &victim->cleaned);
    pthread_setcanceltype(victim->type, NULL);
    victim->begun = 1;
    for (uint64_t value = 1;; value = features_work(value, 1))
        if (victim->type == PTHREAD_CANCEL_DEFERRED)
            pthread_testcancel();
    pthread_cleanup_pop(1);
    return NULL;
}

static uint64_t cancel(int type)
{
    victim_t victim = {.type = type};
    pthread_t thread;
    void *result = NULL;
    if (pthread_create(&thread, NULL, work_until_cancelled, &victim) != 0)
        return features_fail("pthread_create");
    while (!victim.begun)
        nanosleep(&(struct timespec){.tv_nsec = LATE_NS}, NULL);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    return result == PTHREAD_CANCELED && victim.cleaned == 1 ? (uint64_t)type : features_fail("cancellation");
}

uint64_t feature_cancellation(int id, int round)
{
    return cancel(PTHREAD_CANCEL_DEFERRED) << 16 ^ cancel(PTHREAD_CANCEL_ASYNCHRONOUS) << 32 ^ (uint64_t)(id + round);
}

typedef struct reading {
    int fd;
    uint64_t sum, bytes;
} reading_t;

static void *read_late(void *argument)
{
    reading_t *reading = argument;
    unsigned char piece[1024];
    for (;;) {
        nanosleep(&(struct timespec){.tv_nsec = LATE_NS}, NULL);
        ssize_t got = read(reading->fd, piece, sizeof(piece));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return NULL;
        for (ssize_t i = 0; i < got; i++)
            reading->sum = reading->sum * 31 + piece[i];
        reading->bytes += (uint64_t)got;
    }
}

// More than the pipe holds: the writer stands until the reader comes. A signal may end a write early (pipe(7)).
static bool write_all(int fd, const unsigned char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(fd, data, bytes);
        if (written < 0 && errno != EINTR)
            return false;
        data += written > 0 ? written : 0;
        bytes -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

uint64_t feature_stalled_pipe(int id, int round)
{
    static unsigned char data[PIPE_BYTES];
    int ends[2];
    pthread_t thread;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return features_fail("pipe");
    fcntl(ends[1], F_SETPIPE_SZ, SMALL_PIPE);
    reading_t reading = {.fd = ends[0]};
    if (pthread_create(&thread, NULL, read_late, &reading) != 0)
        return features_fail("pthread_create");
    pthread_mutex_lock(&features_mutex);
    for (int i = 0; i < PIPE_BYTES; i++)
        data[i] = (unsigned char)(i * (id + 1) + round);
    bool written = write_all(ends[1], data, sizeof(data));
    pthread_mutex_unlock(&features_mutex);
    close(ends[1]);
    pthread_join(thread, NULL);
    close(ends[0]);
    return written ? reading.sum ^ reading.bytes : features_fail("write");
}

// Calls that a sandbox leaves out: the system calls of timers and counters, and looks into processes.
static bool refuse_clocks(void)
{
#if defined(__x86_64__)
#define REFUSE(name)                                                                                                   \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(perf_event_open),
        REFUSE(timer_create),
        REFUSE(process_vm_readv),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
#else
    return false;
#endif
}

static pthread_once_t once_refused = PTHREAD_ONCE_INIT;
static bool has_refused;

static void refuse_once(void)
{
    has_refused = getenv("STRESS_FILTERED") != NULL || refuse_clocks();
}

uint64_t feature_seccomp(int id, int round)
{
    pthread_once(&once_refused, refuse_once);
    return has_refused ? run_thread((uint64_t)(id + round)) : features_fail("seccomp");
}

void feature_seccomp_before(char **command)
{
    if (getenv("STRESS_FILTERED") != NULL || !refuse_clocks())
        return;
    setenv("STRESS_FILTERED", "1", 1);
    execv("/proc/self/exe", command);
}
