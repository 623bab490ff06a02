// SPDX-License-Identifier: MIT
// A little HTTP service that runs each request on its own coroutine: starts the workers, and ends them on SIGTERM or
// SIGINT.
#include "service.h"
#include "wire.h"

#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 512, THREADS_MAX = 64 };

static const char usage_text[] =
    "Usage: demo-service [OPTION...]\n"
    "  --port N            listen on this port of 127.0.0.1; 0 picks a free one (8080)\n"
    "  --port-file FILE    write the port to FILE when ready\n"
    "  --threads N         worker threads (1)\n"
    "  --profile-dir DIR   write a profile of each request to DIR/<request id>.prof\n"
    "  --rows N            size of the database (20000)\n"
    "  --scheduler PORT    ask the demo-service there for its stock, not this one\n"
    "  --conductor PORT    be the scheduler: serve /stock from what the conductor says, without a database\n"
    "Endpoints: /health /report[?by=customer] /search?q=TEXT /proxy[?delay=MS] /mixed[?delay=MS] /stock[?delay=MS]\n";

static const struct option long_options[] = {
    {"port", required_argument, NULL, 'p'},        {"port-file", required_argument, NULL, 'f'},
    {"threads", required_argument, NULL, 't'},     {"rows", required_argument, NULL, 'r'},
    {"profile-dir", required_argument, NULL, 'd'}, {"scheduler", required_argument, NULL, 's'},
    {"conductor", required_argument, NULL, 'c'},   {NULL, 0, NULL, 0},
};

// Returns false for what is no option.
static bool main_apply(int option, settings_t *settings)
{
    unsigned long number = option != '?' ? strtoul(optarg, NULL, 10) : 0;
    switch (option) {
    case 'p':
        settings->port = (uint16_t)number;
        return true;
    case 'f':
        settings->port_file = optarg;
        return true;
    case 't':
        settings->threads = (unsigned)number;
        return number >= 1 && number <= THREADS_MAX;
    case 'd':
        settings->profile_dir = optarg;
        return true;
    case 'r':
        settings->rows = (unsigned)number;
        return true;
    case 's':
        settings->scheduler_port = (uint16_t)number;
        return true;
    case 'c':
        settings->conductor_port = (uint16_t)number;
        settings->rows = 0;
        return true;
    default:
        return false;
    }
}

// Listen, and take the port that there is. Returns 0 or -1 with errno.
static int main_listen(settings_t *settings)
{
    struct sockaddr_in where = {
        .sin_family = AF_INET, .sin_port = htons(settings->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(where);
    int on = 1, fd = settings->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    settings->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0 || settings->stop_fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    wire_stamp_arrivals(fd);
    if (bind(fd, (const struct sockaddr *)&where, len) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&where, &len) != 0)
        return -1;
    settings->port = ntohs(where.sin_port);
    if (settings->scheduler_port == 0)
        settings->scheduler_port = settings->port;
    return 0;
}

// The file appears with its contents: it can be read at once. Returns 0 or -1 with errno.
static int main_write_port(const settings_t *settings)
{
    char temporary[4096];
    if (settings->port_file == NULL)
        return 0;
    snprintf(temporary, sizeof(temporary), "%s.new", settings->port_file);
    FILE *file = fopen(temporary, "w");
    if (file == NULL || fprintf(file, "%u\n", settings->port) < 0 || fclose(file) != 0)
        return -1;
    return rename(temporary, settings->port_file);
}

static void *main_work(void *arg)
{
    worker_t *worker = arg;
    if (loop_run(serve_connections, worker, worker->settings->stop_fd) != 0)
        perror("demo-service: event loop");
    return NULL;
}

// Returns how many were started.
static unsigned main_start(const settings_t *settings, worker_t *workers)
{
    for (unsigned i = 0; i < settings->threads; i++) {
        char name[32];
        worker_t *worker = &workers[i];
        worker->settings = settings;
        worker->db = settings->rows > 0 ? database_create(settings->rows) : NULL;
        if ((worker->db == NULL && settings->rows > 0) ||
            pthread_create(&worker->thread, NULL, main_work, worker) != 0) {
            sqlite3_close(worker->db);
            return i;
        }
        snprintf(name, sizeof(name), "worker-%u", i);
        pthread_setname_np(worker->thread, name);
    }
    return settings->threads;
}

int main(int argc, char **argv)
{
    static worker_t workers[THREADS_MAX];
    settings_t settings = {.port = 8080, .threads = 1, .rows = 20000};
    sigset_t signals;
    int option, received;
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
        if (!main_apply(option, &settings)) {
            fputs(usage_text, stderr);
            return 2;
        }
    // Blocked before the workers start, so that they inherit it: sigwait() takes them.
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (main_listen(&settings) != 0) {
        perror("demo-service: listen");
        return 1;
    }
    unsigned started = main_start(&settings, workers);
    bool is_good = started == settings.threads;
    if (is_good && main_write_port(&settings) != 0) {
        perror(settings.port_file);
        is_good = false;
    }
    if (is_good)
        sigwait(&signals, &received);
    eventfd_write(settings.stop_fd, 1);
    for (unsigned i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        sqlite3_close(workers[i].db);
    }
    return is_good ? 0 : 1;
}
