// SPDX-License-Identifier: MIT
// run: whether an engine that was asked for can be had. The library meets the same answers when the program is loaded;
// then it is too late to say so.
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "message.h"
#include "run_checks.h"

enum { PERIOD_NS = 1000000 };

// As src/core/signal/clock_perf.c opens its events: kernel time included.
static int run_engine_try_perf(void)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.size = sizeof(attr);
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_TASK_CLOCK;
    attr.sample_period = PERIOD_NS;
    attr.disabled = 1;
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

static int run_engine_try_cpu(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    timer_t timer;
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0)
        return -errno;
    timer_delete(timer);
    return 0;
}

// The usual reason why users may not use it.
static const char *run_engine_perf_reason(char *text, size_t size)
{
    int level;
    FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
    bool is_read = file != NULL && fscanf(file, "%d", &level) == 1;
    if (file != NULL)
        fclose(file);
    if (!is_read || level < 2)
        return "";
    snprintf(text, size, " (kernel.perf_event_paranoid is %d: it takes CAP_PERFMON, or 1)", level);
    return text;
}

int gp_run_check_engine(const char *engine)
{
    char text[128];
    const char *reason = "";
    if (engine == NULL || engine[0] == '\0')
        return 0; // the first that works
    bool is_perf = strcmp(engine, "perf") == 0;
    int error = is_perf ? run_engine_try_perf() : strcmp(engine, "cpu") == 0 ? run_engine_try_cpu() : 0;
    if (error == 0)
        return 0;
    if (is_perf && (error == -EACCES || error == -EPERM))
        reason = run_engine_perf_reason(text, sizeof(text));
    return gp_fail("run", "the %s engine cannot be had here: %s%s; without it, the first that works is taken", engine,
                   strerror(-error), reason);
}
