// SPDX-License-Identifier: MIT
// The demo's clients: as many threads as there are to be requests at once, each with a connection of its own, share a
// list of paths. For each request a line: seconds, status, X-Request-Id, X-Trace-Id, X-Cpu-Us, address.
//
// A request takes from the moment at which it left for the kernel to the one at which the last byte of the response
// came out of the network, by the kernel's own time stamp: when a client's thread gets the processor to look at it does
// not count. That is what a client on a machine of its own would see.
#include "wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { RESPONSE_MAX = 4 << 20, PATH_MAX_BYTES = 256, CLIENTS_MAX = 256, REQUESTS_MAX = 100000, TIMEOUT_S = 60 };

typedef struct answer {
    char path[PATH_MAX_BYTES];
    char id[128], trace[64], cpu_us[32];
    int64_t sent_ns, received_ns;
    int status;
} answer_t;

static struct {
    uint16_t port;
    answer_t *answers;
    size_t count;
    atomic_size_t next;
    atomic_bool failed;
} work;

static int64_t load_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int load_connect_to_service(void)
{
    struct sockaddr_in where = {
        .sin_family = AF_INET, .sin_port = htons(work.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = TIMEOUT_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    wire_stamp_arrivals(fd);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (connect(fd, (const struct sockaddr *)&where, sizeof(where)) == 0)
        return fd;
    close(fd);
    return -1;
}

// Reads one response into `data` [RESPONSE_MAX + 1]. Returns false where it is not whole.
static bool load_read_response(int fd, char *data, answer_t *answer)
{
    size_t len = 0, whole = SIZE_MAX;
    char length[32];
    while (len < whole) {
        ssize_t got = len < RESPONSE_MAX ? wire_receive(fd, data + len, RESPONSE_MAX - len, &answer->received_ns) : -1;
        if (got <= 0)
            return false;
        len += (size_t)got;
        data[len] = '\0';
        const char *end = whole == SIZE_MAX ? strstr(data, "\r\n\r\n") : NULL;
        if (end == NULL)
            continue;
        wire_header(data, "Content-Length", length, sizeof(length));
        whole = (size_t)(end - data) + 4 + strtoul(length, NULL, 10);
    }
    if (answer->received_ns == 0)
        answer->received_ns = load_now_ns();
    wire_header(data, "X-Request-Id", answer->id, sizeof(answer->id));
    wire_header(data, "X-Trace-Id", answer->trace, sizeof(answer->trace));
    wire_header(data, "X-Cpu-Us", answer->cpu_us, sizeof(answer->cpu_us));
    return sscanf(data, "HTTP/1.1 %d", &answer->status) == 1;
}

static bool load_ask(int fd, char *data, answer_t *answer)
{
    int len = snprintf(data, RESPONSE_MAX, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAccept-Encoding: gzip\r\n\r\n",
                       answer->path, (unsigned)work.port);
    answer->sent_ns = load_now_ns();
    return send(fd, data, (size_t)len, MSG_NOSIGNAL) == len && load_read_response(fd, data, answer);
}

static void *load_run_client(void *unused)
{
    (void)unused;
    char *data = malloc(RESPONSE_MAX + 1);
    int fd = load_connect_to_service();
    for (size_t i; data != NULL && fd >= 0 && (i = atomic_fetch_add(&work.next, 1)) < work.count;) {
        if (load_ask(fd, data, &work.answers[i]))
            continue;
        fprintf(stderr, "demo-load: %s: no whole response\n", work.answers[i].path);
        atomic_store(&work.failed, true);
        break;
    }
    if (data == NULL || fd < 0)
        atomic_store(&work.failed, true);
    if (fd >= 0)
        close(fd);
    free(data);
    return NULL;
}

// Paths from standard input, one a line.
static bool load_read_paths(void)
{
    work.answers = calloc(REQUESTS_MAX, sizeof(*work.answers));
    while (work.answers != NULL && work.count < REQUESTS_MAX &&
           fgets(work.answers[work.count].path, PATH_MAX_BYTES, stdin) != NULL) {
        char *path = work.answers[work.count].path;
        path[strcspn(path, "\n")] = '\0';
        work.count++;
    }
    return work.count > 0;
}

static void load_print_answers(void)
{
    for (size_t i = 0; i < work.count; i++) {
        const answer_t *answer = &work.answers[i];
        printf("%.6f\t%d\t%s\t%s\t%s\thttp://127.0.0.1:%u%s\n", (double)(answer->received_ns - answer->sent_ns) / 1e9,
               answer->status, answer->id, answer->trace, answer->cpu_us, (unsigned)work.port, answer->path);
    }
}

int main(int argc, char **argv)
{
    pthread_t threads[CLIENTS_MAX];
    unsigned long port = argc == 3 ? strtoul(argv[1], NULL, 10) : 0,
                  clients = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (port == 0 || port > UINT16_MAX || clients == 0 || clients > CLIENTS_MAX || !load_read_paths()) {
        fprintf(stderr, "usage: demo-load PORT CLIENTS <PATHS    (1 to %d clients)\n", CLIENTS_MAX);
        return 2;
    }
    work.port = (uint16_t)port;
    unsigned long started = 0;
    while (started < clients && pthread_create(&threads[started], NULL, load_run_client, NULL) == 0)
        started++;
    for (unsigned long i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    load_print_answers();
    free(work.answers);
    return started == 0 || atomic_load(&work.failed) ? 1 : 0;
}
