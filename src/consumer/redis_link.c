// SPDX-License-Identifier: MIT
#include "consumer/redis_link.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptors.h"

enum { LINE_MAX_BYTES = 1024, BULK_MAX = 4096 };

uint64_t gp_redis_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// --- words

static void put_head(gp_bytes_t *request, char type, size_t number)
{
    gp_bytes_put(request, &type, 1);
    gp_bytes_number(request, number);
    gp_bytes_put(request, "\r\n", 2);
}

void gp_redis_command(gp_bytes_t *request, size_t words)
{
    put_head(request, '*', words);
}

void gp_redis_word(gp_bytes_t *request, const char *word, size_t len)
{
    put_head(request, '$', len);
    gp_bytes_put(request, word, len);
    gp_bytes_put(request, "\r\n", 2);
}

static void keep_text(char text[GP_REDIS_TEXT_MAX], const char *from, size_t len)
{
    len = len < GP_REDIS_TEXT_MAX ? len : GP_REDIS_TEXT_MAX - 1;
    memcpy(text, from, len);
    text[len] = '\0';
}

// The line at `input`, without its end. Returns its bytes with the end; 0: not whole; -EPROTO.
static ssize_t read_line(const char *input, size_t len, gp_redis_reply_t *reply)
{
    const char *end = memchr(input, '\n', len < LINE_MAX_BYTES ? len : LINE_MAX_BYTES);
    if (end == NULL)
        return len < LINE_MAX_BYTES ? 0 : -EPROTO;
    if (end == input || end[-1] != '\r' || end - input < 2)
        return -EPROTO;
    reply->type = input[0];
    keep_text(reply->text, input + 1, (size_t)(end - input) - 2);
    return end + 1 - input;
}

static bool read_number(const char *text, int64_t *number)
{
    char *end;
    *number = strtoll(text, &end, 10);
    return end != text && *end == '\0';
}

static ssize_t read_bulk(const char *input, size_t len, ssize_t head, gp_redis_reply_t *reply)
{
    int64_t bytes = reply->number;
    if (bytes == -1) {
        reply->type = '0';
        return head;
    }
    if (bytes < 0 || bytes > BULK_MAX)
        return -EPROTO;
    size_t whole = (size_t)head + (size_t)bytes + 2;
    if (len < whole)
        return 0;
    if (memcmp(input + whole - 2, "\r\n", 2) != 0)
        return -EPROTO;
    keep_text(reply->text, input + head, (size_t)bytes);
    return (ssize_t)whole;
}

// All but arrays.
static ssize_t read_simple(const char *input, size_t len, gp_redis_reply_t *reply)
{
    ssize_t head = len > 0 ? read_line(input, len, reply) : 0;
    if (head <= 0 || reply->type == '+' || reply->type == '-')
        return head;
    if ((reply->type != ':' && reply->type != '$' && reply->type != '*') || !read_number(reply->text, &reply->number))
        return -EPROTO;
    return reply->type == '$' ? read_bulk(input, len, head, reply) : head;
}

ssize_t gp_redis_read(const char *input, size_t len, gp_redis_reply_t *reply)
{
    gp_redis_reply_t second = {0};
    *reply = second;
    ssize_t head = read_simple(input, len, reply);
    if (head <= 0 || reply->type != '*')
        return head;
    if (reply->number == -1) {
        reply->type = '0';
        return head;
    }
    if (reply->number != 2)
        return -EPROTO;
    ssize_t one = read_simple(input + head, len - (size_t)head, reply);
    if (one <= 0 || reply->type != '$')
        return one <= 0 ? one : -EPROTO;
    ssize_t two = read_simple(input + head + one, len - (size_t)(head + one), &second);
    if (two <= 0 || second.type != '$')
        return two <= 0 ? two : -EPROTO;
    reply->type = '*';
    memcpy(reply->second, second.text, sizeof(reply->second));
    return head + one + two;
}

// --- the connection

static void forget(gp_redis_link_t *link)
{
    link->fd = -1;
    link->len = 0;
}

bool gp_redis_is_connected(const gp_redis_link_t *link)
{
    struct stat stat;
    return link->fd >= 0 && fstat(link->fd, &stat) == 0 && stat.st_dev == link->device && stat.st_ino == link->inode;
}

void gp_redis_disconnect(gp_redis_link_t *link)
{
    if (gp_redis_is_connected(link))
        close(link->fd);
    forget(link);
}

// Wait for events of a socket. Returns them, or -ETIMEDOUT.
static int wait_for(int fd, short events, uint64_t deadline_ns)
{
    for (;;) {
        uint64_t now = gp_redis_now();
        if (now >= deadline_ns)
            return -ETIMEDOUT;
        struct pollfd poll_fd = {.fd = fd, .events = events};
        int ready = poll(&poll_fd, 1, (int)((deadline_ns - now) / 1000000u) + 1);
        if (ready > 0)
            return poll_fd.revents;
        if (ready < 0 && errno != EINTR)
            return -errno;
    }
}

static int finish_connecting(int fd, uint64_t deadline_ns)
{
    int error = 0, events = wait_for(fd, POLLOUT, deadline_ns);
    socklen_t len = sizeof(error);
    if (events < 0)
        return events;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 ? -error : -errno;
}

static int connect_to(gp_redis_link_t *link, const struct addrinfo *address, uint64_t deadline_ns)
{
    gp_descriptor_low_begins();
    int one = 1, fd = gp_descriptor_lift(socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd < 0)
        return -errno;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    int error = connect(fd, address->ai_addr, address->ai_addrlen) == 0 ? 0 : -errno;
    if (error == -EINPROGRESS)
        error = finish_connecting(fd, deadline_ns);
    struct stat stat;
    if (error == 0 && fstat(fd, &stat) != 0)
        error = -errno;
    if (error != 0) {
        close(fd);
        return error;
    }
    *link = (gp_redis_link_t){.fd = fd, .device = stat.st_dev, .inode = stat.st_ino};
    return 0;
}

int gp_redis_connect(gp_redis_link_t *link, const char *host, const char *port, uint64_t deadline_ns)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    gp_redis_disconnect(link);
    int error = -EHOSTUNREACH;
    if (getaddrinfo(host, port, &hints, &list) != 0)
        return error;
    for (const struct addrinfo *address = list; address != NULL && error != 0; address = address->ai_next)
        error = connect_to(link, address, deadline_ns);
    freeaddrinfo(list);
    return error;
}

static int write_some(const gp_redis_link_t *link, const gp_bytes_t *request, size_t *sent)
{
    ssize_t len = send(link->fd, request->data + *sent, request->len - *sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (len < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    *sent += (size_t)len;
    return 0;
}

static int read_some(gp_redis_link_t *link)
{
    ssize_t len = recv(link->fd, link->input + link->len, sizeof(link->input) - link->len, MSG_DONTWAIT);
    if (len < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    link->len += (size_t)len;
    return len > 0 ? 0 : -ECONNRESET;
}

// Hand on the replies that are whole.
static int take_replies(gp_redis_link_t *link, size_t *count, bool (*take)(void *, const gp_redis_reply_t *),
                        void *context)
{
    gp_redis_reply_t reply;
    size_t at = 0;
    while (*count > 0) {
        ssize_t bytes = gp_redis_read(link->input + at, link->len - at, &reply);
        if (bytes < 0)
            return -EPROTO;
        if (bytes == 0)
            break;
        at += (size_t)bytes;
        --*count;
        if (!take(context, &reply))
            return -ECONNABORTED;
    }
    memmove(link->input, link->input + at, link->len - at);
    link->len -= at;
    return *count == 0 && link->len > 0 ? -EPROTO : 0; // it says more than it was asked
}

static int exchange(gp_redis_link_t *link, const gp_bytes_t *request, size_t count, uint64_t deadline_ns,
                    bool (*take)(void *, const gp_redis_reply_t *), void *context)
{
    for (size_t sent = 0; count > 0;) {
        bool is_sent = sent == request->len;
        int events = wait_for(link->fd, (short)(is_sent ? POLLIN : POLLIN | POLLOUT), deadline_ns);
        int error = events < 0 ? events : gp_redis_is_connected(link) ? 0 : -ENOTCONN; // closed by the program?
        if (error == 0 && !is_sent && (events & POLLOUT))
            error = write_some(link, request, &sent);
        if (error == 0 && (events & (POLLIN | POLLHUP | POLLERR)))
            error = read_some(link);
        if (link->len > 0) { // also what came before an end
            int wrong = take_replies(link, &count, take, context);
            error = wrong != 0 ? wrong : count == 0 ? 0 : error;
        }
        if (error != 0)
            return error;
    }
    return 0;
}

int gp_redis_exchange(gp_redis_link_t *link, const gp_bytes_t *request, size_t count, uint64_t deadline_ns,
                      bool (*take)(void *context, const gp_redis_reply_t *reply), void *context)
{
    int error = request->is_short             ? -ENOMEM
                : gp_redis_is_connected(link) ? exchange(link, request, count, deadline_ns, take, context)
                                              : -ENOTCONN;
    if (error != 0)
        gp_redis_disconnect(link);
    return error;
}
