// SPDX-License-Identifier: MIT
#include "seccomp.h"

#include <dirent.h>
#include <errno.h>
#include <linux/audit.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bpf.h"
#include "base/filter_calls.h"
#include "live/live_target.h"
#include "message.h"

enum { TEXT_SIZE = 16384, NAME_SIZE = 96, MODE_STRICT = 1, MODE_FILTER = 2 };

typedef struct filters {
    int mode, count; // 0, 0 = it is under none
} filters_t;

// Read the filters of a process, or of a thread, "task/TID/status". Before Linux 5.9 the count is 0. False: it is gone.
static bool seccomp_read_filters(pid_t pid, const char *name, filters_t *filters)
{
    char text[TEXT_SIZE];
    *filters = (filters_t){0};
    if (!gp_target_read(pid, name, text, sizeof(text), NULL))
        return false;
    filters->mode = gp_target_last_number(text, "\nSeccomp:");
    filters->count = gp_target_last_number(text, "\nSeccomp_filters:");
    return true;
}

// A thread that has ended meanwhile is like all others.
static bool seccomp_is_other(pid_t pid, const char *tid, filters_t first)
{
    char name[NAME_SIZE];
    filters_t filters;
    snprintf(name, sizeof(name), "task/%.20s/status", tid);
    return seccomp_read_filters(pid, name, &filters) && (filters.mode != first.mode || filters.count != first.count);
}

static int seccomp_refuse_strict(const char *subject)
{
    return gp_fail(subject, "it is in seccomp's strict mode, which lets nothing be loaded into it");
}

int gp_seccomp_look(pid_t pid, const char *subject)
{
    char path[NAME_SIZE];
    filters_t first;
    bool is_mixed = false;
    seccomp_read_filters(pid, "status", &first);
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (struct dirent *entry; tasks != NULL && (entry = readdir(tasks)) != NULL;)
        is_mixed |= entry->d_name[0] != '.' && seccomp_is_other(pid, entry->d_name, first);
    if (tasks != NULL)
        closedir(tasks);
    if (is_mixed)
        return gp_fail(subject, "its threads are under different seccomp filters: it cannot be attached to");
    return first.mode == MODE_STRICT ? seccomp_refuse_strict(subject) : 0;
}

static enum gp_seccomp_need seccomp_need_of(const gp_seccomp_call_t *call, bool is_carried)
{
    if (call->need != GP_CALL_CARRIED)
        return call->need;
    return is_carried ? GP_CALL_ALLOWED : GP_CALL_SPARED;
}

static bool seccomp_is_good(enum gp_seccomp_need need, uint32_t word)
{
    uint32_t action = word & SECCOMP_RET_ACTION_FULL;
    if (need == GP_CALL_ASKED || action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG)
        return true;
    if (need == GP_CALL_FALLBACK)
        return word == (SECCOMP_RET_ERRNO | ENOSYS) || action == SECCOMP_RET_TRACE; // without a tracer, ENOSYS
    return need == GP_CALL_SPARED &&
           (action == SECCOMP_RET_ERRNO || action == SECCOMP_RET_TRACE || action == SECCOMP_RET_USER_NOTIF);
}

// Have one filter say its word to every call. Returns 0, -ENOENT where there are not as many, or another negative errno
// value.
static int seccomp_ask_filter(pid_t tid, long at, uint64_t code_at, uint32_t words[GP_FILTER_CALL_ROWS])
{
    long count = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, at, NULL);
    if (count < 0)
        return -errno;
    struct sock_filter *code = calloc((size_t)count + 1, sizeof(*code));
    if (code == NULL)
        return -ENOMEM;
    int error = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, at, code) == count ? 0 : -EIO;
    for (size_t i = 0; i < GP_FILTER_CALL_ROWS && error == 0; i++) {
        struct seccomp_data data = {
            .nr = (int)gp_seccomp_calls[i].number, .arch = AUDIT_ARCH_X86_64, .instruction_pointer = code_at};
        memcpy(data.args, gp_seccomp_calls[i].arguments, sizeof(gp_seccomp_calls[i].arguments));
        words[i] = gp_bpf_stricter(words[i], gp_bpf_run(code, (size_t)count, &data));
    }
    free(code);
    return error;
}

// Returns 0 where all filters were asked, or a negative errno value.
static int seccomp_ask_filters(pid_t tid, uint64_t code_at, uint32_t words[GP_FILTER_CALL_ROWS])
{
    int error = 0;
    for (size_t i = 0; i < GP_FILTER_CALL_ROWS; i++)
        words[i] = SECCOMP_RET_ALLOW;
    for (long at = 0; error == 0; at++)
        error = seccomp_ask_filter(tid, at, code_at, words);
    return error == -ENOENT ? 0 : error;
}

static bool seccomp_is_same_space(pid_t pid)
{
    char path[NAME_SIZE], mine[NAME_SIZE] = "", theirs[NAME_SIZE] = "";
    snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
    return readlink("/proc/self/ns/mnt", mine, sizeof(mine) - 1) > 0 &&
           readlink(path, theirs, sizeof(theirs) - 1) > 0 && strcmp(mine, theirs) == 0;
}

// A filter can only be added to, and is inherited: where the first process of a container, this one and the other are
// under as many, they are under the same.
static bool seccomp_is_shared(pid_t pid)
{
    filters_t mine, first, theirs;
    seccomp_read_filters(getpid(), "status", &mine);
    seccomp_read_filters(1, "status", &first);
    seccomp_read_filters(pid, "status", &theirs);
    return mine.mode == MODE_FILTER && first.mode == MODE_FILTER && mine.count > 0 && mine.count == first.count &&
           mine.count == theirs.count && seccomp_is_same_space(pid);
}

static void *seccomp_do_nothing(void *unused)
{
    return unused;
}

static void seccomp_on_signal(int number)
{
    (void)number;
}

static bool seccomp_is_to_rehearse(long number)
{
    return number != SYS_perf_event_open && number != SYS_clone && number != SYS_exit && number != SYS_rt_sigreturn &&
           number != SYS_restart_syscall;
}

// Never returns. A thread and a signal make the calls that are no use by themselves.
static void seccomp_rehearse(bool is_carried)
{
    const struct sigaction action = {.sa_handler = seccomp_on_signal};
    sigset_t one;
    pthread_t thread;
    sigemptyset(&one);
    sigaddset(&one, SIGPROF);
    if (sigaction(SIGPROF, &action, NULL) != 0 || sigprocmask(SIG_UNBLOCK, &one, NULL) != 0 || raise(SIGPROF) != 0 ||
        pthread_create(&thread, NULL, seccomp_do_nothing, NULL) != 0 || pthread_join(thread, NULL) != 0)
        _exit(EXIT_FAILED);
    for (size_t i = 0; i < GP_FILTER_CALL_ROWS; i++) {
        const uint64_t *arguments = gp_seccomp_calls[i].arguments;
        if (!seccomp_is_to_rehearse(gp_seccomp_calls[i].number))
            continue;
        errno = 0;
        syscall(gp_seccomp_calls[i].number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                arguments[5]);
        if (is_carried && gp_seccomp_calls[i].need == GP_CALL_CARRIED && errno != EFAULT) // as without a filter
            _exit(EXIT_FAILED);
    }
    _exit(0);
}

static bool seccomp_is_rehearsed(bool is_carried)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        seccomp_rehearse(is_carried);
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int gp_seccomp_judge(pid_t pid, pid_t tid, uint64_t code_at, bool is_carried, const char *subject)
{
    uint32_t words[GP_FILTER_CALL_ROWS];
    char name[NAME_SIZE];
    filters_t filters;
    snprintf(name, sizeof(name), "task/%d/status", (int)tid);
    if (!seccomp_read_filters(pid, name, &filters))
        return gp_fail(subject, "the process has ended");
    if (filters.mode != MODE_FILTER)
        return filters.mode == MODE_STRICT ? seccomp_refuse_strict(subject) : 0;
    int error = seccomp_ask_filters(tid, code_at, words);
    if (error != 0 && !seccomp_is_shared(pid))
        return gp_fail(subject, "it is under a seccomp filter that cannot be read from here: root can, outside of it");
    if (error != 0)
        return seccomp_is_rehearsed(is_carried)
                   ? 0
                   : gp_fail(subject, "its seccomp filter forbids a system call that attaching needs");
    for (size_t i = 0; i < GP_FILTER_CALL_ROWS; i++)
        if (!seccomp_is_good(seccomp_need_of(&gp_seccomp_calls[i], is_carried), words[i]))
            return gp_fail(subject, "its seccomp filter forbids %s(), which attaching needs", gp_seccomp_calls[i].name);
    return 0;
}
