// SPDX-License-Identifier: MIT
// A host under the orders of standard input, a line at a time, each answered with a line:
//   take               close all descriptors, and have files by their numbers; how many
//   changed            how many of them others have written to
//   open URL | close [URL] | flush MS | status [URL]
//   requests N        N requests: a root with a database call, in which there is a call of the cache
//   failed            a request with an error; slow MS: one that takes as long; busy MS: one busy as long
//   foreign UUID      a request with a parent in another process, which OSProfiler made
//   fork N            a child with N requests, which then exits; _fork: which leaves by _exit()
//   daemon N MS       a lasting child: N requests in MS, and then nothing for long
//   _exit             leave at once
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "greenprof/consumer.h"

static unsigned request_count;

// Computes for ms of CPU time.
__attribute__((noinline)) void compute_request(unsigned ms)
{
    struct timespec now, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    end.tv_nsec += (long)ms * 1000000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}

static void request(const char *error, unsigned sleep_ms, unsigned busy_ms)
{
    static const prof_field_t fields[] = {{"http.method", "GET"}, {"quote", "say \"hi\"\n\xff"}};
    prof_trace_id_t trace = {{0}};
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    unsigned pid = (unsigned)getpid(), number = ++request_count;
    memcpy(trace.bytes, &pid, sizeof(pid));
    memcpy(trace.bytes + 12, &number, sizeof(number));
    options.trace = &trace;
    options.fields = fields;
    options.field_count = 2;
    prof_span_t *root = prof_span_begin(PROF_SPAN_REST_DISPATCH, "GET /servers/all-of-them?limit=3", &options);
    prof_span_t *database = prof_span_begin(PROF_SPAN_DATABASE, "SELECT 1", NULL);
    prof_span_t *cache = prof_span_begin(PROF_SPAN_CACHE, "get key", NULL);
    prof_span_end(cache);
    prof_span_end(database);
    if (sleep_ms != 0)
        usleep(sleep_ms * 1000);
    if (busy_ms != 0)
        compute_request(busy_ms);
    if (error != NULL)
        prof_span_fail(root, error, "it did not work");
    prof_span_end(root);
}

static void foreign(const char *parent)
{
    const prof_field_t fields[] = {{"osprofiler.parent", parent}};
    prof_trace_id_t trace = {{0xab}};
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    options.trace = &trace;
    options.parent_id = 0x77;
    options.flags = PROF_SPAN_REMOTE_PARENT;
    options.fields = fields;
    options.field_count = 1;
    prof_span_end(prof_span_begin(PROF_SPAN_RPC_DISPATCH, "build_instance", &options));
}

static void requests(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        request(NULL, 0, 0);
}

static void show_status(const char *url)
{
    prof_consumer_status_t s = {.size = sizeof(s)};
    int error = prof_consumer_status(url[0] != '\0' ? url : NULL, &s);
#define SHOW(member) printf(" " #member "=%llu", (unsigned long long)s.member)
    printf("%d", error);
    SHOW(given), SHOW(sent), SHOW(refused), SHOW(lost_queue), SHOW(lost_end), SHOW(fast), SHOW(queued), SHOW(spooled);
    SHOW(recovered), SHOW(unheard), SHOW(failures), SHOW(profiles), SHOW(profiles_lost);
#undef SHOW
    printf(" last_error=%d\n", s.last_error);
}

static void fork_child(unsigned count, int leaves_at_once)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        requests(count);
        if (leaves_at_once)
            _exit(0);
        exit(0);
    }
    waitpid(child, &status, 0);
    printf("%d %d\n", (int)child, status);
}

static void start_daemon(unsigned count, unsigned ms)
{
    fflush(stdout);
    pid_t child = fork();
    if (child != 0) {
        printf("%d\n", (int)child);
        return;
    }
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    for (unsigned i = 0; i < count; i++) {
        usleep(ms * 1000 / count);
        requests(1);
    }
    sleep(600);
    _exit(0);
}

static const char own_text[] = "of which no byte may change";
enum { ROOM = 8 }; // of descriptors that are left
static int own[64];
static unsigned own_count;

// A daemon closes what it does not know, and has files of its own by those numbers.
static void take_descriptors(void)
{
    close_range(3, ~0U, 0);
    for (own_count = 0; own_count < sizeof(own) / sizeof(own[0]); own_count++) {
        int fd = memfd_create("own", MFD_CLOEXEC);
        if (fd < 0 || write(fd, own_text, sizeof(own_text)) != sizeof(own_text))
            break;
        own[own_count] = fd;
    }
    for (unsigned i = 0; i < ROOM; i++) // the lowest ones
        close(own[i]);
    printf("%u\n", own_count);
}

static void show_changed(void)
{
    unsigned changed = 0;
    for (unsigned i = ROOM; i < own_count; i++) {
        char text[2 * sizeof(own_text)];
        ssize_t len = pread(own[i], text, sizeof(text), 0);
        changed += len != sizeof(own_text) || memcmp(text, own_text, sizeof(own_text)) != 0;
    }
    printf("%u\n", changed);
}

static void obey(const char *word, const char *rest)
{
    unsigned number = (unsigned)strtoul(rest, NULL, 10);
    if (strcmp(word, "open") == 0)
        printf("%d\n", prof_consumer_open(rest));
    else if (strcmp(word, "close") == 0)
        printf("%d\n", prof_consumer_close(rest[0] != '\0' ? rest : NULL));
    else if (strcmp(word, "flush") == 0)
        printf("%d\n", prof_consumer_flush(number));
    else if (strcmp(word, "status") == 0)
        show_status(rest);
    else if (strcmp(word, "requests") == 0)
        requests(number), printf("%u\n", request_count);
    else if (strcmp(word, "failed") == 0)
        request("NotFound", 0, 0), printf("%u\n", request_count);
    else if (strcmp(word, "slow") == 0)
        request(NULL, number, 0), printf("%u\n", request_count);
    else if (strcmp(word, "busy") == 0)
        request(NULL, 0, number), printf("%u\n", request_count);
    else if (strcmp(word, "foreign") == 0)
        foreign(rest), printf("0\n");
    else if (strcmp(word, "fork") == 0 || strcmp(word, "_fork") == 0)
        fork_child(number, word[0] == '_');
    else if (strcmp(word, "daemon") == 0)
        start_daemon(number, (unsigned)strtoul(strchr(rest, ' '), NULL, 10));
    else if (strcmp(word, "take") == 0)
        take_descriptors();
    else if (strcmp(word, "changed") == 0)
        show_changed();
    else if (strcmp(word, "_exit") == 0)
        _exit(0);
    else
        printf("what?\n");
}

int main(void)
{
    char line[2048];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *rest = strchr(line, ' ');
        if (rest != NULL)
            *rest++ = '\0';
        obey(line, rest != NULL ? rest : "");
        fflush(stdout);
    }
    return 0;
}
