// SPDX-License-Identifier: MIT
#include "ship/send/capture_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX ".greenprof"

// A part of a name, '/' and what is no text as '_': never "." or "..", and never a way out of the place.
static size_t put_word(char *at, size_t size, const char *word, size_t len)
{
    size_t count = 0;
    for (size_t i = 0; i < len && count + 1 < size; i++)
        at[count++] = (unsigned char)word[i] <= ' ' || word[i] == '/' || word[i] == 0x7f ? '_' : word[i];
    if (count > 0 && at[0] == '.')
        at[0] = '_';
    at[count] = '\0';
    return count;
}

int gp_copy_name(const gp_batch_t *batch, char name[GP_COPY_NAME_SIZE])
{
    const char *slash = strrchr(batch->capture, '/'), *base = slash != NULL ? slash + 1 : batch->capture;
    const char *host = batch->process->host[0] != '\0' ? batch->process->host : "unknown";
    const char *tenant = batch->process->tenant;
    size_t len = strlen(base), at = 0;
    if (len > strlen(SUFFIX) && strcmp(base + len - strlen(SUFFIX), SUFFIX) == 0)
        len -= strlen(SUFFIX);
    if (strlen(tenant) + strlen(host) + len + 64 > GP_COPY_NAME_SIZE)
        return -ENAMETOOLONG;
    if (tenant[0] != '\0') {
        at = put_word(name, GP_COPY_NAME_SIZE, tenant, strlen(tenant));
        name[at++] = '/';
    }
    at += put_word(name + at, GP_COPY_NAME_SIZE - at, host, strlen(host));
    name[at++] = '/';
    at += put_word(name + at, GP_COPY_NAME_SIZE - at, base, len);
    snprintf(name + at, GP_COPY_NAME_SIZE - at, "-%016" PRIx64 SUFFIX, batch->capture_id);
    return 0;
}

bool gp_copy_has_bytes(const gp_batch_t *batch)
{
    return !batch->is_paths && (batch->to > batch->from || batch->is_last);
}

int gp_copy_open(const gp_batch_t *batch, char error[GP_FLEET_ERROR_SIZE])
{
    int fd = open(batch->capture, O_RDONLY | O_CLOEXEC), result = fd < 0 ? -errno : fd;
    if (fd < 0)
        snprintf(error, GP_FLEET_ERROR_SIZE, "%.180s: %s", batch->capture, strerror(-result));
    return result;
}

int gp_copy_read(int fd, uint64_t at, void *bytes, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t got = pread(fd, (char *)bytes + done, len - done, (off_t)(at + done));
        if (got == 0)
            return -ENODATA;
        if (got < 0 && errno != EINTR)
            return -errno;
        done += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

void gp_copy_describe(const gp_batch_t *batch, const char *where, FILE *out)
{
    char name[GP_COPY_NAME_SIZE];
    if (gp_copy_has_bytes(batch) && gp_copy_name(batch, name) == 0)
        fprintf(out, "%s/%s: bytes %" PRIu64 " to %" PRIu64 " of the capture, with all that is in it\n", where, name,
                batch->from, batch->to);
}
