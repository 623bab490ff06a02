// SPDX-License-Identifier: MIT
#include "live_control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "attach/pause_others.h"
#include "lent.h"
#include "live/control_place.h"
#include "live/control_sign.h"
#include "live_keys.h"
#include "live_target.h"
#include "message.h"

enum { TIMEOUT_MS = 20000, LOOK_MS = 200, RETRY_MS = 10, RETRIES_MS = 2000, TRIES = 5 };

typedef struct meeting {
    const gp_target_t *target;
    int socket; // or a negative errno value
} meeting_t;

gp_control_request_t gp_control_request(enum gp_control_command command)
{
    return (gp_control_request_t){
        .magic = GP_CONTROL_MAGIC,
        .version = GP_CONTROL_VERSION,
        .command = command,
        .clock = -1,
    };
}

// As the process' user where it may have no number for root: it would take that for a stranger.
// Returns 0 or a negative errno value.
static int live_control_connect_as(const gp_target_t *target, int fd, const struct sockaddr_un *address,
                                   socklen_t length)
{
    bool is_root = geteuid() == 0 && target->uid != 0 && gp_target_has_other_users(target);
    if (is_root && seteuid(target->uid) != 0)
        return -errno;
    int error = connect(fd, (const struct sockaddr *)address, length) == 0 ? 0 : -errno;
    return is_root && seteuid(0) != 0 ? -errno : error;
}

// Is it the process itself that listens there?
static bool live_control_is_target(const gp_target_t *target, int fd)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.pid == target->pid;
}

// `path`: of the socket, opened with O_PATH. Returns a descriptor, or a negative errno value.
static int live_control_connect_to(const gp_target_t *target, int path)
{
    struct sockaddr_un address;
    struct stat status;
    struct timeval limit = {.tv_sec = TIMEOUT_MS / 1000};
    socklen_t length = gp_control_socket_address(path, "", &address);
    if (fstat(path, &status) != 0 || !S_ISSOCK(status.st_mode))
        return -ENOTSOCK;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    int error = live_control_connect_as(target, fd, &address, length);
    if (error == 0 && live_control_is_target(target, fd))
        return fd;
    close(fd);
    return error != 0 ? error : -ENOENT;
}

// The directory may be a container's: what is there by a name is judged before it is connected to, and is no link.
static bool live_control_meet_by(int directory, const char *name, void *argument)
{
    meeting_t *meeting = argument;
    int path = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (path < 0)
        return false;
    int socket = live_control_connect_to(meeting->target, path);
    close(path);
    if (meeting->socket != -ECONNREFUSED || socket >= 0) // that one may be listening again soon
        meeting->socket = socket;
    return socket >= 0;
}

static bool live_control_meet_in(int directory, void *argument)
{
    meeting_t *meeting = argument;
    if (!gp_control_socket_each(directory, meeting->target->own_pid, live_control_meet_by, meeting))
        return false;
    close(directory);
    return true;
}

static int live_control_receive(int fd, gp_control_reply_t *reply, int *rows)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {reply, sizeof(*reply)};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.room)};
    ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    int sent = -1, error = got < 0 ? -errno : got == 0 ? -ECONNRESET : -EPROTO;
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(&sent, CMSG_DATA(header), sizeof(sent));
    if (rows != NULL)
        *rows = sent;
    else if (sent >= 0)
        close(sent);
    bool is_one = got == (ssize_t)sizeof(*reply) && reply->magic == GP_CONTROL_MAGIC &&
                  memchr(reply->path, '\0', sizeof(reply->path)) != NULL;
    return is_one ? 0 : error;
}

// Returns -ECONNRESET where the process hung up; else as gp_control_ask().
static int live_control_wait_for_reply(const meeting_t *meeting, gp_control_reply_t *reply, int *rows,
                                       const char *subject)
{
    struct pollfd event = {.fd = meeting->socket, .events = POLLIN};
    int waited = 0;
    for (int step; poll(&event, 1, step = gp_pause_others_look_ms(LOOK_MS)) <= 0;) {
        waited += step;
        gp_pause_others_look();
        if (!gp_target_is_there(meeting->target))
            return gp_fail(subject, "the process ended before it answered");
        if (gp_target_is_stopped(meeting->target))
            return gp_fail(subject, "the process is stopped, by a signal or a debugger: it cannot answer");
        if (waited >= TIMEOUT_MS)
            return gp_fail(subject, "no answer within %d s", TIMEOUT_MS / 1000);
    }
    int error = live_control_receive(meeting->socket, reply, rows);
    if (error != 0 && rows != NULL && *rows >= 0) {
        close(*rows);
        *rows = -1;
    }
    return error == 0 || error == -ECONNRESET ? error
                                              : gp_fail(subject, "the process did not answer: %s", strerror(-error));
}

static int live_control_cannot_meet(const meeting_t *meeting, const char *subject)
{
    if (meeting->socket == -EACCES || meeting->socket == -EPERM)
        return gp_fail(subject, "%s", strerror(-meeting->socket));
    return gp_fail(subject, "this process cannot be switched: 'greenprof attach PID' makes it so, as does "
                            "'greenprof run --control', or "
                            "GREENPROF_CONTROL=1 beside LD_PRELOAD=libgreenprof-core.so.0");
}

static int live_control_meet(meeting_t *meeting, const char *subject)
{
    if (gp_target_is_stopped(meeting->target))
        return gp_fail(subject, "the process is stopped, by a signal or a debugger: it cannot answer");
    struct timespec pause = {.tv_nsec = RETRY_MS * 1000000};
    for (int waited = 0; !gp_target_each_place(meeting->target, live_control_meet_in, meeting); waited += RETRY_MS) {
        if (meeting->socket != -ECONNREFUSED || waited >= RETRIES_MS)
            return live_control_cannot_meet(meeting, subject);
        meeting->socket = -ENOENT;
        nanosleep(&pause, NULL); // a program that closes all descriptors: it listens anew at once
    }
    return 0;
}

bool gp_control_is_there(const gp_target_t *target)
{
    meeting_t meeting = {.target = target, .socket = -ENOENT};
    bool is_there = gp_target_each_place(target, live_control_meet_in, &meeting);
    if (is_there)
        close(meeting.socket);
    return is_there;
}

// The request's file, where the process would find another one by that name.
static int live_control_lend(const gp_target_t *target, const gp_control_request_t *request, gp_lent_t *lent)
{
    lent->fd = -1;
    if (request->command != GP_CONTROL_START || request->path[0] == '\0' || !gp_target_has_other_root(target))
        return 0;
    return gp_lend(lent, request->path, target->own_pid);
}

// fd: a descriptor to send along, -1 = none. Returns as send(2).
static ssize_t live_control_send_request(int socket, const gp_control_request_t *request, int fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(fd))];
    } control = {.room = {0}};
    struct iovec part = {(void *)(uintptr_t)request, sizeof(*request)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control.room);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(fd));
        memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL);
}

// Send a packet, and wait for its reply. place: a descriptor to send along, -1 = none. Returns as
// live_control_wait_for_reply().
static int live_control_exchange(const meeting_t *meeting, const char *subject, const gp_control_request_t *request,
                                 int place, gp_control_reply_t *reply, int *fd)
{
    ssize_t sent = live_control_send_request(meeting->socket, request, place);
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
        return -ECONNRESET;
    if (sent != (ssize_t)sizeof(*request))
        return gp_fail(subject, "cannot be asked: %s", strerror(errno));
    return live_control_wait_for_reply(meeting, reply, fd, subject);
}

static int live_control_ask_signed(const meeting_t *meeting, const char *subject, const gp_control_request_t *request,
                                   int place, gp_control_reply_t *reply, int *fd)
{
    const gp_key_t *key;
    int status = gp_live_key(&key);
    if (status != 0 || key == NULL)
        return status != 0 ? status : live_control_exchange(meeting, subject, request, place, reply, fd);
    const gp_control_request_t hello = gp_control_request(GP_CONTROL_HELLO);
    status = live_control_exchange(meeting, subject, &hello, -1, reply, NULL);
    if (status != 0 || reply->error != 0)
        return status; // another version
    gp_control_request_t with_code = *request;
    gp_control_sign(key, reply->nonce, &with_code);
    return live_control_exchange(meeting, subject, &with_code, place, reply, fd);
}

static int live_control_ask_once(const gp_target_t *target, const char *subject, const gp_control_request_t *request,
                                 gp_control_reply_t *reply, int *fd)
{
    meeting_t meeting = {.target = target, .socket = -ENOENT};
    int status = live_control_meet(&meeting, subject);
    if (status != 0)
        return status;
    gp_lent_t lent;
    status = live_control_lend(target, request, &lent);
    if (status == 0 && lent.fd >= 0) {
        gp_control_request_t with_name = *request;
        memcpy(with_name.path, lent.path, sizeof(with_name.path));
        status = live_control_ask_signed(&meeting, subject, &with_name, lent.fd, reply, fd);
    } else if (status == 0) {
        status = live_control_ask_signed(&meeting, subject, request, -1, reply, fd);
    }
    gp_lent_end(&lent, status == 0 && reply->error == 0);
    close(meeting.socket);
    return status;
}

int gp_control_ask(pid_t pid, const char *subject, const gp_control_request_t *request, gp_control_reply_t *reply,
                   int *fd)
{
    gp_target_t target;
    if (fd != NULL)
        *fd = -1;
    int status = gp_target_find(&target, pid, subject);
    if (status != 0)
        return status;
    status = -ECONNRESET; // where a program has closed all descriptors, it notices now, and listens anew
    for (int i = 0; i < TRIES && status == -ECONNRESET; i++)
        status = live_control_ask_once(&target, subject, request, reply, fd);
    return status == -ECONNRESET ? gp_fail(subject, "the process did not answer: %s", strerror(ECONNRESET)) : status;
}

static const char *live_control_reason(const gp_control_request_t *request, const gp_control_reply_t *reply)
{
    switch (-reply->error) {
    case EALREADY:
        return request->command == GP_CONTROL_START ? "it is being recorded already: stop it first"
                                                    : "it is not being recorded: 'greenprof start PID' starts it";
    case EAGAIN:
        return "the capture before is still being ended: try again";
    case ETIMEDOUT:
        return "the disk is slow: it goes on, 'greenprof status PID' says how far it is";
    case EDESTADDRREQ:
        return "GREENPROF_OUTPUT is unset there: name a file, -o FILE";
    case EPROTONOSUPPORT:
        return "it has another version of greenprof";
    default:
        return strerror(-reply->error);
    }
}

int gp_control_refused(const char *subject, const gp_control_request_t *request, const gp_control_reply_t *reply)
{
    const char *no_key = gp_live_key_reason(reply->error);
    if (no_key != NULL)
        return gp_fail(subject, "%s", no_key);
    return gp_fail(request->path[0] != '\0' && reply->error != -EALREADY ? request->path : subject, "%s",
                   live_control_reason(request, reply));
}

uint64_t gp_control_lost(const gp_control_reply_t *reply)
{
    return gp_counters_lost(reply->counters, GP_COUNTER_COUNT, GP_LOST_SIGNAL);
}
