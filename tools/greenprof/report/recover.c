// SPDX-License-Identifier: MIT
// greenprof recover: captures of programs that were killed.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/killed/recovery.h"
#include "capture/ring_file.h"
#include "command.h"
#include "message.h"
#include "output_guard.h"
#include "print.h"

#define SUFFIX ".greenprof"

typedef struct job {
    const char *path;
    char output[PATH_MAX];
    int fd;
    char rings[PATH_MAX];
    const char *trouble; // with it; NULL = none
    gp_recovery_t recovery;
} job_t;

// service.greenprof becomes service-recovered.greenprof.
static int recover_name_output(job_t *job, const char *asked)
{
    size_t len = strlen(job->path), suffix = strlen(SUFFIX);
    bool has_suffix = len > suffix && strcmp(job->path + len - suffix, SUFFIX) == 0;
    int stem = (int)(has_suffix ? len - suffix : len);
    int written = asked != NULL ? snprintf(job->output, sizeof(job->output), "%s", asked)
                                : snprintf(job->output, sizeof(job->output), "%.*s-recovered%s", stem, job->path,
                                           has_suffix ? SUFFIX : "");
    return written < (int)sizeof(job->output) ? 0 : gp_fail(job->path, "%s", strerror(ENAMETOOLONG));
}

static int recover_write_recovered(gp_output_t *output, void *context)
{
    const job_t *job = context;
    if (output->temporary == NULL)
        return gp_fail(job->output, "is not a regular file");
    return gp_recovery_write(&job->recovery, job->fd, output->temporary);
}

// Without it, or where it cannot be had, the capture is recovered all the same.
static void recover_take_rings(job_t *job)
{
    if (snprintf(job->rings, sizeof(job->rings), "%s" GP_RING_FILE_SUFFIX, job->path) >= (int)sizeof(job->rings))
        return;
    int fd = open(job->rings, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return;
    int error = fd < 0 ? -errno : gp_recovery_take_rings(&job->recovery, fd, job->fd);
    if (error != 0)
        job->trouble = error == -ESTALE   ? "of another recording"
                       : error == -ENOMSG ? "nothing that this greenprof reads"
                                          : strerror(-error);
    if (fd >= 0)
        close(fd);
}

static void recover_print_rings(const job_t *job)
{
    const gp_recovery_rings_t *rings = job->recovery.rings;
    if (job->trouble != NULL)
        printf("; %s is left out: %s", job->rings, job->trouble);
    if (rings == NULL)
        return;
    printf("; of them %" PRIu64 " samples and %" PRIu64 " ended spans are from %s", rings->samples, rings->spans,
           job->rings);
    if (rings->unknown_frames > 0)
        printf(", with %" PRIu64 " unknown frames", rings->unknown_frames);
}

static void recover_print_what(const job_t *job)
{
    const gp_recovery_t *recovery = &job->recovery;
    uint64_t left_out = recovery->bytes - recovery->part.to;
    printf("%s: ", job->output);
    gp_print_seconds(recovery->last_ns, 0);
    printf(" s, %" PRIu64 " samples, %zu span%s open", recovery->samples, recovery->open,
           recovery->open == 1 ? "" : "s");
    if (left_out > 0)
        printf("; the last %" PRIu64 " bytes were half written and are left out", left_out);
    recover_print_rings(job);
    printf("; next: greenprof explain %s\n", job->output);
}

static int recover(job_t *job, bool is_asked)
{
    char error[GP_READER_ERROR_SIZE];
    if (gp_recovery_look(&job->recovery, job->fd, error) < 0)
        return gp_fail(job->path, "%s", error);
    if (job->recovery.summary.ended && !is_asked) {
        printf("%s: has its end; there is nothing to recover\n", job->path);
        return 0;
    }
    if (!job->recovery.summary.ended)
        recover_take_rings(job);
    int result = gp_output_guarded_named(job->output, recover_write_recovered, job);
    if (result < 0)
        return gp_fail(job->output, "%s", strerror(-result));
    if (result == 0)
        recover_print_what(job);
    return result;
}

static int recover_file(const char *path, const char *asked)
{
    struct stat state;
    job_t job = {.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (job.fd < 0)
        return gp_fail(path, "%s", strerror(errno));
    bool is_file = fstat(job.fd, &state) == 0 && S_ISREG(state.st_mode);
    int status = is_file ? recover_name_output(&job, asked) : gp_fail(path, "is not a regular file");
    if (status == 0)
        status = recover(&job, asked != NULL);
    close(job.fd);
    gp_recovery_free(&job.recovery);
    return status;
}

int gp_command_recover(const gp_arguments_t *arguments)
{
    int status = 0;
    if (arguments->output != NULL && arguments->operand_count > 1)
        return gp_usage_error("recover", "--output is of one FILE");
    if (arguments->output != NULL && (arguments->output[0] == '\0' || strcmp(arguments->output, "-") == 0))
        return gp_fail("-o", "a capture needs a file with a name");
    for (int i = 0; i < arguments->operand_count; i++)
        status |= recover_file(arguments->operands[i], arguments->output);
    int finished = gp_finish_stdout();
    return status != 0 ? status : finished;
}
