// SPDX-License-Identifier: MIT
// Children, by every way there is, and what only a whole process can do.
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "features.h"

enum { CHILD_WORK = 1000, CLONE_STACK_BYTES = 64 << 10, STATUS_MAX = 63, OTHER_USER = 65534 };

extern char **environ;

// Returns the child's exit status.
static uint64_t wait_for(pid_t child)
{
    int status;
    pid_t got;
    if (child < 0)
        return features_fail("no child");
    do
        got = waitpid(child, &status, 0);
    while (got < 0 && errno == EINTR);
    if (got != child || !WIFEXITED(status) || WEXITSTATUS(status) > STATUS_MAX)
        return features_fail("a child ended in another way");
    return (uint64_t)WEXITSTATUS(status);
}

static _Noreturn void work_as_child(int id, int round)
{
    _exit((int)(features_work((uint64_t)(id + round), CHILD_WORK) & STATUS_MAX));
}

uint64_t feature_fork(int id, int round)
{
    pid_t child = fork();
    if (child == 0)
        work_as_child(id, round);
    return wait_for(child);
}

// _Fork() runs no fork handler.
uint64_t feature_raw_fork(int id, int round)
{
    pid_t child = _Fork();
    if (child == 0)
        work_as_child(id, round);
    return wait_for(child);
}

static const char *child_program(char path[4096])
{
    snprintf(path, 4096, "%s/child", getenv("STRESS_PROGRAMS"));
    return path;
}

uint64_t feature_fork_exec(int id, int round)
{
    char path[4096], number[16];
    snprintf(number, sizeof(number), "%d", id + round);
    char *words[] = {(char *)child_program(path), number, NULL};
    pid_t child = fork();
    if (child == 0) {
        execve(path, words, environ);
        _exit(126);
    }
    return wait_for(child);
}

static uint64_t vfork_and_exec(char *const *words)
{
    pid_t child = vfork();
    if (child == 0) {
        execve(words[0], words, environ);
        _exit(126);
    }
    return wait_for(child);
}

static uint64_t vfork_and_exit(void)
{
    pid_t child = vfork();
    if (child == 0)
        _exit(5);
    return wait_for(child);
}

uint64_t feature_vfork(int id, int round)
{
    char path[4096], number[16];
    snprintf(number, sizeof(number), "%d", id + round);
    char *words[] = {(char *)child_program(path), number, NULL};
    return vfork_and_exec(words) << 16 | vfork_and_exit();
}

uint64_t feature_posix_spawn(int id, int round)
{
    char path[4096], number[16];
    pid_t child;
    snprintf(number, sizeof(number), "%d", id + round);
    char *words[] = {(char *)child_program(path), number, NULL};
    if (posix_spawn(&child, path, NULL, NULL, words, environ) != 0)
        return features_fail("posix_spawn");
    uint64_t worked = wait_for(child);
    return worked << 16 | (uint64_t)posix_spawn(&child, "/nowhere/at/all", NULL, NULL, words, environ);
}

static int run_clone(void *seed)
{
    return (int)(features_work((uint64_t) * (int *)seed, CHILD_WORK) & STATUS_MAX);
}

// As fork() by a bare system call, as a process on the same memory, and as one on the same memory that is waited for.
uint64_t feature_clone(int id, int round)
{
    int seed = id + round;
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0L, 0L, 0L, 0L);
    if (child == 0)
        work_as_child(id, round);
    uint64_t sum = wait_for(child);
    char *stack = mmap(NULL, CLONE_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED)
        return features_fail("mmap");
    sum = sum << 16 | wait_for(clone(run_clone, stack + CLONE_STACK_BYTES, CLONE_VM | SIGCHLD, &seed));
    sum = sum << 16 | wait_for(clone(run_clone, stack + CLONE_STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, &seed));
    munmap(stack, CLONE_STACK_BYTES);
    return sum;
}

// As OpenBLAS has them: the workers end before a fork, and begin anew after it.
static pthread_t worker;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static bool is_wanted, has_failed;

static void *wait_for_the_end(void *unused)
{
    pthread_mutex_lock(&gate);
    while (is_wanted)
        pthread_cond_wait(&opened, &gate);
    pthread_mutex_unlock(&gate);
    return unused;
}

static void begin_worker(void)
{
    is_wanted = true;
    has_failed |= pthread_create(&worker, NULL, wait_for_the_end, NULL) != 0;
}

static void end_worker(void)
{
    pthread_mutex_lock(&gate);
    is_wanted = false;
    pthread_cond_broadcast(&opened);
    pthread_mutex_unlock(&gate);
    has_failed |= pthread_join(worker, NULL) != 0;
}

static void set_handlers(void)
{
    begin_worker();
    pthread_atfork(end_worker, begin_worker, begin_worker);
}

uint64_t feature_fork_handlers(int id, int round)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_handlers);
    pthread_mutex_lock(&features_mutex);
    uint64_t status = feature_fork(id, round);
    bool failed = has_failed;
    pthread_mutex_unlock(&features_mutex);
    return failed ? features_fail("a fork handler") : status;
}

// To where there is no /proc, as root may go; then on as another program.
uint64_t feature_chroot_exec(int id, int round)
{
    char number[16];
    snprintf(number, sizeof(number), "%d", id + round);
    char *words[] = {"/child_static", number, NULL};
    pid_t child = fork();
    if (child == 0) {
        if (chroot(getenv("STRESS_PROGRAMS")) != 0 || chdir("/") != 0)
            _exit(125);
        features_work((uint64_t)id, CHILD_WORK);
        execve(words[0], words, environ);
        _exit(126);
    }
    return wait_for(child);
}

// glibc has every thread change its ids, by a signal of its own. For good at the last, where the process may.
uint64_t feature_setuid(int id, int round)
{
    uid_t own = getuid();
    pthread_mutex_lock(&features_mutex);
    int failed = setgid(getgid()) != 0;
    failed |= setreuid(own, own) != 0;
    if (own == 0)
        failed |=
            setresuid((uid_t)-1, OTHER_USER, 0) != 0 || geteuid() != OTHER_USER || setresuid((uid_t)-1, 0, 0) != 0;
    pthread_mutex_unlock(&features_mutex);
    return failed ? features_fail("setuid") : (uint64_t)(id + round);
}
