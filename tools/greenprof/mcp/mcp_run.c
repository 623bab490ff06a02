// SPDX-License-Identifier: MIT
// A command in a child: what it prints is in memory, its memory and its failures are its own.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "live/control.h"
#include "mcp.h"
#include "message.h"

enum { OUTPUT_BYTES = 1 << 20, MESSAGES_BYTES = 1 << 16, PATIENCE_MS = 600000 };

// A file that cannot be written beyond its size; the shared position says how much has been.
static int mcp_run_file(off_t bytes)
{
    int fd = memfd_create("greenprof-mcp", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, bytes) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

// The capture of a process in its place.
static int mcp_run_open(char **operand, char path[GP_CONTROL_PATH_SIZE])
{
    char *operands[] = {*operand, NULL};
    const gp_arguments_t arguments = {.command = gp_command_find("dump"), .operands = operands, .operand_count = 1};
    int fd = -1, status = gp_control_open_capture(&arguments, path, &fd);
    *operand = path;
    return status;
}

static _Noreturn void mcp_run_child(int argc, char **argv, int process, const int files[2])
{
    char path[GP_CONTROL_PATH_SIZE];
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC), status = EXIT_FAILED;
    if (nothing >= 0 && dup2(nothing, 0) == 0 && dup2(files[0], 1) == 1 && dup2(files[1], 2) == 2) {
        status = process >= 0 ? mcp_run_open(&argv[process], path) : 0;
        if (status == 0)
            status = gp_command_call(argc, argv);
    }
    fflush(NULL);
    _exit(status);
}

json_t *gp_mcp_text(char *text, size_t size)
{
    json_t *string = json_stringn(text, size);
    for (size_t i = 0; string == NULL && i < size; i++)
        text[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
    return string != NULL ? string : json_stringn(text, size);
}

// The text in a file, as a string.
static json_t *mcp_run_text(int fd)
{
    off_t len = lseek(fd, 0, SEEK_CUR);
    char *text = malloc((size_t)(len > 0 ? len : 0) + 1);
    ssize_t got = text != NULL && len > 0 ? pread(fd, text, (size_t)len, 0) : 0;
    json_t *string = text != NULL ? gp_mcp_text(text, got > 0 ? (size_t)got : 0) : NULL;
    free(text);
    return string;
}

// Wait for the child, which is ended where that takes too long. Returns whether it has a status.
static bool mcp_run_wait(pid_t child, int *status)
{
    struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN}; // none before Linux 5.3
    if (end.fd >= 0) {
        if (poll(&end, 1, PATIENCE_MS) == 0)
            kill(child, SIGKILL);
        close(end.fd);
    }
    pid_t ended;
    while ((ended = waitpid(child, status, 0)) < 0 && errno == EINTR)
        continue;
    return ended == child;
}

static json_t *mcp_run_answer(const int files[2], int status)
{
    bool is_large = lseek(files[0], 0, SEEK_CUR) >= OUTPUT_BYTES;
    bool has_failed = is_large || status != 0;
    json_t *said = mcp_run_text(files[1]), *content = json_array();
    json_t *text = is_large      ? json_string("The answer is larger than 1 MiB: ask for fewer rows, or a part.\n")
                   : status == 0 ? mcp_run_text(files[0])
                                 : json_string("");
    char killed[96];
    if (WIFSIGNALED(status)) {
        snprintf(killed, sizeof(killed),
                 "The command was ended by signal %d: it failed, or took longer than 10 minutes.\n", WTERMSIG(status));
        json_array_append_new(content, json_pack("{s:s, s:s}", "type", "text", "text", killed));
    }
    json_t *const parts[] = {text, said};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (json_string_length(parts[i]) > 0)
            json_array_append_new(content, json_pack("{s:s, s:O}", "type", "text", "text", parts[i]));
    json_decref(text);
    json_decref(said);
    return json_pack("{s:o, s:b}", "content", content, "isError", has_failed);
}

json_t *gp_mcp_run(int argc, char **argv, int process)
{
    signal(SIGCHLD, SIG_DFL); // ignored, as it may be inherited, it leaves no status of a child
    int files[2] = {mcp_run_file(OUTPUT_BYTES), mcp_run_file(MESSAGES_BYTES)}, status = 0;
    pid_t server = getpid(), child = files[0] >= 0 && files[1] >= 0 ? fork() : -1;
    if (child == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == server)
        mcp_run_child(argc, argv, process, files);
    if (child == 0)
        _exit(EXIT_FAILED);
    json_t *answer = child > 0 && mcp_run_wait(child, &status) ? mcp_run_answer(files, status) : NULL;
    for (size_t i = 0; i < 2; i++)
        if (files[i] >= 0)
            close(files[i]);
    return answer;
}
