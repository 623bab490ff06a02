// SPDX-License-Identifier: MIT
// Goes on while its capture is not read: works, forks, starts and stops profiles. Prints how often.
#include "truth.h"

#include <sys/wait.h>
#include <unistd.h>

#include <greenprof/prof.h>

WORK(busy)

static int fork_once(void)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

static int profile_once(void)
{
    prof_t *profile = prof_start(NULL);
    work_busy(20000000);
    int stopped = profile != NULL && prof_stop(profile) == 0;
    prof_free(profile);
    return stopped;
}

int main(void)
{
    int forks = 0, profiles = 0;
    work_busy(1000000000); // more than fits into a pipe
    for (int i = 0; i < 20; i++) {
        forks += fork_once();
        profiles += profile_once();
    }
    work_busy(500000000);
    printf("forks %d\nprofiles %d\n", forks, profiles);
    return 0;
}
