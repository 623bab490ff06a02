// SPDX-License-Identifier: MIT
#include "control/clients.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/descriptors.h"
#include "control/keys.h"
#include "control/requests.h"
#include "control/socket.h"
#include "signal/ticks.h"

#define PATIENCE_NS 5000000000ull // for a request

typedef struct client {
    gp_kept_fd_t held;
    uint64_t until_ns;
    bool is_greeted; // it was sent the nonce
    uint8_t nonce[GP_CONTROL_NONCE_BYTES];
} client_t;

static client_t clients[GP_CONTROL_CLIENTS];
static unsigned count;

static void clients_let_go(unsigned i)
{
    gp_kept_fd_close(&clients[i].held);
    clients[i] = clients[--count];
}

unsigned gp_control_clients_list(struct pollfd *events)
{
    for (unsigned i = 0; i < count; i++)
        events[i] = (struct pollfd){.fd = clients[i].held.fd, .events = POLLIN};
    return count;
}

int gp_control_clients_patience_ms(void)
{
    uint64_t now = gp_clock_ns(CLOCK_MONOTONIC), first = UINT64_MAX;
    for (unsigned i = 0; i < count; i++)
        first = clients[i].until_ns < first ? clients[i].until_ns : first;
    if (count == 0)
        return -1;
    return first > now ? (int)((first - now) / 1000000 + 1) : 0;
}

// Its effective user, as the kernel knows it.
static bool clients_may_ask(int fd)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && (peer.uid == 0 || peer.uid == geteuid());
}

static int clients_accept_one(void)
{
    gp_descriptor_low_begins();
    return gp_descriptor_lift(accept4(gp_control_listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

void gp_control_clients_accept(void)
{
    int fd = -1;
    while (count < GP_CONTROL_CLIENTS && gp_kept_fd_is_there(&gp_control_listener) && (fd = clients_accept_one()) >= 0)
        if (clients_may_ask(fd))
            clients[count++] = (client_t){
                .held = gp_kept_fd_keep(fd),
                .until_ns = gp_clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS,
            };
        else
            close(fd);
}

// A new connection has room for it; one that has none is none of the command's.
static void clients_send_reply(int client, const gp_control_reply_t *reply, int fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(fd))];
    } control;
    struct iovec part = {(void *)(uintptr_t)reply, sizeof(*reply)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    memset(&control, 0, sizeof(control));
    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control.room);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(fd));
        memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    }
    (void)!sendmsg(client, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// The request, and the descriptor that comes with it. Returns its size, or as recvmsg(2).
static ssize_t clients_receive(int client, gp_control_request_t *request, int *fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(*fd))]; // one: what is more, the kernel closes
    } control;
    struct iovec part = {request, sizeof(*request)};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.room)};
    gp_descriptor_low_begins();
    ssize_t got = recvmsg(client, &message, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *header = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(header), sizeof(*fd));
    *fd = gp_descriptor_lift(*fd);
    return got;
}

// May it be obeyed? Returns 0 or a negative errno value.
static int clients_check(const client_t *client, const gp_control_request_t *request)
{
    if (request->version != GP_CONTROL_VERSION)
        return -EPROTONOSUPPORT;
    if (request->command == GP_CONTROL_HELLO)
        return client->is_greeted ? -EINVAL : 0;
    return gp_control_keys_check(request, client->is_greeted ? client->nonce : NULL);
}

// Returns 0, or -EIO where the kernel has no random bytes (yet).
static int clients_greet(client_t *client)
{
    ssize_t got = getrandom(client->nonce, sizeof(client->nonce), GRND_NONBLOCK);
    client->is_greeted = got == (ssize_t)sizeof(client->nonce);
    return client->is_greeted ? 0 : -EIO;
}

static void clients_close_any(int fd)
{
    if (fd >= 0)
        close(fd);
}

// A request is one packet of its size; anything else is not answered. Returns whether another one is to come.
static bool clients_serve(client_t *client)
{
    static gp_control_request_t request;
    static gp_control_reply_t reply;
    int fd = -1, given = -1;
    ssize_t got = clients_receive(client->held.fd, &request, &given);
    if (got != (ssize_t)sizeof(request) || request.magic != GP_CONTROL_MAGIC) {
        if (got > 0)
            gp_control_count_refused();
        clients_close_any(given);
        return false;
    }
    int error = clients_check(client, &request);
    bool is_hello = error == 0 && request.command == GP_CONTROL_HELLO;
    if (is_hello)
        error = clients_greet(client);
    if (error == 0 && !is_hello) {
        gp_control_answer(&request, given, &reply, &fd);
    } else {
        gp_control_answer_briefly(error, client->nonce, &reply);
        clients_close_any(given);
    }
    clients_send_reply(client->held.fd, &reply, fd);
    clients_close_any(fd);
    return error == 0 && is_hello;
}

void gp_control_clients_serve(const struct pollfd *events, unsigned listed)
{
    uint64_t now = gp_clock_ns(CLOCK_MONOTONIC);
    for (unsigned i = listed; i-- > 0;) { // from the last one on: the last takes the place of a leaving one
        bool is_there = events[i].revents != 0 && gp_kept_fd_is_there(&clients[i].held);
        bool stays = is_there && clients_serve(&clients[i]);
        if ((events[i].revents != 0 && !stays) || now >= clients[i].until_ns)
            clients_let_go(i);
    }
}

void gp_control_clients_forget(void)
{
    while (count > 0)
        clients_let_go(count - 1);
}
