// SPDX-License-Identifier: MIT
#include "base/key_list.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptors.h"

static bool key_list_is_between(char c)
{
    return c == ',' || c == '\n';
}

static bool key_list_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

int gp_key_list_parse(gp_key_list_t *keys, const char *at, size_t len)
{
    for (const char *end = at + len, *stop; at < end; at = stop + 1) {
        for (stop = at; stop < end && !key_list_is_between(*stop);)
            stop++;
        const char *last = stop;
        while (at < last && key_list_is_space(*at))
            at++;
        while (last > at && key_list_is_space(last[-1]))
            last--;
        size_t key_len = (size_t)(last - at);
        if (key_len == 0)
            continue;
        if (key_len > GP_KEY_BYTES_MAX || keys->count == GP_KEYS_MAX)
            return -E2BIG;
        memcpy(keys->list[keys->count].bytes, at, key_len);
        keys->list[keys->count++].len = key_len;
    }
    return 0;
}

static int key_list_read_open(int fd, char *text, size_t *len, bool *is_private)
{
    struct stat status;
    if (is_private != NULL && fstat(fd, &status) != 0)
        return -errno;
    if (is_private != NULL)
        *is_private = (status.st_mode & (S_IROTH | S_IWOTH)) == 0;
    *len = 0;
    for (ssize_t count = 1; count > 0 && *len < GP_KEYS_TEXT_MAX + 1; *len += (size_t)count) {
        count = read(fd, text + *len, GP_KEYS_TEXT_MAX + 1 - *len);
        if (count < 0)
            return -errno;
    }
    return 0;
}

int gp_key_list_read_text(const char *path, char *text, size_t *len, bool *is_private)
{
    int fd = gp_descriptor_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int error = key_list_read_open(fd, text, len, is_private);
    close(fd);
    return error;
}

int gp_key_list_read(gp_key_list_t *keys, const char *path)
{
    char text[GP_KEYS_TEXT_MAX + 1];
    size_t len;
    bool is_private;
    int error = gp_key_list_read_text(path, text, &len, &is_private);
    if (error == 0 && !is_private)
        error = -EPERM;
    if (error == 0)
        error = len <= GP_KEYS_TEXT_MAX ? gp_key_list_parse(keys, text, len) : -E2BIG;
    explicit_bzero(text, sizeof(text));
    return error == 0 && keys->count == 0 ? -ENOKEY : error;
}
