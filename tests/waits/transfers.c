// SPDX-License-Identifier: MIT
// Large transfers, which the kernel ends early for a signal: with greenprof each moves what it moves alone, byte for
// byte.
//   transfers ROUNDS
// Prints `BAD CALL WHAT` for what went wrong; ends with the number of such lines.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

enum { BYTES = 6 << 20, PIECES = 7, MESSAGES = 1000, MESSAGE_BYTES = 2000, PIECE = 100000 };

static uint8_t *data, *sink;
static int bad;

static void expect(bool is_right, const char *call, const char *what, long result)
{
    if (is_right)
        return;
    printf("BAD %s %s: %ld (%s)\n", call, what, result, strerror(errno));
    bad++;
}

// Pieces of all sizes, some empty, which are `bytes` together.
static int split(uint8_t *from, size_t bytes, struct iovec pieces[PIECES])
{
    size_t at = 0;
    for (int i = 0; i < PIECES; i++) {
        size_t size = i == 3 ? 0 : i == PIECES - 1 ? bytes - at : bytes >> (i + 1);
        pieces[i] = (struct iovec){from + at, size};
        at += size;
    }
    return PIECES;
}

typedef struct place {
    int ends[2]; // what goes into the second comes out of the first
    bool is_socket;
} place_t;

static void open_pipe(place_t *place)
{
    place->is_socket = false;
    if (pipe(place->ends) != 0)
        abort();
}

static void open_socket(place_t *place)
{
    place->is_socket = true;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, place->ends) != 0)
        abort();
}

static void open_terminal(place_t *place)
{
    struct termios mode;
    place->is_socket = false;
    place->ends[0] = posix_openpt(O_RDWR | O_NOCTTY);
    if (place->ends[0] < 0 || grantpt(place->ends[0]) != 0 || unlockpt(place->ends[0]) != 0 ||
        (place->ends[1] = open(ptsname(place->ends[0]), O_RDWR | O_NOCTTY)) < 0 ||
        tcgetattr(place->ends[1], &mode) != 0)
        abort();
    cfmakeraw(&mode);
    tcsetattr(place->ends[1], TCSANOW, &mode);
}

// The other side: slow enough that the call waits.
typedef struct side {
    int fd;
    size_t bytes, done;
} side_t;

static void *drain(void *argument)
{
    side_t *side = argument;
    ssize_t got;
    while (side->done < side->bytes && (got = read(side->fd, sink + side->done, PIECE)) > 0) {
        side->done += (size_t)got;
        sched_yield();
    }
    return NULL;
}

static void *fill(void *argument)
{
    side_t *side = argument;
    while (side->done < side->bytes) {
        size_t left = side->bytes - side->done;
        ssize_t put = write(side->fd, data + side->done, left < PIECE ? left : PIECE);
        if (put <= 0)
            break;
        side->done += (size_t)put;
        sched_yield();
    }
    return NULL;
}

static long by_write(int fd)
{
    return write(fd, data, BYTES);
}

static long by_raw_write(int fd)
{
    return syscall(SYS_write, fd, data, (size_t)BYTES);
}

static long by_writev(int fd)
{
    struct iovec pieces[PIECES];
    return writev(fd, pieces, split(data, BYTES, pieces));
}

static long by_pwritev2(int fd)
{
    struct iovec pieces[PIECES];
    return pwritev2(fd, pieces, split(data, BYTES, pieces), -1, 0);
}

static long by_send(int fd)
{
    return send(fd, data, BYTES, MSG_NOSIGNAL);
}

static struct msghdr in_pieces(uint8_t *from, struct iovec pieces[PIECES])
{
    return (struct msghdr){.msg_iov = pieces, .msg_iovlen = (size_t)split(from, BYTES, pieces)};
}

static long by_sendmsg(int fd)
{
    struct iovec pieces[PIECES];
    struct msghdr message = in_pieces(data, pieces);
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

static long by_sendfile(int fd)
{
    int file = memfd_create("data", 0);
    off_t at = 0;
    if (file < 0 || write(file, data, BYTES) != BYTES)
        abort();
    long result = sendfile(fd, file, &at, BYTES);
    close(file);
    return result;
}

static void expect_all(const char *name, long result, size_t bytes, const char *otherwise)
{
    expect(result == (long)bytes, name, "is short", result);
    expect(memcmp(sink, data, bytes) == 0, name, otherwise, 0);
}

static void out(const char *name, long (*call)(int fd), void (*open_place)(place_t *))
{
    place_t place;
    pthread_t thread;
    open_place(&place);
    memset(sink, 0, BYTES);
    side_t side = {.fd = place.ends[0], .bytes = BYTES};
    pthread_create(&thread, NULL, drain, &side);
    long result = call(place.ends[1]);
    side.bytes = result > 0 ? (size_t)result : 0;
    if (result != BYTES)
        close(place.ends[1]);
    pthread_join(thread, NULL);
    expect_all(name, result, BYTES, "wrote other bytes");
    close(place.ends[0]);
    if (result == BYTES)
        close(place.ends[1]);
}

static long by_recv(int fd)
{
    return recv(fd, sink, BYTES, MSG_WAITALL);
}

static long by_recvmsg(int fd)
{
    struct iovec pieces[PIECES];
    struct msghdr message = in_pieces(sink, pieces);
    return recvmsg(fd, &message, MSG_WAITALL);
}

// `sent` bytes come, then the end: what is received is all of that.
static void in(const char *name, long (*call)(int fd), size_t sent)
{
    place_t place;
    pthread_t thread;
    open_socket(&place);
    memset(sink, 0, BYTES);
    side_t side = {.fd = place.ends[1], .bytes = sent};
    pthread_create(&thread, NULL, fill, &side);
    if (sent < BYTES) {
        pthread_join(thread, NULL);
        shutdown(place.ends[1], SHUT_WR);
    }
    long result = call(place.ends[0]);
    expect_all(name, result, sent, "read other bytes");
    close(place.ends[0]);
    if (sent == BYTES)
        pthread_join(thread, NULL);
    close(place.ends[1]);
}

static void devices(void)
{
    struct iovec pieces[PIECES];
    int urandom = open("/dev/urandom", O_RDWR), zero = open("/dev/zero", O_RDONLY);
    long result = read(urandom, sink, BYTES);
    expect(result == BYTES, "read /dev/urandom", "is short", result);
    result = readv(urandom, pieces, split(sink, BYTES, pieces));
    expect(result == BYTES, "readv /dev/urandom", "is short", result);
    result = write(urandom, data, BYTES);
    expect(result == BYTES, "write /dev/urandom", "is short", result);
    result = getrandom(sink, BYTES, 0);
    expect(result == BYTES, "getrandom", "is short", result);
    result = pread(zero, sink, BYTES, 4096);
    expect(result == BYTES, "pread /dev/zero", "is short", result);
    result = preadv(zero, pieces, split(sink, BYTES, pieces), 1);
    expect(result == BYTES, "preadv /dev/zero", "is short", result);
    close(urandom);
    close(zero);
}

static void *take_messages(void *argument)
{
    int fd = *(int *)argument;
    static struct mmsghdr messages[MESSAGES];
    static struct iovec pieces[MESSAGES];
    for (int i = 0; i < MESSAGES; i++) {
        pieces[i] = (struct iovec){sink + i * MESSAGE_BYTES, MESSAGE_BYTES};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &pieces[i], .msg_iovlen = 1};
    }
    long result = recvmmsg(fd, messages, MESSAGES, 0, NULL);
    expect(result == MESSAGES, "recvmmsg", "is short", result);
    return NULL;
}

static void many_messages(void)
{
    static struct mmsghdr messages[MESSAGES];
    static struct iovec pieces[MESSAGES];
    int ends[2];
    pthread_t thread;
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) != 0)
        abort();
    for (int i = 0; i < MESSAGES; i++) {
        pieces[i] = (struct iovec){data + i * MESSAGE_BYTES, MESSAGE_BYTES};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &pieces[i], .msg_iovlen = 1};
    }
    memset(sink, 0, BYTES);
    pthread_create(&thread, NULL, take_messages, &ends[0]);
    long result = sendmmsg(ends[1], messages, MESSAGES, 0);
    expect(result == MESSAGES, "sendmmsg", "is short", result);
    pthread_join(thread, NULL);
    expect(memcmp(sink, data, MESSAGES * MESSAGE_BYTES) == 0, "recvmmsg", "read other bytes", 0);
    close(ends[0]);
    close(ends[1]);
}

// Transfers short by themselves stay so.
static void short_by_itself(void)
{
    place_t place;
    long result, all = 0;
    open_pipe(&place);
    fcntl(place.ends[1], F_SETFL, O_NONBLOCK);
    result = write(place.ends[1], data, BYTES);
    expect(result == 65536, "write", "blocks where it should not", result);
    result = read(place.ends[0], sink, BYTES);
    expect(result == 65536, "read", "waits for more", result);
    close(place.ends[0]);
    close(place.ends[1]);
    open_socket(&place);
    for (int i = 0; i < 2; i++, all += result)
        result = send(place.ends[1], data, BYTES, MSG_DONTWAIT);
    expect(result < 0 && errno == EAGAIN, "send", "blocks where it should not", result);
    result = recv(place.ends[0], sink, BYTES, 0);
    expect(result > 0 && result < BYTES, "recv", "waits for more", result);
    close(place.ends[0]);
    close(place.ends[1]);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, place.ends) != 0)
        abort();
    for (int i = 0; i < 2; i++)
        all += send(place.ends[1], data, 60000, 0);
    result = recv(place.ends[0], sink, BYTES, MSG_WAITALL);
    expect(result == 60000, "recv", "takes two messages", result);
    close(place.ends[0]);
    close(place.ends[1]);
}

static volatile sig_atomic_t handled;

static void on_signal(int number)
{
    (void)number;
    handled = 1;
}

typedef struct writer {
    int fd;
    long result;
    int error;
    _Atomic bool is_over;
} writer_t;

static void *write_all(void *argument)
{
    writer_t *writer = argument;
    writer->result = write(writer->fd, data, BYTES);
    writer->error = errno;
    writer->is_over = true;
    return NULL;
}

// A signal of the program's, or the end of who reads, ends the write: what has come is what it says.
static void ended(const char *name, int flags, bool by_signal)
{
    place_t place;
    pthread_t thread;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
    sigaction(SIGUSR1, &action, NULL);
    open_pipe(&place);
    writer_t writer = {.fd = place.ends[1]};
    side_t side = {.fd = place.ends[0], .bytes = BYTES / 3};
    pthread_create(&thread, NULL, write_all, &writer);
    drain(&side);
    usleep(2000);
    if (!by_signal)
        close(place.ends[0]);
    for (handled = 0; !writer.is_over; usleep(1000))
        if (by_signal)
            pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    close(place.ends[1]);
    if (by_signal) {
        side.bytes = BYTES;
        drain(&side);
        close(place.ends[0]);
    }
    expect(writer.result > 0 && writer.result < BYTES, name, "is not ended", writer.result);
    expect(by_signal ? writer.result == (long)side.done : writer.result >= (long)side.done, name, "says another number",
           writer.result);
}

// A thread that is cancelled amid the rest.
static void cancelled(void)
{
    place_t place;
    pthread_t thread;
    void *result;
    open_pipe(&place);
    writer_t writer = {.fd = place.ends[1]};
    side_t side = {.fd = place.ends[0], .bytes = BYTES / 3};
    pthread_create(&thread, NULL, write_all, &writer);
    drain(&side);
    usleep(2000);
    pthread_cancel(thread);
    close(place.ends[0]); // where cancelling waits for the call
    pthread_join(thread, &result);
    expect(result == PTHREAD_CANCELED || writer.is_over, "write", "is not cancelled", 0);
    close(place.ends[1]);
}

static void once(void)
{
    out("write, pipe", by_write, open_pipe);
    out("write, socket", by_write, open_socket);
    out("write, terminal", by_write, open_terminal);
    out("syscall, pipe", by_raw_write, open_pipe);
    out("writev, pipe", by_writev, open_pipe);
    out("writev, socket", by_writev, open_socket);
    out("pwritev2, pipe", by_pwritev2, open_pipe);
    out("send", by_send, open_socket);
    out("sendmsg", by_sendmsg, open_socket);
    out("sendfile", by_sendfile, open_socket);
    in("recv", by_recv, BYTES);
    in("recvmsg", by_recvmsg, BYTES);
    in("recv, end", by_recv, PIECE);
    in("recvmsg, end", by_recvmsg, PIECE);
    devices();
    many_messages();
    short_by_itself();
    ended("write, signal", 0, true);
    ended("write, SA_RESTART", SA_RESTART, true);
    ended("write, closed", 0, false);
    cancelled();
}

int main(int count, char **arguments)
{
    signal(SIGPIPE, SIG_IGN);
    data = malloc(BYTES);
    sink = malloc(BYTES + PIECE);
    for (uint32_t i = 0; i < BYTES / 4; i++)
        ((uint32_t *)data)[i] = i * 2654435761u;
    for (int rounds = count > 1 ? atoi(arguments[1]) : 1; rounds > 0; rounds--)
        once();
    printf("DONE\n");
    return bad;
}
