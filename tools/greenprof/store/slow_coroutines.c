// SPDX-License-Identifier: MIT
// A hanging process: all of its coroutines, with their states and stacks.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/format.h"
#include "command.h"
#include "live/census_print.h"
#include "live/coroutines.h"
#include "live/live_census.h"
#include "slow.h"

enum { ROWS = 200, MEMBERS = 20 };

static bool slow_coroutines_read_header(const char *path, gp_file_header_t *header)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is_read = fd >= 0 && pread(fd, header, sizeof(*header), 0) == (ssize_t)sizeof(*header);
    if (fd >= 0)
        close(fd);
    return is_read;
}

// Is a census of the capture's process? On another host, or in another container, the same number is another process.
static bool slow_coroutines_is_of_capture(const char *census, const char *capture)
{
    gp_file_header_t asked, known;
    return slow_coroutines_read_header(census, &asked) && slow_coroutines_read_header(capture, &known) &&
           asked.pid == known.pid && memcmp(asked.session, known.session, sizeof(asked.session)) == 0;
}

static void slow_coroutines_show(char *path, const char *subject, const char *trace, const char *head)
{
    const char *traces[] = {trace};
    const gp_arguments_t arguments = {
        .command = &gp_commands[GP_COMMAND_COROUTINES],
        .rows = ROWS,
        .members = MEMBERS,
        .choice.traces = {traces, trace != NULL},
    };
    printf("%s\n\n", head);
    gp_coroutines_show(&arguments, path, subject);
    printf("\n");
}

static void slow_coroutines_write_all(uint32_t pid, const char *capture, const char *trace)
{
    char subject[32], path[PATH_MAX];
    bool has_trace = strspn(trace, "0") < strlen(trace);
    snprintf(subject, sizeof(subject), "%u", pid);
    int fd = gp_live_census((pid_t)pid, subject);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    bool is_live = fd >= 0 && slow_coroutines_is_of_capture(path, capture);
    if (!is_live)
        snprintf(path, sizeof(path), "%s", capture);
    printf(is_live ? "As the process said when this folder was made.\n\n"
                   : "As the capture has it of its latest census: the process could not be asked.\n\n");
    if (has_trace)
        slow_coroutines_show(path, subject, trace, "Of this request:");
    slow_coroutines_show(path, subject, NULL, has_trace ? "Of all:" : "Of all coroutines:");
}

// A process of its own prints it: what is said of a capture goes to standard output.
bool gp_slow_coroutines(uint32_t pid, const char *capture, const char *trace, int folder, const char *name)
{
    int out = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (out < 0)
        return false;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (nowhere >= 0 && dup2(nowhere, STDERR_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
            slow_coroutines_write_all(pid, capture, trace);
        fflush(stdout);
        _exit(0);
    }
    close(out);
    while (child > 0 && waitpid(child, NULL, 0) < 0)
        ;
    return child > 0;
}
