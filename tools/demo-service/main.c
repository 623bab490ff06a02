// SPDX-License-Identifier: MIT
// A little HTTP service: starts the workers, and ends them on SIGTERM or SIGINT.
#include "database.h"
#include "service_options.h"
#include "socket.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    DRAIN_MS = 5000,
};

typedef struct service {
    settings_t settings;
    int client_fd;
    int upstream_fd;
    worker_t *workers; // worker_t[settings.threads + 1], the last is the upstream, where it has one of its own
    unsigned started;
} service_t;

static void complain(const char *what, int error)
{
    fprintf(stderr, "demo-service: %s: %s\n", what, strerror(error));
}

static int listen_on(const char *address, uint16_t port)
{
    int fd = socket_listen(address, port);
    if (fd < 0) {
        char where[80];
        snprintf(where, sizeof where, "%s:%u", address, (unsigned)port);
        complain(where, -fd);
    }
    return fd;
}

static bool has_upstream(const service_t *service)
{
    return !service->settings.is_scheduler && service->settings.scheduler_port == 0;
}

static int prepare_client_worker(service_t *service, unsigned index, const char *db_path)
{
    worker_t *worker = &service->workers[index];
    snprintf(worker->name, sizeof worker->name, "worker-%u", index % 1000);
    worker->listen_fd = service->client_fd;
    worker->routes = service->settings.is_scheduler ? upstream_routes : client_routes;
    worker->profile_dir = service->settings.profile_dir;
    if (!service->settings.is_scheduler)
        worker->db = database_open(db_path);
    return worker->db != NULL || service->settings.is_scheduler ? 0 : -1;
}

static void prepare_upstream(service_t *service)
{
    worker_t *worker = &service->workers[service->settings.threads];
    snprintf(worker->name, sizeof worker->name, "upstream");
    worker->listen_fd = service->upstream_fd;
    worker->routes = upstream_routes;
}

static int prepare_workers(service_t *service)
{
    char path[DATABASE_PATH_SIZE] = "";
    int rc = 0;
    if (!service->settings.is_scheduler && database_create(service->settings.rows, path) != 0)
        return -1;
    for (unsigned i = 0; i < service->settings.threads && rc == 0; i++)
        rc = prepare_client_worker(service, i, path);
    if (has_upstream(service))
        prepare_upstream(service);
    if (path[0] != '\0')
        unlink(path); // the workers have it open
    return rc;
}

static int start_worker(service_t *service, worker_t *worker)
{
    worker->settings = &service->settings;
    worker->upstream_port =
        has_upstream(service) ? socket_port(service->upstream_fd) : service->settings.scheduler_port;
    worker->loop = loop_create();
    if (worker->loop == NULL) {
        complain("event loop", errno);
        return -1;
    }
    int error = pthread_create(&worker->thread, NULL, worker_main, worker);
    if (error != 0) {
        complain("pthread_create", error);
        return -1;
    }
    pthread_setname_np(worker->thread, worker->name);
    return 0;
}

static int start_workers(service_t *service)
{
    int rc = 0;
    unsigned count = service->settings.threads + (has_upstream(service) ? 1 : 0);
    while (service->started < count && rc == 0) {
        rc = start_worker(service, &service->workers[service->started]);
        if (rc == 0)
            service->started++;
    }
    return rc;
}

// Workers [lo, hi), as far as they were started.
static void stop_range(service_t *service, unsigned lo, unsigned hi)
{
    for (unsigned i = lo; i < hi && i < service->started; i++)
        loop_stop(service->workers[i].loop, DRAIN_MS);
    for (unsigned i = lo; i < hi && i < service->started; i++)
        pthread_join(service->workers[i].thread, NULL);
}

// The upstream last: the others may need it to finish their requests.
static void stop_workers(service_t *service)
{
    unsigned upstream = service->settings.threads;
    stop_range(service, 0, upstream);
    stop_range(service, upstream, upstream + 1);
}

// The file appears with its contents: it can be read at once.
static int write_port(const char *path, unsigned port)
{
    char temporary[4096];
    int len = snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *file = len < (int)sizeof temporary ? fopen(temporary, "w") : NULL;
    if (file == NULL || fprintf(file, "%u\n", port) < 0 || fclose(file) != 0 || rename(temporary, path) != 0) {
        complain(path, errno);
        return -1;
    }
    return 0;
}

static int announce(const service_t *service)
{
    const settings_t *settings = &service->settings;
    unsigned port = socket_port(service->client_fd);
    printf("demo-service: listening on http://%s:%u\n", settings->address, port);
    fflush(stdout);
    return settings->port_file != NULL ? write_port(settings->port_file, port) : 0;
}

static int run(service_t *service, const sigset_t *signals)
{
    int received;
    if (prepare_workers(service) != 0)
        return -1;
    int rc = start_workers(service);
    if (rc == 0)
        rc = announce(service);
    if (rc == 0)
        sigwait(signals, &received);
    stop_workers(service);
    return rc;
}

static void release(service_t *service)
{
    for (unsigned i = 0; i <= service->settings.threads && service->workers != NULL; i++) {
        loop_free(service->workers[i].loop);
        sqlite3_close(service->workers[i].db);
    }
    free(service->workers);
    if (service->client_fd >= 0)
        close(service->client_fd);
    if (service->upstream_fd >= 0)
        close(service->upstream_fd);
}

int main(int argc, char **argv)
{
    service_t service = {.client_fd = -1, .upstream_fd = -1};
    sigset_t signals;
    options_read(argc, argv, &service.settings);
    // Blocked before the workers start, so that they inherit it: sigwait() takes them.
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);

    int rc = -1;
    service.workers = calloc(service.settings.threads + 1, sizeof *service.workers);
    service.client_fd = listen_on(service.settings.address, service.settings.port);
    if (service.client_fd >= 0 && has_upstream(&service))
        service.upstream_fd = listen_on("127.0.0.1", 0);
    bool is_ready = service.client_fd >= 0 && (service.upstream_fd >= 0 || !has_upstream(&service));
    if (service.workers != NULL && is_ready)
        rc = run(&service, &signals);
    release(&service);
    return rc == 0 ? 0 : 1;
}
