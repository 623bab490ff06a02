// SPDX-License-Identifier: MIT
// A request that calls another process: it starts itself again with the trace and the span, and waits for it. Each has
// a function of its own that works.
//
// usage: service | service TRACE SPAN
#include <inttypes.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <greenprof/trace.h>

extern char **environ;

static volatile uint64_t sink;

static void work(int64_t ns)
{
    struct timespec now;
    int64_t end = 0;
    do {
        for (int i = 0; i < 10000; i++)
            sink += (uint64_t)i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        int64_t at = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
        end = end == 0 ? at + ns : end;
        if (at >= end)
            break;
    } while (1);
}

void caller_work(void);
void callee_work(void);
int ask_other(char *program, char *trace);
int call(char *program);

__attribute__((noinline)) void caller_work(void)
{
    work(150000000);
    __asm__ volatile(""); // no tail call: the function is on the stack
}

__attribute__((noinline)) void callee_work(void)
{
    work(150000000);
    __asm__ volatile("");
}

static int serve(const char *trace, const char *span)
{
    prof_trace_id_t id;
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    if (prof_trace_parse(trace, &id) < 0)
        return 1;
    options.trace = &id;
    options.parent_id = strtoull(span, NULL, 16);
    options.flags = PROF_SPAN_REMOTE_PARENT;
    prof_span_t *dispatch = prof_span_begin(PROF_SPAN_REST_DISPATCH, "GET /callee", &options);
    callee_work();
    prof_span_fail(dispatch, "Teapot", "short and stout");
    return prof_span_end(dispatch);
}

static const prof_span_options_t with_stack = {.size = sizeof(with_stack), .flags = PROF_SPAN_STACK};

__attribute__((noinline)) int ask_other(char *program, char *trace)
{
    prof_span_t *rest_call = prof_span_begin(PROF_SPAN_REST_CALL, "GET /callee", &with_stack);
    prof_trace_id_t id;
    char span[17];
    pid_t child;
    int status = 1;
    prof_trace_get(&id);
    prof_trace_to_hex(&id, trace);
    snprintf(span, sizeof(span), "%016" PRIx64, prof_span_id(rest_call));
    char *arguments[] = {program, trace, span, NULL};
    if (posix_spawn(&child, program, NULL, NULL, arguments, environ) == 0)
        waitpid(child, &status, 0);
    prof_span_set(rest_call, "http.status", "418");
    prof_span_end(rest_call);
    return status;
}

__attribute__((noinline)) int call(char *program)
{
    prof_span_t *request = prof_span_begin(PROF_SPAN_REST_DISPATCH, "GET /caller", &with_stack);
    char trace[PROF_TRACE_HEX_SIZE];
    caller_work();
    int status = ask_other(program, trace);
    prof_span_end(request);
    puts(trace);
    return status;
}

int main(int argc, char **argv)
{
    return argc == 3 ? serve(argv[1], argv[2]) : call(argv[0]);
}
