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

#include "coro/threads.h"

int gp_task_each(void (*visit)(pid_t tid, void *argument), void *argument)
{
    DIR *directory = opendir("/proc/self/task");
    if (directory == NULL)
        return -errno;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        int tid = atoi(entry->d_name);
        if (tid > 0 && !gp_thread_is_own(tid))
            visit(tid, argument);
    }
    closedir(directory);
    return 0;
}

char gp_task_state(pid_t tid)
{
    char text[128];
    snprintf(text, sizeof(text), "/proc/self/task/%d/stat", (int)tid);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, text, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t length = syscall(SYS_read, fd, text, sizeof(text) - 1);
    syscall(SYS_close, fd);
    text[length > 0 ? length : 0] = '\0';
    const char *end = strrchr(text, ')');
    return end != NULL && end[1] != '\0' ? end[2] : 0;
}
