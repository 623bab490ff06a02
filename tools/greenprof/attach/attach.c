// SPDX-License-Identifier: MIT
// greenprof attach, detach: into a process that runs already, and out of it.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "attachable.h"
#include "borrow_thread.h"
#include "command.h"
#include "copy_library.h"
#include "live/control.h"
#include "live/live_control.h"
#include "live/live_keys.h"
#include "live/live_target.h"
#include "message.h"
#include "pause_others.h"
#include "print.h"
#include "run/run_checks.h"
#include "seccomp.h"
#include "target_modules.h"
#include "target_root.h"
#include "thread_stop.h"

enum {
    TEXT_SIZE = 4096,
    RTLD_NOW_GLOBAL = 0x102,
    REACH_MS = 1000,
    SOCKET_MS = 60000,
    STEP_MS = 2,
    FIRST = -20,
    LEAVE_TRIES = 3
};

static volatile sig_atomic_t is_interrupted;

static void attach_on_signal(int number)
{
    (void)number;
    is_interrupted = 1;
}

// Where more threads want to run than there are processors, this process goes first, where that is permitted.
static void attach_hurry(bool is_urgent)
{
    static int before;
    if (is_urgent)
        before = getpriority(PRIO_PROCESS, 0);
    setpriority(PRIO_PROCESS, 0, is_urgent ? FIRST : before);
}

// The core that is in the process already; NULL = none.
static const gp_target_module_t *attach_present_core(const gp_target_modules_t *modules)
{
    static const char *const names[] = {"libgreenprof-core.so", "libgreenprof.so", GP_CARRIED_NAME};
    const gp_target_module_t *core = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && core == NULL; i++)
        core = gp_target_module_named(modules, names[i]);
    return core;
}

// A carried core has no file there, but the one here that it is a copy of.
static void attach_know_file(gp_target_modules_t *modules, const char *core)
{
    for (size_t i = 0; i < modules->count; i++)
        if (strncmp(modules->items[i].path, "/" GP_CARRIED_NAME, sizeof(GP_CARRIED_NAME)) == 0 &&
            gp_target_module_is(modules, &modules->items[i], core))
            modules->items[i].file = core;
}

// Call a library in the loader's message by our name for it.
static void attach_rename_in(char text[TEXT_SIZE], const char *name, const char *ours)
{
    char renamed[TEXT_SIZE];
    const char *at = strstr(text, name);
    if (at == NULL)
        return;
    snprintf(renamed, sizeof(renamed), "%.*s%s%s", (int)(at - text), text, ours, at + strlen(name));
    snprintf(text, TEXT_SIZE, "%s", renamed);
}

//   path_text: of the core, as the process knows it.
static int attach_say_dlerror(gp_borrow_thread_t *borrowed, const gp_target_modules_t *modules, const char *path_text,
                              const char *core, const char *subject)
{
    const char *const name = "dlerror";
    gp_target_function_t function;
    char text[TEXT_SIZE] = "";
    uint64_t address = 0;
    if (gp_target_functions(modules, gp_target_module_named(modules, "libc.so.6"), &name, 1, &function) == 0 &&
        function.address != 0 && gp_borrow_thread_call(borrowed, function.address, 0, 0, &address) == 0 && address != 0)
        gp_borrow_thread_read_text(borrowed, address, text, sizeof(text));
    attach_rename_in(text, path_text, core);
    return gp_fail(subject, "%s cannot be loaded into it: %s", core, text[0] != '\0' ? text : "dlopen() failed");
}

static int attach_say_call(const char *subject, int error)
{
    if (error == -ETIMEDOUT)
        return gp_fail(subject,
                       "another of its threads holds the loader's lock, or one like it, for too long: it is left "
                       "as it was; try again");
    return gp_fail(subject, "the call in it did not come back: %s", strerror(-error));
}

// As attach_say_dlerror().
static int attach_load_from(gp_borrow_thread_t *borrowed, const gp_target_modules_t *modules, const char *path_text,
                            const char *core, const char *subject)
{
    static const char *const names[] = {"dlopen", "__libc_dlopen_mode"}; // the latter before glibc 2.34
    gp_target_function_t functions[2];
    uint64_t handle = 0, path = gp_borrow_thread_text(borrowed, path_text);
    int error = gp_target_functions(modules, gp_target_module_named(modules, "libc.so.6"), names, 2, functions);
    uint64_t open_at = functions[0].address != 0 ? functions[0].address : functions[1].address;
    if (error != 0 || open_at == 0 || path == 0)
        return gp_fail(subject, "its C library has no dlopen() that is known");
    error = gp_borrow_thread_call(borrowed, open_at, path, RTLD_NOW_GLOBAL, &handle);
    if (error != 0)
        return attach_say_call(subject, error);
    return handle != 0 ? 0 : attach_say_dlerror(borrowed, modules, path_text, core, subject);
}

static int attach_load(gp_borrow_thread_t *borrowed, const gp_target_modules_t *modules, bool is_carried,
                       const char *core, const char *subject)
{
    gp_copy_library_t carried;
    if (!is_carried)
        return attach_load_from(borrowed, modules, core, core, subject);
    int status = gp_carry(&carried, borrowed, core, subject);
    if (status == 0)
        status = attach_load_from(borrowed, modules, carried.path, core, subject);
    gp_copy_library_close(&carried, borrowed);
    return status;
}

// settings: NULL = take back what was begun.
static int attach_begin(gp_borrow_thread_t *borrowed, pid_t pid, const char *core_file, const char *settings,
                        const char *subject)
{
    const char *const name = "prof_core_attach";
    gp_target_modules_t modules;
    gp_target_function_t function = {0};
    uint64_t result = 0, text = settings != NULL ? gp_borrow_thread_text(borrowed, settings) : 0;
    int error = gp_target_modules_read(pid, &modules);
    attach_know_file(&modules, core_file);
    const gp_target_module_t *core = error == 0 ? attach_present_core(&modules) : NULL;
    if (core != NULL)
        error = gp_target_functions(&modules, core, &name, 1, &function);
    gp_target_modules_free(&modules);
    if (error != 0 || function.address == 0 || (text == 0 && settings != NULL))
        return gp_fail(subject, "the greenprof in it is another version, which cannot be attached to");
    error = gp_borrow_thread_call(borrowed, function.address, text, 0, &result);
    if (error != 0)
        return attach_say_call(subject, error);
    return (int)result == 0 ? 0 : gp_fail(subject, "control of it does not begin: %s", strerror(-(int)result));
}

// Signals wait: a thread that is borrowed must be given back.
//   settings: as attach_begin().
static int attach_inject(pid_t pid, const gp_target_modules_t *modules, const char *core, const char *settings,
                         const char *subject)
{
    bool is_loaded = attach_present_core(modules) != NULL;
    bool is_carried = !is_loaded && !gp_target_root_has_copy(modules->pid, core);
    gp_thread_stop_hold_signals();
    gp_pause_others_begin(pid);
    gp_borrow_thread_t *borrowed = gp_borrow(modules, is_carried, subject);
    int status = borrowed != NULL ? 0 : EXIT_FAILED;
    if (status == 0 && !is_loaded)
        status = attach_load(borrowed, modules, is_carried, core, subject);
    gp_pause_others_is_loaded();
    if (status == 0)
        status = attach_begin(borrowed, pid, core, settings, subject);
    if (borrowed != NULL)
        gp_borrow_thread_return(borrowed);
    gp_thread_stop_let_signals_go();
    return status;
}

static int attach(const gp_target_t *target, const gp_arguments_t *arguments, const char *subject)
{
    char core[PATH_MAX], settings[TEXT_SIZE];
    gp_target_modules_t modules = {0};
    int status = gp_run_find_core(NULL, false, core);
    if (status == 0)
        status = gp_attachable_kind(target->pid, subject);
    if (status == 0)
        status = gp_attachable_program(target->pid, subject);
    if (status == 0)
        status = gp_seccomp_look(target->pid, subject);
    int error = status == 0 ? gp_target_modules_read(target->pid, &modules) : 0;
    if (error != 0)
        status = gp_fail(subject, "may not be looked at: %s", strerror(-error));
    if (status == 0)
        status = gp_attachable_libc(&modules, subject);
    if (status == 0)
        status = gp_attachable_proc(target->pid, subject);
    snprintf(settings, sizeof(settings), "NATIVE=%d\n", arguments->native);
    if (status == 0)
        status = attach_inject(target->pid, &modules, core, settings, subject);
    gp_target_modules_free(&modules);
    return status;
}

// Its socket was there before its thread began.
static int attach_wait_for_socket(const gp_target_t *target, const char *subject)
{
    for (int waited = 0; waited < REACH_MS; waited += STEP_MS) {
        if (gp_control_is_there(target))
            return 0;
        gp_pause_others_look();
        if (!gp_target_is_there(target))
            return gp_fail(subject, "the process has ended");
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
    }
    return gp_fail(subject, "greenprof was in it, but could not be reached: is its directory of sockets elsewhere?");
}

// Its socket is gone when it has left.
static int attach_ask_to_leave(const gp_target_t *target, const char *subject, gp_control_reply_t *reply)
{
    gp_control_request_t request = gp_control_request(GP_CONTROL_DETACH);
    int status = 0;
    reply->error = -ETIMEDOUT; // where its threads get little of the processors, the capture's end takes its time
    for (int i = 0; i < LEAVE_TRIES && status == 0 && reply->error == -ETIMEDOUT; i++)
        status = gp_control_ask(target->pid, subject, &request, reply, NULL);
    if (status == 0 && reply->error == -EPERM)
        return gp_fail(subject, "it was started with greenprof: 'greenprof stop PID' stops the recording");
    if (status != 0 || reply->error != 0)
        return status != 0 ? status : gp_control_refused(subject, &request, reply);
    for (int waited = 0; waited < SOCKET_MS && gp_control_is_there(target); waited += STEP_MS) {
        gp_pause_others_look();
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
    }
    return 0;
}

static int attach_detach(pid_t pid, const char *subject, gp_control_reply_t *reply)
{
    gp_target_t target;
    attach_hurry(true);
    int status = gp_target_find(&target, pid, subject);
    if (status != 0)
        return status;
    gp_thread_stop_drop_samples();
    if (gp_control_is_there(&target))
        gp_pause_others_begin(pid);
    status = attach_ask_to_leave(&target, subject, reply);
    gp_pause_others_end();
    return status;
}

// Until then, the process' end, or the user's.
static void attach_wait_for(const gp_target_t *target, uint64_t ns)
{
    const struct sigaction action = {.sa_handler = attach_on_signal};
    struct timespec now, end;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += (time_t)(ns / 1000000000u);
    do {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (!is_interrupted && now.tv_sec < end.tv_sec + (now.tv_nsec < end.tv_nsec) && gp_target_is_there(target));
}

// Undo a failed attach: the process is left as 'greenprof detach' leaves it.
static void attach_take_back(const gp_target_t *target, const char *subject)
{
    char core[PATH_MAX];
    gp_target_modules_t modules = {0};
    gp_control_reply_t reply;
    if (!gp_target_is_there(target))
        return;
    if (gp_control_is_there(target))
        attach_ask_to_leave(target, subject, &reply);
    else if (gp_run_find_core(NULL, false, core) == 0 && gp_target_modules_read(target->pid, &modules) == 0 &&
             attach_present_core(&modules) != NULL)
        attach_inject(target->pid, &modules, core, NULL, subject);
    gp_target_modules_free(&modules);
}

static int attach_start(const gp_target_t *target, const gp_control_request_t *request, gp_control_reply_t *reply,
                        const char *subject)
{
    int status = gp_control_ask(target->pid, subject, request, reply, NULL);
    return status == 0 && reply->error != 0 ? gp_control_refused(subject, request, reply) : status;
}

// Attach where nothing is, and start.
static int attach_begin_recording(const gp_target_t *target, const gp_arguments_t *arguments,
                                  const gp_control_request_t *request, gp_control_reply_t *reply)
{
    const char *subject = arguments->operands[0];
    if (gp_control_is_there(target))
        return attach_start(target, request, reply, subject);
    int status = gp_live_key_fits(target, subject);
    if (status == 0)
        status = attach(target, arguments, subject);
    if (status != 0)
        return status;
    status = attach_wait_for_socket(target, subject);
    if (status == 0)
        status = attach_start(target, request, reply, subject);
    if (status != 0)
        attach_take_back(target, subject);
    return status;
}

// For as long as was asked for.
static int attach_record(const gp_target_t *target, const gp_arguments_t *arguments, gp_control_reply_t *reply)
{
    attach_wait_for(target, arguments->duration_s * 1000000000u);
    if (gp_target_is_there(target)) {
        int status = attach_detach(target->pid, arguments->operands[0], reply);
        if (status != 0)
            return status;
        gp_control_print_capture(reply, "");
        return gp_finish_stdout();
    }
    printf("the process has ended: greenprof report "); // nobody knows the number of samples any more
    gp_print_text(reply->path);
    printf("\n");
    return gp_finish_stdout();
}

int gp_command_attach(const gp_arguments_t *arguments)
{
    gp_control_request_t request;
    gp_control_reply_t reply;
    gp_target_t target;
    pid_t pid = 0;
    const char *subject = arguments->operands[0];
    attach_hurry(true);
    int status = gp_control_parse_pid(arguments, &pid);
    if (status == 0)
        status = gp_control_start_request(arguments, pid, &request);
    if (status == 0)
        status = gp_target_find(&target, pid, subject);
    if (status == 0 && gp_target_is_stopped(&target))
        status = gp_fail(subject, "the process is stopped, by a signal or a debugger: it cannot be attached to");
    if (status == 0)
        status = attach_begin_recording(&target, arguments, &request, &reply);
    gp_pause_others_end();
    attach_hurry(false);
    if (status != 0)
        return status;
    gp_control_warn_of_rings(&reply);
    if (arguments->duration_s != 0)
        return attach_record(&target, arguments, &reply);
    printf("recording to ");
    gp_print_text(reply.path);
    printf("; 'greenprof detach %d' ends it\n", (int)pid);
    return gp_finish_stdout();
}

int gp_command_detach(const gp_arguments_t *arguments)
{
    gp_control_reply_t reply;
    pid_t pid = 0;
    int status = gp_control_parse_pid(arguments, &pid);
    if (status == 0)
        status = attach_detach(pid, arguments->operands[0], &reply);
    if (status != 0)
        return status;
    if (reply.path[0] != '\0')
        gp_control_print_capture(&reply, "");
    return gp_finish_stdout();
}
