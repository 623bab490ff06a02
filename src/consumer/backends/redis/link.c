// SPDX-License-Identifier: MIT
#include "consumer/backends/redis/link.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

enum { UNREAD_MAX = 16 << 10 }; // bytes of a reply that is not whole

#if HIREDIS_MAJOR >= 1
typedef size_t elements_t;
#else
typedef int elements_t;
#endif

void gp_redis_command(gp_reply_bytes_t *request, int count, const char **words, const size_t *lens)
{
    char *command = NULL;
    long long len = redisFormatCommandArgv(&command, count, words, lens);
    request->is_short |= len < 0;
    if (len < 0)
        return;
    gp_bytes_put(request, command, (size_t)len);
    redisFreeCommand(command);
}

// --- replies: hiredis reads them into the link's own, so that nothing is allocated by what a server says

static gp_redis_reply_t *link_reply(const redisReadTask *task)
{
    gp_redis_reply_t *reply = task->privdata;
    if (task->parent == NULL)
        reply->type = task->type;
    return reply;
}

static void *link_make_text(const redisReadTask *task, char *text, size_t len)
{
    gp_redis_reply_t *reply = link_reply(task);
    char *to = reply->texts[task->parent != NULL ? task->idx : 0];
    len = len < GP_REDIS_TEXT_MAX ? len : GP_REDIS_TEXT_MAX - 1;
    memcpy(to, text, len);
    to[len] = '\0';
    return reply;
}

// NULL: refused.
static void *link_make_array(const redisReadTask *task, elements_t elements)
{
    if (task->parent != NULL || elements != 2)
        return NULL;
    gp_redis_reply_t *reply = link_reply(task);
    reply->texts[0][0] = reply->texts[1][0] = '\0';
    return reply;
}

static void *link_make_number(const redisReadTask *task, long long number)
{
    gp_redis_reply_t *reply = link_reply(task);
    reply->number = number;
    return reply;
}

static void *link_make_nil(const redisReadTask *task) // the task's type may be an array's
{
    gp_redis_reply_t *reply = link_reply(task);
    if (task->parent == NULL)
        reply->type = REDIS_REPLY_NIL;
    return reply;
}

static void link_free_none(void *reply)
{
    (void)reply;
}

static redisReplyObjectFunctions link_functions = {
    .createString = link_make_text,
    .createArray = link_make_array,
    .createInteger = link_make_number,
    .createNil = link_make_nil,
    .freeObject = link_free_none,
};

// --- the connection

bool gp_redis_is_connected(const gp_redis_link_t *link)
{
    struct stat stat;
    return link->reader != NULL && fstat(link->fd, &stat) == 0 && stat.st_dev == link->device &&
           stat.st_ino == link->inode;
}

void gp_redis_abandon(gp_redis_link_t *link)
{
    if (gp_redis_is_connected(link))
        close(link->fd);
}

void gp_redis_disconnect(gp_redis_link_t *link)
{
    gp_redis_abandon(link);
    if (link->reader != NULL)
        redisReaderFree(link->reader);
    link->reader = NULL;
}

// Wait for events of a socket. Returns them, or -ETIMEDOUT.
static int link_wait_for(int fd, short events, uint64_t deadline_ns)
{
    for (;;) {
        uint64_t now = gp_now_ns();
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

static int link_finish_connecting(int fd, uint64_t deadline_ns)
{
    int error = 0, events = link_wait_for(fd, POLLOUT, deadline_ns);
    socklen_t len = sizeof(error);
    if (events < 0)
        return events;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 ? -error : -errno;
}

static int link_connect_to(gp_redis_link_t *link, const struct addrinfo *address, uint64_t deadline_ns)
{
    int one = 1, fd = link->host->socket(address->ai_family);
    if (fd < 0)
        return -errno;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    int error = connect(fd, address->ai_addr, address->ai_addrlen) == 0 ? 0 : -errno;
    if (error == -EINPROGRESS)
        error = link_finish_connecting(fd, deadline_ns);
    struct stat stat;
    if (error == 0 && fstat(fd, &stat) != 0)
        error = -errno;
    redisReader *reader = error == 0 ? redisReaderCreateWithFunctions(&link_functions) : NULL;
    if (error == 0 && reader == NULL)
        error = -ENOMEM;
    if (error != 0) {
        close(fd);
        return error;
    }
    *link =
        (gp_redis_link_t){.host = link->host, .fd = fd, .device = stat.st_dev, .inode = stat.st_ino, .reader = reader};
    reader->privdata = &link->reply;
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
        error = link_connect_to(link, address, deadline_ns);
    freeaddrinfo(list);
    return error;
}

static int link_write_some(const gp_redis_link_t *link, const gp_reply_bytes_t *request, size_t *sent)
{
    ssize_t len = send(link->fd, request->data + *sent, request->len - *sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (len < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    *sent += (size_t)len;
    return 0;
}

static size_t link_unread(const gp_redis_link_t *link)
{
    return link->reader->len - link->reader->pos;
}

static int link_read_some(gp_redis_link_t *link)
{
    char input[4096];
    size_t room = UNREAD_MAX - link_unread(link);
    ssize_t len = recv(link->fd, input, room < sizeof(input) ? room : sizeof(input), MSG_DONTWAIT);
    if (len < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (len > 0 && redisReaderFeed(link->reader, input, (size_t)len) != REDIS_OK)
        return -ENOMEM;
    return len > 0 ? 0 : -ECONNRESET;
}

// Hand on the replies that are whole.
static int link_take_replies(gp_redis_link_t *link, size_t *count, bool (*take)(void *, const gp_redis_reply_t *),
                             void *context)
{
    for (void *whole = NULL; *count > 0; --*count, link->reply.type = 0) {
        if (redisReaderGetReply(link->reader, &whole) != REDIS_OK)
            return -EPROTO;
        if (whole == NULL)
            return link_unread(link) < UNREAD_MAX ? 0 : -EPROTO;
        if (!take(context, &link->reply))
            return -ECONNABORTED;
    }
    return link_unread(link) > 0 ? -EPROTO : 0; // answers more than was asked
}

static int link_exchange(gp_redis_link_t *link, const gp_reply_bytes_t *request, size_t count, uint64_t deadline_ns,
                         bool (*take)(void *, const gp_redis_reply_t *), void *context)
{
    for (size_t sent = 0; count > 0;) {
        bool is_sent = sent == request->len;
        int events = link_wait_for(link->fd, (short)(is_sent ? POLLIN : POLLIN | POLLOUT), deadline_ns);
        int error = events < 0 ? events : gp_redis_is_connected(link) ? 0 : -ENOTCONN; // closed by the program?
        if (error == 0 && !is_sent && (events & POLLOUT))
            error = link_write_some(link, request, &sent);
        if (error == 0 && (events & (POLLIN | POLLHUP | POLLERR)))
            error = link_read_some(link);
        if (link_unread(link) > 0) { // also what came before an end
            int wrong = link_take_replies(link, &count, take, context);
            error = wrong != 0 ? wrong : count == 0 ? 0 : error;
        }
        if (error != 0)
            return error;
    }
    return 0;
}

int gp_redis_exchange(gp_redis_link_t *link, const gp_reply_bytes_t *request, size_t count, uint64_t deadline_ns,
                      bool (*take)(void *context, const gp_redis_reply_t *reply), void *context)
{
    int error = request->is_short             ? -ENOMEM
                : gp_redis_is_connected(link) ? link_exchange(link, request, count, deadline_ns, take, context)
                                              : -ENOTCONN;
    if (error != 0)
        gp_redis_disconnect(link);
    return error;
}
