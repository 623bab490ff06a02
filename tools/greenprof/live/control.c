// SPDX-License-Identifier: MIT
// greenprof start, stop, dump, status: the profiling of a running process.
#include <errno.h>
#include <fcntl.h>
#include <greenprof/prof.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "capture/write/end_summary.h"
#include "command.h"
#include "control.h"
#include "export/write/json_text.h"
#include "lent.h"
#include "live_control.h"
#include "live_target.h"
#include "message.h"
#include "model/budget.h"
#include "model/engines.h"
#include "model/rested_words.h"
#include "print.h"
#include "report/output_guard.h"
#include "store/slow.h"

static const char *const state_names[] = {
    [GP_CONTROL_STOPPED] = "stopped",
    [GP_CONTROL_RECORDING] = "recording",
    [GP_CONTROL_FULL] = "full",
    [GP_CONTROL_FAILED] = "failed",
};

const char *gp_control_state_name(uint32_t state)
{
    return state < sizeof(state_names) / sizeof(state_names[0]) ? state_names[state] : "unknown";
}

static const char *control_engine_name(uint32_t engine)
{
#define NAME(number, id, name) [number] = #name,
    static const char *const names[] = {GP_ENGINES(NAME)};
#undef NAME
    return engine < sizeof(names) / sizeof(names[0]) && names[engine] != NULL ? names[engine] : "none";
}

int gp_control_parse_pid(const gp_arguments_t *arguments, pid_t *pid)
{
    uint64_t number;
    const char *text = arguments->operands[0], *command = arguments->command->name;
    if (gp_parse_number(text, 1, INT32_MAX, &number)) {
        *pid = (pid_t)number;
        return 0;
    }
    size_t count = gp_target_named(text, pid);
    if (count == 0)
        return gp_usage_error(command, "'%s' is no process id, and no process of yours has that name", text);
    if (count > 1)
        return gp_usage_error(command, "%zu processes are named '%s': 'pgrep %s' lists them", count, text, text);
    return 0;
}

bool gp_control_is_process(const char *operand)
{
    uint64_t number;
    pid_t pid;
    return access(operand, F_OK) != 0 &&
           (gp_parse_number(operand, 1, INT32_MAX, &number) || gp_target_named(operand, &pid) > 0);
}

// Ask, and let both the connection and the process fail with a message.
static int control_ask(const gp_arguments_t *arguments, const gp_control_request_t *request, gp_control_reply_t *reply)
{
    pid_t pid = 0;
    int status = gp_control_parse_pid(arguments, &pid);
    if (status == 0)
        status = gp_control_ask(pid, arguments->operands[0], request, reply, NULL);
    if (status == 0 && reply->error != 0)
        status = gp_control_refused(arguments->operands[0], request, reply);
    return status;
}

// The process has another working directory.
static int control_make_absolute(const char *path, char out[GP_CONTROL_PATH_SIZE])
{
    char directory[PATH_MAX] = "";
    if (path[0] == '\0')
        return gp_fail("-o", "the name of the file is empty");
    if (path[0] != '/' && getcwd(directory, sizeof(directory)) == NULL)
        return gp_fail(path, "the working directory: %s", strerror(errno));
    int length = snprintf(out, GP_CONTROL_PATH_SIZE, "%s%s%s", directory, path[0] != '/' ? "/" : "", path);
    return length < GP_CONTROL_PATH_SIZE ? 0 : gp_fail(path, "%s", strerror(ENAMETOOLONG));
}

int gp_control_start_request(const gp_arguments_t *arguments, pid_t attached, gp_control_request_t *request)
{
    char standard[64];
    const char *path = arguments->output;
    *request = gp_control_request(GP_CONTROL_START);
    request->frequency_hz = (uint32_t)arguments->frequency_hz;
    request->flush_ms = (uint32_t)arguments->flush_ms;
    if (arguments->clock != NULL)
        request->clock = strcmp(arguments->clock, "wall") == 0 ? PROF_CLOCK_WALL : PROF_CLOCK_CPU;
    if (arguments->budget != NULL)
        gp_budget_parse(arguments->budget, &request->budget_ppm); // the option's row has it checked
    snprintf(standard, sizeof(standard), "%d.greenprof", (int)attached);
    if (arguments->spans != NULL && arguments->spans[0] == '@')
        return gp_fail("--spans", "a file is named when the process starts: GREENPROF_SPANS=@FILE");
    if (arguments->spans != NULL)
        snprintf(request->spans, sizeof(request->spans), "%s", arguments->spans);
    if (path == NULL && attached != 0)
        path = standard;
    return path != NULL ? control_make_absolute(path, request->path) : 0;
}

void gp_control_warn_of_rings(const gp_control_reply_t *reply)
{
    char line[GP_CLOSING_LINE_SIZE];
    if (reply->rings_error == 0)
        return;
    size_t length = gp_end_summary_no_rings(line, reply->path, -reply->rings_error);
    fwrite(line, 1, length, stderr);
}

int gp_command_start(const gp_arguments_t *arguments)
{
    gp_control_request_t request;
    gp_control_reply_t reply;
    int status = gp_control_start_request(arguments, 0, &request);
    if (status == 0)
        status = control_ask(arguments, &request, &reply);
    if (status != 0)
        return status;
    gp_control_warn_of_rings(&reply);
    printf("recording to ");
    gp_print_text(reply.path);
    printf("\n");
    return gp_finish_stdout();
}

void gp_control_print_capture(const gp_control_reply_t *reply, const char *what)
{
    uint64_t lost = gp_control_lost(reply);
    printf("%s%" PRIu64 " samples", what, reply->counters[GP_COUNTER_SAMPLES]);
    if (lost > 0)
        printf(", %" PRIu64 " lost", lost);
    printf(": greenprof report ");
    gp_print_text(reply->path);
    printf("\n");
}

int gp_command_stop(const gp_arguments_t *arguments)
{
    gp_control_request_t request = gp_control_request(GP_CONTROL_STOP);
    gp_control_reply_t reply;
    int status = control_ask(arguments, &request, &reply);
    if (status != 0)
        return status;
    if (reply.state == GP_CONTROL_FAILED)
        return gp_fail(reply.path, "not all of it could be written");
    gp_control_print_capture(&reply, "stopped, ");
    return gp_finish_stdout();
}

typedef struct copy {
    int fd;
    uint64_t bytes;
} copy_t;

static int control_copy_bytes(gp_output_t *output, void *context)
{
    copy_t *copy = context;
    char buffer[65536];
    while (copy->bytes > 0) {
        size_t most = copy->bytes < sizeof(buffer) ? (size_t)copy->bytes : sizeof(buffer);
        ssize_t got = read(copy->fd, buffer, most);
        if (got <= 0)
            return got < 0 ? -errno : -ESTALE; // removed or cut meanwhile
        if (fwrite(buffer, 1, (size_t)got, output->file) != (size_t)got)
            return gp_output_state(output->file);
        copy->bytes -= (uint64_t)got;
    }
    return 0;
}

// Copy the whole chunks written by then: the process goes on writing.
static int control_copy_capture(int fd, const gp_control_reply_t *reply, const char *path)
{
    copy_t copy = {.fd = fd, .bytes = reply->bytes};
    int error = gp_output_guarded(path, control_copy_bytes, &copy);
    return error == 0 ? 0 : gp_fail(path, "%s", strerror(-error));
}

// The capture, by the descriptor that the process sends: root opens nothing by a name from a process.
static int control_take_capture(const gp_arguments_t *arguments, const gp_control_request_t *request, bool wants_file,
                                gp_control_reply_t *reply, int *fd)
{
    pid_t pid = 0;
    const char *subject = arguments->operands[0];
    int status = gp_control_parse_pid(arguments, &pid);
    if (status == 0)
        status = gp_control_ask(pid, subject, request, reply, fd);
    if (status == 0 && reply->error != 0)
        status = gp_control_refused(subject, request, reply);
    if (status == 0 && !wants_file)
        return 0;
    if (status == 0 && *fd < 0)
        return gp_fail(subject, "its capture is being written just now: try again");
    if (status == 0 && (*fd = gp_lent_reopen(*fd)) < 0)
        status = gp_fail(reply->path, "%s", strerror(errno));
    return status;
}

static bool control_is_name_of(const char *path, int fd)
{
    struct stat named, ours;
    return stat(path, &named) == 0 && fstat(fd, &ours) == 0 && named.st_dev == ours.st_dev &&
           named.st_ino == ours.st_ino;
}

static const char *control_name_of(const gp_control_reply_t *reply, int fd, char by_descriptor[64])
{
    snprintf(by_descriptor, 64, "/proc/self/fd/%d", fd);
    return control_is_name_of(reply->path, fd) ? reply->path : by_descriptor;
}

int gp_control_open_capture(const gp_arguments_t *arguments, char path[GP_CONTROL_PATH_SIZE], int *fd)
{
    gp_control_request_t request = gp_control_request(GP_CONTROL_DUMP);
    gp_control_reply_t reply;
    char by_descriptor[64];
    int status = control_take_capture(arguments, &request, true, &reply, fd);
    if (status == 0)
        snprintf(path, GP_CONTROL_PATH_SIZE, "%s", control_name_of(&reply, *fd, by_descriptor));
    return status;
}

static int control_use_capture(const gp_arguments_t *arguments, const gp_slow_wish_t *wish, gp_control_reply_t *reply,
                               int fd)
{
    char by_descriptor[64];
    const char *name = control_name_of(reply, fd, by_descriptor);
    int status = arguments->slow != NULL ? gp_slow_once(wish, name) : 0;
    if (status != 0 || arguments->output == NULL)
        return status;
    status = gp_output_check(arguments->output, &name, 1);
    if (status == 0)
        status = control_copy_capture(fd, reply, arguments->output);
    snprintf(reply->path, sizeof(reply->path), "%s", arguments->output);
    return status;
}

int gp_command_dump(const gp_arguments_t *arguments)
{
    gp_control_request_t request = gp_control_request(GP_CONTROL_DUMP);
    gp_control_reply_t reply;
    int fd = -1;
    if (arguments->output != NULL && (arguments->output[0] == '\0' || strcmp(arguments->output, "-") == 0))
        return gp_fail("-o", "a capture needs a file with a name");
    gp_slow_wish_t wish = {0};
    int status = arguments->slow != NULL ? gp_slow_wish(&wish, arguments->slow, "dump", true) : 0;
    if (status == 0)
        status = control_take_capture(arguments, &request, arguments->output != NULL || arguments->slow != NULL, &reply,
                                      &fd);
    if (status == 0)
        status = control_use_capture(arguments, &wish, &reply, fd);
    if (fd >= 0)
        close(fd);
    gp_slow_wish_free(&wish);
    if (status != 0)
        return status;
    gp_control_print_capture(&reply, "so far ");
    return gp_finish_stdout();
}

static double control_seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static void control_print_budget(const gp_control_reply_t *reply)
{
    if (reply->budget_ppm == 0)
        return;
    printf("  budget   %.4g %% of the CPU time", reply->budget_ppm / 1e4);
    if (reply->lowered_hz != 0)
        printf(", rate lowered to %u Hz to stay within it", reply->lowered_hz);
    char words[GP_RESTED_WORDS_SIZE];
    if (reply->state == GP_CONTROL_RECORDING &&
        gp_rested_words(reply->counters, reply->now_ns - reply->start_ns, words))
        printf(", %s", words);
    if (reply->slowed_percent > 100)
        printf(", looked and written %.1f times as seldom", reply->slowed_percent / 100.0);
    if (reply->budget_processes > 1)
        printf(", shared by %u processes", reply->budget_processes);
    if (reply->delivery_ns != 0)
        printf("; a signal takes %.1f us beside its handler", reply->delivery_ns / 1e3);
    printf("\n");
}

// Clients that are switched in another way than by default.
static void control_print_clients(uint64_t on)
{
    const char *between = "  spans    ";
    for (int i = 0; i < GP_CLIENTS_COUNT; i++) {
        uint64_t bit = GP_CLIENT_BIT(i);
        if ((on & bit) != (gp_clients_standard() & bit)) {
            printf("%s%s%s", between, on & bit ? "" : "-", gp_client_names[i]);
            between = ",";
        }
    }
    printf("%s", between[0] == ',' ? "\n" : "");
}

static void control_print_status(const gp_control_reply_t *reply, const char *subject)
{
    char start[64] = "";
    time_t when = (time_t)(reply->start_realtime_ns / 1000000000u);
    struct tm local;
    double lasted = control_seconds(reply->now_ns - reply->start_ns);
    strftime(start, sizeof(start), "%Y-%m-%d %H:%M:%S", localtime_r(&when, &local));
    if (reply->state == GP_CONTROL_RECORDING)
        printf("%s: recording since %s (%.1f s), %u Hz, engine %s\n", subject, start, lasted, reply->frequency_hz,
               control_engine_name(reply->engine));
    else
        printf("%s: %s\n", subject,
               reply->state == GP_CONTROL_FULL     ? "stopped: the capture was as large as it may be"
               : reply->state == GP_CONTROL_FAILED ? "stopped: the capture could not be written any further"
                                                   : "stopped");
    if (reply->path[0] != '\0') {
        printf("%s", reply->state == GP_CONTROL_RECORDING ? "  capture  " : "  latest   ");
        gp_print_text(reply->path);
        printf(", %" PRIu64 " bytes", reply->bytes);
        if (reply->state == GP_CONTROL_RECORDING && lasted > 0)
            printf(", %.0f a second", (double)reply->bytes / lasted);
        printf("\n  samples  %" PRIu64 ", %" PRIu64 " lost\n", reply->counters[GP_COUNTER_SAMPLES],
               gp_control_lost(reply));
    }
    control_print_budget(reply);
    control_print_clients(reply->clients);
    if (reply->refused > 0)
        printf("  refused  %" PRIu64 " requests: with a wrong key or none, or malformed\n", reply->refused);
    printf("  threads  %u\n  CPU      %.3f s, and %.3f s of greenprof's own threads, since the process began\n",
           reply->threads, control_seconds(reply->process_cpu_ns), control_seconds(reply->own_cpu_ns));
}

void gp_control_json_state(gp_json_t *json, const gp_control_reply_t *reply)
{
    gp_json_key_text(json, "state", gp_control_state_name(reply->state));
    gp_json_key_uint(json, "samples", reply->counters[GP_COUNTER_SAMPLES]);
    gp_json_key_uint(json, "lost", gp_control_lost(reply));
    gp_json_key_uint(json, "threads", reply->threads);
}

static void control_print_status_json(const gp_control_reply_t *reply, pid_t pid)
{
    gp_json_t json = {.out = stdout};
    gp_json_open(&json, '{');
    gp_json_key_uint(&json, "pid", (uint64_t)pid);
    gp_control_json_state(&json, reply);
    gp_json_key(&json, "process_cpu_seconds");
    gp_json_seconds(&json, reply->process_cpu_ns);
    gp_json_key(&json, "own_cpu_seconds");
    gp_json_seconds(&json, reply->own_cpu_ns);
    gp_json_key_uint(&json, "refused_requests", reply->refused);
    gp_json_key(&json, "spans");
    gp_json_open(&json, '[');
    for (int i = 0; i < GP_CLIENTS_COUNT; i++)
        if (reply->clients & GP_CLIENT_BIT(i))
            gp_json_text(&json, gp_client_names[i]);
    gp_json_close(&json, ']');
    if (reply->path[0] != '\0') {
        gp_json_key_text(&json, "file", reply->path);
        gp_json_key_uint(&json, "bytes", reply->bytes);
        gp_json_key(&json, "started");
        gp_json_seconds(&json, reply->start_realtime_ns);
        gp_json_key_uint(&json, "frequency_hz", reply->frequency_hz);
        gp_json_key_text(&json, "clock", reply->clock == PROF_CLOCK_WALL ? "wall" : "cpu");
    }
    if (reply->state == GP_CONTROL_RECORDING) {
        gp_json_key(&json, "seconds");
        gp_json_seconds(&json, reply->now_ns - reply->start_ns);
        gp_json_key_text(&json, "engine", control_engine_name(reply->engine));
    }
    if (reply->budget_ppm != 0) {
        gp_json_key_uint(&json, "budget_ppm", reply->budget_ppm);
        gp_json_key_uint(&json, "budget_processes", reply->budget_processes);
        gp_json_key_uint(&json, "lowered_to_hz", reply->lowered_hz);
        gp_json_key_uint(&json, "slowed_percent", reply->slowed_percent);
        gp_json_key_uint(&json, "rests", reply->counters[GP_COUNTER_RESTS]);
        gp_json_key(&json, "rested_seconds");
        gp_json_seconds(&json, reply->counters[GP_COUNTER_REST_NS]);
        gp_json_key_uint(&json, "signal_ns", reply->delivery_ns);
    }
    gp_json_close(&json, '}');
    printf("\n");
}

int gp_command_status(const gp_arguments_t *arguments)
{
    gp_control_request_t request = gp_control_request(GP_CONTROL_STATUS);
    gp_control_reply_t reply;
    pid_t pid = 0;
    int status = control_ask(arguments, &request, &reply);
    if (status == 0)
        status = gp_control_parse_pid(arguments, &pid);
    if (status != 0)
        return status;
    if (arguments->json)
        control_print_status_json(&reply, pid);
    else
        control_print_status(&reply, arguments->operands[0]);
    return gp_finish_stdout();
}
