// SPDX-License-Identifier: MIT
// The calls, one function each.
#include "waits.h"

#include <errno.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { MS = 1000000, ONE = 1 * MS, SHORT = MS / 5 };

static struct timespec spec(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
}

static struct timeval val(uint64_t ns)
{
    return (struct timeval){.tv_sec = (time_t)(ns / 1000000000u), .tv_usec = (long)(ns % 1000000000u / 1000)};
}

static struct timespec from_now(clockid_t clock, uint64_t ns)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return spec((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + ns);
}

static int ms(uint64_t ns)
{
    return (int)(ns / MS);
}

// For a call that ends with 0 when its time is over.
static int over(long result)
{
    return result == 0 ? 0 : result < 0 ? errno : -1;
}

// For a call that ends with an error to say so.
static int timed_out(long result, int expected)
{
    return result >= 0 ? -1 : errno == expected ? 0 : errno;
}

static int by_epoll_wait(waits_place_t *place, uint64_t ns)
{
    struct epoll_event event;
    return over(epoll_wait(place->epoll, &event, 1, ms(ns)));
}

static int by_epoll_pwait(waits_place_t *place, uint64_t ns)
{
    struct epoll_event event;
    sigset_t none;
    sigemptyset(&none);
    return over(epoll_pwait(place->epoll, &event, 1, ms(ns), &none));
}

static int by_epoll_pwait2(waits_place_t *place, uint64_t ns)
{
    struct epoll_event event;
    struct timespec time = spec(ns);
    return over(epoll_pwait2(place->epoll, &event, 1, &time, NULL));
}

static int by_epoll_through_syscall(waits_place_t *place, uint64_t ns)
{
    struct epoll_event event;
    return over(syscall(SYS_epoll_wait, place->epoll, &event, 1, ms(ns)));
}

static int by_poll(waits_place_t *place, uint64_t ns)
{
    struct pollfd fd = {.fd = place->pipe[0], .events = POLLIN};
    return over(poll(&fd, 1, ms(ns)));
}

static int by_ppoll(waits_place_t *place, uint64_t ns)
{
    struct pollfd fd = {.fd = place->pipe[0], .events = POLLIN};
    struct timespec time = spec(ns);
    sigset_t none;
    sigemptyset(&none);
    return over(ppoll(&fd, 1, &time, &none));
}

static int by_select(waits_place_t *place, uint64_t ns)
{
    struct timeval time = val(ns);
    (void)place;
    return over(select(0, NULL, NULL, NULL, &time));
}

static int by_select_of_one(waits_place_t *place, uint64_t ns)
{
    struct timeval time = val(ns);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(place->pipe[0], &set);
    return over(select(place->pipe[0] + 1, &set, NULL, NULL, &time));
}

static int by_pselect(waits_place_t *place, uint64_t ns)
{
    struct timespec time = spec(ns);
    sigset_t none;
    (void)place;
    sigemptyset(&none);
    return over(pselect(0, NULL, NULL, NULL, &time, &none));
}

static int by_nanosleep(waits_place_t *place, uint64_t ns)
{
    struct timespec time = spec(ns), rest;
    (void)place;
    return over(nanosleep(&time, &rest));
}

static int by_clock_nanosleep(waits_place_t *place, uint64_t ns)
{
    struct timespec time = spec(ns);
    (void)place;
    return clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static int by_clock_nanosleep_until(waits_place_t *place, uint64_t ns)
{
    struct timespec until = from_now(CLOCK_MONOTONIC, ns);
    (void)place;
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static int by_usleep(waits_place_t *place, uint64_t ns)
{
    (void)place;
    return over(usleep((useconds_t)(ns / 1000)));
}

static int by_thrd_sleep(waits_place_t *place, uint64_t ns)
{
    struct timespec time = spec(ns);
    (void)place;
    int result = thrd_sleep(&time, NULL);
    return result == 0 ? 0 : EINTR;
}

static int by_sem_timedwait(waits_place_t *place, uint64_t ns)
{
    struct timespec until = from_now(CLOCK_REALTIME, ns);
    sem_t semaphore;
    (void)place;
    sem_init(&semaphore, 0, 0);
    return timed_out(sem_timedwait(&semaphore, &until), ETIMEDOUT);
}

static int by_sem_clockwait(waits_place_t *place, uint64_t ns)
{
    struct timespec until = from_now(CLOCK_MONOTONIC, ns);
    sem_t semaphore;
    (void)place;
    sem_init(&semaphore, 0, 0);
    return timed_out(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &until), ETIMEDOUT);
}

static int by_futex(waits_place_t *place, uint64_t ns)
{
    struct timespec time = spec(ns);
    int word = 0;
    (void)place;
    return timed_out(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0), ETIMEDOUT);
}

static int by_cond_timedwait(waits_place_t *place, uint64_t ns)
{
    static __thread pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static __thread pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec until = from_now(CLOCK_REALTIME, ns);
    (void)place;
    pthread_mutex_lock(&mutex);
    int error = pthread_cond_timedwait(&never, &mutex, &until);
    pthread_mutex_unlock(&mutex);
    return error == ETIMEDOUT ? 0 : error;
}

static int by_sigtimedwait(waits_place_t *place, uint64_t ns)
{
    struct timespec time = spec(ns);
    sigset_t one;
    (void)place;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    return timed_out(sigtimedwait(&one, NULL, &time), EAGAIN);
}

static int by_semtimedop(waits_place_t *place, uint64_t ns)
{
    struct sembuf down = {.sem_op = -1};
    struct timespec time = spec(ns);
    return timed_out(semtimedop(place->semaphores, &down, 1, &time), EAGAIN);
}

static int by_io_getevents(waits_place_t *place, uint64_t ns)
{
    struct io_event event;
    struct timespec time = spec(ns);
    return over(syscall(SYS_io_getevents, place->aio, 1, 1, &event, &time));
}

// A system call in the program's own code, as libaio and liburing have them.
static int by_inline_io_getevents(waits_place_t *place, uint64_t ns)
{
    struct io_event event;
    struct timespec time = spec(ns);
#if defined(__x86_64__)
    register struct timespec *fifth __asm__("r8") = &time;
    register struct io_event *fourth __asm__("r10") = &event;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"((long)SYS_io_getevents), "D"(place->aio), "S"(1L), "d"(1L), "r"(fourth), "r"(fifth)
                     : "rcx", "r11", "memory");
    return result < 0 ? (int)-result : over(result);
#else
    return over(syscall(SYS_io_getevents, place->aio, 1, 1, &event, &time));
#endif
}

static void set_timeouts(const waits_place_t *place, uint64_t ns)
{
    struct timeval time = val(ns);
    setsockopt(place->sockets[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
    setsockopt(place->listener, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
    setsockopt(place->full[0], SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
}

static int by_recv(waits_place_t *place, uint64_t ns)
{
    char byte;
    set_timeouts(place, ns);
    return timed_out(recv(place->sockets[0], &byte, 1, 0), EAGAIN);
}

static int by_recvfrom(waits_place_t *place, uint64_t ns)
{
    char byte;
    struct sockaddr_storage from;
    socklen_t size = sizeof(from);
    set_timeouts(place, ns);
    return timed_out(recvfrom(place->sockets[0], &byte, 1, 0, (struct sockaddr *)&from, &size), EAGAIN);
}

static int by_recvmsg(waits_place_t *place, uint64_t ns)
{
    char byte;
    struct iovec vector = {&byte, 1};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
    set_timeouts(place, ns);
    return timed_out(recvmsg(place->sockets[0], &message, 0), EAGAIN);
}

static int by_read_of_socket(waits_place_t *place, uint64_t ns)
{
    char byte;
    set_timeouts(place, ns);
    return timed_out(read(place->sockets[0], &byte, 1), EAGAIN);
}

static int by_accept(waits_place_t *place, uint64_t ns)
{
    set_timeouts(place, ns);
    return timed_out(accept(place->listener, NULL, NULL), EAGAIN);
}

static int by_send(waits_place_t *place, uint64_t ns)
{
    static const char bytes[4096];
    set_timeouts(place, ns);
    return timed_out(send(place->full[0], bytes, sizeof(bytes), MSG_NOSIGNAL), EAGAIN);
}

static int by_sendmsg(waits_place_t *place, uint64_t ns)
{
    static char bytes[4096];
    struct iovec vector = {bytes, sizeof(bytes)};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
    set_timeouts(place, ns);
    return timed_out(sendmsg(place->full[0], &message, MSG_NOSIGNAL), EAGAIN);
}

// Calls without a timeout. Another thread ends them, at a time told through a pipe.
typedef struct ender {
    pthread_t thread, waiter;
    void (*end)(struct ender *ender);
    waits_place_t *place;
    _Atomic int done;
} ender_t;

static void *end_it(void *argument)
{
    ender_t *ender = argument;
    usleep(500);
    while (!ender->done) { // a signal may come before the wait for it begins
        ender->end(ender);
        usleep(2000);
    }
    return NULL;
}

static void once(ender_t *ender)
{
    if (ender->place->is_silent)
        return;
    struct timespec pause = {.tv_nsec = 300000};
    nanosleep(&pause, NULL);
}

static int with_ender(waits_place_t *place, void (*end)(ender_t *), int (*wait)(waits_place_t *))
{
    ender_t ender = {.end = place->is_silent ? once : end, .place = place, .waiter = pthread_self()};
    sigset_t mine, old;
    sigemptyset(&mine);
    sigaddset(&mine, SIGUSR1); // is for the waiting thread
    pthread_sigmask(SIG_BLOCK, &mine, &old);
    if (!place->is_silent)
        pthread_create(&ender.thread, NULL, end_it, &ender);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    int result = wait(place);
    ender.done = 1;
    if (!place->is_silent)
        pthread_join(ender.thread, NULL);
    return result;
}

static void send_message(ender_t *ender)
{
    struct {
        long type;
        char text[8];
    } message = {.type = 1};
    msgsnd(ender->place->queue, &message, sizeof(message.text), IPC_NOWAIT);
    ender->done = 1;
}

static int receive_message(waits_place_t *place)
{
    struct {
        long type;
        char text[8];
    } message;
    return msgrcv(place->queue, &message, sizeof(message.text), 0, 0) >= 0 ? 0 : errno;
}

static int by_msgrcv(waits_place_t *place, uint64_t ns)
{
    (void)ns;
    return with_ender(place, send_message, receive_message);
}

static void take_message(ender_t *ender)
{
    struct {
        long type;
        char text[1024];
    } message;
    msgrcv(ender->place->full_queue, &message, sizeof(message.text), 0, IPC_NOWAIT);
    ender->done = 1;
}

static int put_message(waits_place_t *place)
{
    struct {
        long type;
        char text[1024];
    } message = {.type = 1};
    return msgsnd(place->full_queue, &message, sizeof(message.text), 0) == 0 ? 0 : errno;
}

static int by_msgsnd(waits_place_t *place, uint64_t ns)
{
    (void)ns;
    return with_ender(place, take_message, put_message);
}

static void raise_semaphore(ender_t *ender)
{
    struct sembuf up = {.sem_op = 1};
    semop(ender->place->semaphores, &up, 1);
    ender->done = 1;
}

static int lower_semaphore(waits_place_t *place)
{
    struct sembuf down = {.sem_op = -1};
    return semop(place->semaphores, &down, 1) == 0 ? 0 : errno;
}

static int by_semop(waits_place_t *place, uint64_t ns)
{
    (void)ns;
    return with_ender(place, raise_semaphore, lower_semaphore);
}

static void write_byte(ender_t *ender)
{
    ender->done = write(ender->place->pipe[1], "x", 1) == 1;
}

static int read_byte(waits_place_t *place)
{
    char byte;
    return read(place->pipe[0], &byte, 1) == 1 ? 0 : errno;
}

static int by_read(waits_place_t *place, uint64_t ns)
{
    (void)ns;
    return with_ender(place, write_byte, read_byte);
}

static sem_t *of_thread(void)
{
    static __thread sem_t semaphore;
    return &semaphore;
}

static __thread sem_t *shared_semaphore;

static int wait_semaphore(waits_place_t *place)
{
    (void)place;
    return sem_wait(shared_semaphore) == 0 ? 0 : errno;
}

static void post(ender_t *ender)
{
    sem_post((sem_t *)(uintptr_t)ender->place->aio);
    ender->done = 1;
}

static int by_sem_wait(waits_place_t *place, uint64_t ns)
{
    (void)ns;
    waits_place_t copy = *place; // aio: which semaphore
    shared_semaphore = of_thread();
    sem_init(shared_semaphore, 0, 0);
    copy.aio = (uintptr_t)shared_semaphore;
    return with_ender(&copy, post, wait_semaphore);
}

static void send_signal(ender_t *ender)
{
    pthread_kill(ender->waiter, SIGUSR2);
}

static _Thread_local volatile sig_atomic_t got_usr2;

static void count_usr2(int number)
{
    (void)number;
    got_usr2 = 1;
}

// EINTR is the only end that these know: it must be by the program's signal.
static int wait_by_sigsuspend(waits_place_t *place)
{
    sigset_t one, old;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    got_usr2 = 0;
    pthread_sigmask(SIG_BLOCK, &one, &old);
    int result = sigsuspend(&old) == -1 ? errno : -1;
    bool mine = got_usr2;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return place->is_silent ? result : mine && result == EINTR ? 0 : EINTR;
}

static int wait_by_pause(waits_place_t *place)
{
    got_usr2 = 0;
    pause();
    return place->is_silent ? EINTR : got_usr2 ? 0 : EINTR;
}

static int with_usr2(waits_place_t *place, int (*wait)(waits_place_t *))
{
    struct sigaction action = {.sa_handler = count_usr2};
    sigaction(SIGUSR2, &action, NULL);
    return with_ender(place, send_signal, wait);
}

static int by_sigsuspend(waits_place_t *place, uint64_t ns)
{
    (void)ns;
    return with_usr2(place, wait_by_sigsuspend);
}

static int by_pause(waits_place_t *place, uint64_t ns)
{
    (void)ns;
    return with_usr2(place, wait_by_pause);
}

void waits_open(waits_place_t *place)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    static const char bytes[65536];
    memset(place, 0, sizeof(*place));
    place->epoll = epoll_create1(0);
    place->listener = socket(AF_INET, SOCK_STREAM, 0);
    place->queue = msgget(IPC_PRIVATE, 0600);
    place->full_queue = msgget(IPC_PRIVATE, 0600);
    place->semaphores = semget(IPC_PRIVATE, 1, 0600);
    if (pipe(place->pipe) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, place->sockets) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, place->full) != 0 || place->queue < 0 || place->semaphores < 0 ||
        bind(place->listener, (struct sockaddr *)&any, sizeof(any)) != 0 || listen(place->listener, 1) != 0)
        exit(99);
    syscall(SYS_io_setup, 4, &place->aio);
    while (send(place->full[0], bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
    struct {
        long type;
        char text[1024];
    } message = {.type = 1};
    while (msgsnd(place->full_queue, &message, sizeof(message.text), IPC_NOWAIT) == 0)
        ;
}

void waits_close(waits_place_t *place)
{
    const int fds[] = {place->epoll,      place->listener,   place->pipe[0], place->pipe[1],
                       place->sockets[0], place->sockets[1], place->full[0], place->full[1]};
    for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        close(fds[i]);
    msgctl(place->queue, IPC_RMID, NULL);
    msgctl(place->full_queue, IPC_RMID, NULL);
    semctl(place->semaphores, 0, IPC_RMID);
    syscall(SYS_io_destroy, place->aio);
}

// Timeouts of sockets are in ticks of the kernel, and rounded up.
const waits_call_t waits_calls[] = {
    {"epoll_wait", by_epoll_wait, ONE, 1},
    {"epoll_pwait", by_epoll_pwait, ONE, 1},
    {"epoll_pwait2", by_epoll_pwait2, SHORT, 1},
    {"epoll_wait through syscall()", by_epoll_through_syscall, ONE, 1},
    {"poll", by_poll, ONE, 1},
    {"ppoll", by_ppoll, SHORT, 1},
    {"select", by_select, SHORT, 1},
    {"select of one", by_select_of_one, SHORT, 1},
    {"pselect", by_pselect, SHORT, 1},
    {"nanosleep", by_nanosleep, SHORT, 1},
    {"clock_nanosleep", by_clock_nanosleep, SHORT, 1},
    {"clock_nanosleep until", by_clock_nanosleep_until, SHORT, 1},
    {"usleep", by_usleep, SHORT, 1},
    {"thrd_sleep", by_thrd_sleep, SHORT, 1},
    {"sem_wait", by_sem_wait, 0, 1},
    {"sem_timedwait", by_sem_timedwait, SHORT, 1},
    {"sem_clockwait", by_sem_clockwait, SHORT, 1},
    {"futex", by_futex, SHORT, 1},
    {"pthread_cond_timedwait", by_cond_timedwait, SHORT, 0},
    {"sigtimedwait", by_sigtimedwait, SHORT, 1},
    {"semop", by_semop, 0, 1},
    {"semtimedop", by_semtimedop, SHORT, 1},
    {"io_getevents", by_io_getevents, SHORT, 1},
    {"io_getevents inline", by_inline_io_getevents, SHORT, 1},
    {"recv", by_recv, ONE, 1},
    {"recvfrom", by_recvfrom, ONE, 1},
    {"recvmsg", by_recvmsg, ONE, 1},
    {"read of a socket", by_read_of_socket, ONE, 1},
    {"accept", by_accept, ONE, 1},
    {"send", by_send, ONE, 1},
    {"sendmsg", by_sendmsg, ONE, 1},
    {"msgrcv", by_msgrcv, 0, 1},
    {"msgsnd", by_msgsnd, 0, 1},
    {"read", by_read, 0, 1},
    {"sigsuspend", by_sigsuspend, 0, 1},
    {"pause", by_pause, 0, 1},
    {NULL, NULL, 0, 0},
};
