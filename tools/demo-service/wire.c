// SPDX-License-Identifier: MIT
#include "wire.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

void wire_stamp_arrivals(int fd)
{
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
}

ssize_t wire_receive(int fd, char *data, size_t size, int64_t *stamp_ns)
{
    char control[CMSG_SPACE(sizeof(struct timespec))];
    struct iovec part = {data, size};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    ssize_t len = recvmsg(fd, &message, 0);
    struct cmsghdr *item = len > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    struct timespec stamp = {0};
    if (item != NULL && item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_TIMESTAMPNS)
        memcpy(&stamp, CMSG_DATA(item), sizeof(stamp));
    *stamp_ns = (int64_t)stamp.tv_sec * 1000000000 + stamp.tv_nsec;
    return len;
}

bool wire_header(const char *head, const char *name, char *value, size_t size)
{
    size_t len = strlen(name);
    value[0] = '\0';
    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, len) != 0 || line[len] != ':')
            continue;
        const char *from = line + len + 1 + strspn(line + len + 1, " ");
        snprintf(value, size, "%.*s", (int)strcspn(from, "\r\n"), from);
        return true;
    }
    return false;
}
