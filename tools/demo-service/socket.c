// SPDX-License-Identifier: MIT
#include "socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    BACKLOG = 512,
    LINGER_MS = 1000,
    LINGER_BYTES_MAX = 256 * 1024,
};

// Sockets that are accepted inherit it: a request begins when it reaches the host, not when its coroutine gets round to
// reading it.
static void stamp_arrivals(int fd)
{
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
}

static int bind_and_listen(int fd, const struct sockaddr_in *address)
{
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    stamp_arrivals(fd);
    if (bind(fd, (const struct sockaddr *)address, sizeof *address) != 0 || listen(fd, BACKLOG) != 0)
        return -errno;
    return 0;
}

int socket_listen(const char *address, uint16_t port)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, address, &where.sin_addr) != 1)
        return -EINVAL;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int rc = bind_and_listen(fd, &where);
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

uint16_t socket_port(int fd)
{
    struct sockaddr_in where = {0};
    socklen_t len = sizeof where;
    if (getsockname(fd, (struct sockaddr *)&where, &len) != 0)
        return 0;
    return ntohs(where.sin_port);
}

// A response is one burst: without this, its last segment waits for the peer's acknowledgement.
static void send_without_delay(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int socket_accept(int listen_fd)
{
    for (;;) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            send_without_delay(fd);
            return fd;
        }
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        if (errno != EAGAIN)
            return -errno;
        int rc = loop_wait_fd(listen_fd, EPOLLIN, LOOP_NEVER, LOOP_WAIT_IDLE);
        if (rc != 0)
            return rc;
    }
}

static int finish_connect(int fd, int64_t deadline_ms)
{
    int error = 0;
    socklen_t len = sizeof error;
    int rc = loop_wait_fd(fd, EPOLLOUT, deadline_ms, LOOP_WAIT_BUSY);
    if (rc != 0)
        return rc;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        return -errno;
    return -error;
}

int socket_connect(uint16_t port, int64_t deadline_ms)
{
    struct sockaddr_in where = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int rc = connect(fd, (const struct sockaddr *)&where, sizeof where) == 0 ? 0 : -errno;
    if (rc == -EINPROGRESS)
        rc = finish_connect(fd, deadline_ms);
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

static int64_t stamp_of(struct msghdr *message)
{
    for (struct cmsghdr *item = CMSG_FIRSTHDR(message); item != NULL; item = CMSG_NXTHDR(message, item)) {
        struct timespec stamp;
        if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_TIMESTAMPNS)
            continue;
        memcpy(&stamp, CMSG_DATA(item), sizeof stamp);
        return (int64_t)stamp.tv_sec * 1000000000 + stamp.tv_nsec;
    }
    return 0;
}

// recv(2), with the time stamp of the last of the bytes.
static ssize_t receive(int fd, char *data, size_t size, int64_t *arrival_ns)
{
    char control[CMSG_SPACE(sizeof(struct timespec))];
    struct iovec part = {data, size};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t len = recvmsg(fd, &message, 0);
    if (len >= 0)
        *arrival_ns = stamp_of(&message);
    return len;
}

ssize_t socket_recv(int fd, char *data, size_t size, int64_t deadline_ms, loop_wait_kind_t kind)
{
    int64_t ignored;
    return socket_recv_stamped(fd, data, size, deadline_ms, kind, &ignored);
}

ssize_t socket_recv_stamped(int fd, char *data, size_t size, int64_t deadline_ms, loop_wait_kind_t kind,
                            int64_t *arrival_ns)
{
    for (;;) {
        ssize_t len = receive(fd, data, size, arrival_ns);
        if (len >= 0)
            return len;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return -errno;
        int rc = loop_wait_fd(fd, EPOLLIN, deadline_ms, kind);
        if (rc != 0)
            return rc;
    }
}

static int send_all(int fd, const char *data, size_t len, int64_t deadline_ms, int flags)
{
    while (len > 0) {
        ssize_t sent = send(fd, data, len, MSG_NOSIGNAL | flags);
        if (sent >= 0) {
            data += sent;
            len -= (size_t)sent;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return -errno;
        int rc = loop_wait_fd(fd, EPOLLOUT, deadline_ms, LOOP_WAIT_BUSY);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int socket_send(int fd, const char *data, size_t len, int64_t deadline_ms)
{
    return send_all(fd, data, len, deadline_ms, 0);
}

int socket_send_part(int fd, const char *data, size_t len, int64_t deadline_ms)
{
    return send_all(fd, data, len, deadline_ms, MSG_MORE);
}

void socket_close_gently(int fd)
{
    char ignored[4096];
    size_t total = 0;
    int64_t deadline_ms = loop_now_ms() + LINGER_MS;
    shutdown(fd, SHUT_WR);
    while (total < LINGER_BYTES_MAX) {
        ssize_t len = socket_recv(fd, ignored, sizeof ignored, deadline_ms, LOOP_WAIT_IDLE);
        if (len <= 0)
            break;
        total += (size_t)len;
    }
    close(fd);
}
