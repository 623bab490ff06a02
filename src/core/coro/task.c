// SPDX-License-Identifier: MIT
#include "coro/task.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "coro/own_list.h"

enum { STATUS_SIZE = 4096 };

// A program in another root or mount namespace may find a /proc of another process id namespace there: its numbers are
// of other threads.
static bool task_is_proc_of_this_namespace(void)
{
    char number[16] = "";
    return readlink("/proc/self", number, sizeof(number) - 1) > 0 && atoi(number) == getpid();
}

int gp_task_each(void (*visit)(pid_t tid, void *argument), void *argument)
{
    DIR *directory = gp_descriptor_entries(AT_FDCWD, "/proc/self/task");
    if (directory == NULL)
        return -errno;
    if (!task_is_proc_of_this_namespace()) {
        closedir(directory);
        return -ESRCH;
    }
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        int tid = atoi(entry->d_name);
        if (tid > 0 && !gp_thread_is_own(tid))
            visit(tid, argument);
    }
    closedir(directory);
    return 0;
}

bool gp_task_read(pid_t tid, const char *name, char *text, size_t size)
{
    snprintf(text, size, "/proc/self/task/%d/%s", (int)tid, name);
    int fd = gp_descriptor_open(AT_FDCWD, text, O_RDONLY, 0);
    ssize_t length = fd >= 0 ? syscall(SYS_read, fd, text, size - 1) : 0;
    text[length > 0 ? length : 0] = '\0';
    if (fd >= 0)
        syscall(SYS_close, fd);
    return length > 0;
}

char gp_task_state(pid_t tid)
{
    char text[128];
    gp_task_read(tid, "stat", text, sizeof(text));
    const char *end = strrchr(text, ')');
    return end != NULL && end[1] != '\0' ? end[2] : 0;
}

// Is a signal in the set that follows `label`?
static bool task_is_in_set(const char *status, const char *label, int signal_number)
{
    const char *set = strstr(status, label);
    return set != NULL && (strtoull(set + strlen(label), NULL, 16) >> (signal_number - 1) & 1) != 0;
}

bool gp_task_is_there(pid_t tid)
{
    int saved = errno;
    bool is_there = syscall(SYS_tgkill, getpid(), tid, 0) == 0 || errno != ESRCH;
    errno = saved;
    return is_there;
}

// A thread about to go has neither masks nor the number of threads in the kernel any more: both are 0 then. Source:
// Linux, fs/proc/array.c, task_sig().
bool gp_task_takes(pid_t tid, int signal_number)
{
    static const char label[] = "\nThreads:\t";
    char text[STATUS_SIZE];
    gp_task_read(tid, "status", text, sizeof(text));
    const char *threads = strstr(text, label);
    return threads != NULL && atoi(threads + strlen(label)) > 0 && !task_is_in_set(text, "\nSigBlk:", signal_number);
}

bool gp_task_holds_back(pid_t tid, int signal_number)
{
    char text[STATUS_SIZE];
    gp_task_read(tid, "status", text, sizeof(text));
    return task_is_in_set(text, "\nSigPnd:", signal_number) && task_is_in_set(text, "\nSigBlk:", signal_number);
}

static int task_number(const char *status, const char *label)
{
    const char *number = strstr(status, label);
    return number != NULL ? atoi(number + strlen(label)) : 0;
}

bool gp_task_differs(pid_t tid)
{
    char its[STATUS_SIZE], mine[STATUS_SIZE];
    return gp_task_read(tid, "status", its, sizeof(its)) &&
           gp_task_read((pid_t)syscall(SYS_gettid), "status", mine, sizeof(mine)) &&
           (task_number(its, "\nSeccomp:") != task_number(mine, "\nSeccomp:") ||
            task_number(its, "\nSeccomp_filters:") != task_number(mine, "\nSeccomp_filters:"));
}

bool gp_task_run_delay(pid_t tid, uint64_t *ns)
{
    char text[128], *end;
    if (!gp_task_read(tid, "schedstat", text, sizeof(text)))
        return false;
    strtoull(text, &end, 10); // on a processor
    *ns = strtoull(end, NULL, 10);
    return *end == ' ';
}

bool gp_task_voluntary_switches(pid_t tid, uint64_t *switches)
{
    static const char label[] = "\nvoluntary_ctxt_switches:";
    char text[STATUS_SIZE];
    gp_task_read(tid, "status", text, sizeof(text));
    const char *count = strstr(text, label);
    if (count != NULL)
        *switches = strtoull(count + strlen(label), NULL, 10);
    return count != NULL;
}
