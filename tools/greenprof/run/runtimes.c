// SPDX-License-Identifier: MIT
// greenprof runtimes: which runtimes are hooked and how; and which of them a program or a process has.
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "export/write/json_text.h"
#include "message.h"
#include "patchable.h"
#include "run_checks.h"
#include "runtimes.h"
#include "unhooked.h"

typedef struct runtime {
    const char *name, *how;
    const char *object; // pattern of the file that is the runtime; NULL = linked into the program
    const char *symbol; // a name that the file has
    const char *wrap;   // for what is linked in: greenprof-wrap-NAME
    const char *except; // pattern of programs that have the name for something else; NULL = none
    const char *also;   // a second name, where other libraries have the first, too; NULL = none
} runtime_t;

// Generated from what the runtimes' folders declare (greenprof_runtime() in cmake/runtime.cmake).
static const runtime_t runtimes[] = {
#include "runtime_rows.inc"
};

typedef struct polled {
    const char *title, *variable; // of the program: what is read
    bool is_patched;              // where that is possible, which makes polling unnecessary
} polled_t;

static const polled_t polled[] = {
#include "polled_rows.inc"
};

enum { COUNT = sizeof(runtimes) / sizeof(runtimes[0]), POLLED = sizeof(polled) / sizeof(polled[0]) };

enum { UNHOOKED_MAX = 16 };

typedef struct findings {
    bool library[COUNT], wrapped[COUNT]; // the runtime is there; its link-time hook is there, too
    char where[COUNT][256];
    char unhooked[UNHOOKED_MAX][256]; // unhooked runtimes, as sentences
    int unhooked_count;
    char program[PATH_MAX];
    bool in_load_order;       // the objects are looked at as the loader searches them; and then:
    bool linked, core_linked; // libgreenprof has been seen; its core has
    bool behind_core[COUNT];  // the runtime is searched after the core, so the core's hooks are found first
} findings_t;

static bool runtimes_has_name(const char *bytes, size_t size, const char *name)
{
    char text[128];
    size_t len = (size_t)snprintf(text + 1, sizeof(text) - 1, "%s", name) + 2;
    text[0] = '\0'; // names in a string table stand between zeros
    return memmem(bytes, size, text, len) != NULL;
}

static void runtimes_look_for_unhooked(findings_t *findings, const char *path)
{
    char text[192];
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; findings->unhooked_count < UNHOOKED_MAX && gp_unhooked_in(path, i, text, sizeof(text)); i++)
        snprintf(findings->unhooked[findings->unhooked_count++], sizeof(findings->unhooked[0]), "%.48s: %s",
                 slash != NULL ? slash + 1 : path, text);
}

static void runtimes_look_at(findings_t *findings, const char *path, const char *bytes, size_t size, bool is_program)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    for (int i = 0; i < COUNT; i++) {
        const runtime_t *runtime = &runtimes[i];
        char wrapped[128];
        bool here = runtime->object != NULL ? fnmatch(runtime->object, name, 0) == 0 : is_program;
        if (findings->library[i] || !here || strncmp(name, "libc.so", 7) == 0 ||
            (runtime->except != NULL && fnmatch(runtime->except, name, 0) == 0))
            continue;
        // A string table has only the longer of two names that end alike.
        snprintf(wrapped, sizeof(wrapped), "__wrap_%s", runtime->symbol);
        findings->wrapped[i] = runtimes_has_name(bytes, size, wrapped);
        if (!findings->wrapped[i] && (!runtimes_has_name(bytes, size, runtime->symbol) ||
                                      (runtime->also != NULL && !runtimes_has_name(bytes, size, runtime->also))))
            continue;
        if (strcmp(runtime->name, "CPython") == 0 && gp_unhooked_is_python(path))
            continue;
        findings->library[i] = true;
        findings->behind_core[i] = findings->core_linked;
        snprintf(findings->where[i], sizeof(findings->where[i]), "%s", name);
    }
}

static void runtimes_look_into(findings_t *findings, const char *path, bool is_program)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (strstr(path, "/libgreenprof") != NULL) {
        findings->linked = true;
        findings->core_linked |= strstr(path, "/libgreenprof-core") != NULL;
    } else if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
        char *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED) {
            runtimes_look_at(findings, path, bytes, (size_t)status.st_size, is_program);
            munmap(bytes, (size_t)status.st_size);
            runtimes_look_for_unhooked(findings, path);
        }
    }
    close(fd);
}

// Look into every object that the kernel's list of mappings or the loader's list of libraries names. Returns how many.
static int runtimes_look_through(findings_t *findings, FILE *list, bool first_is_program)
{
    char line[PATH_MAX + 256], last[PATH_MAX] = "";
    int objects = 0;
    while (list != NULL && fgets(line, sizeof(line), list) != NULL) {
        char *path = strchr(line, '/');
        char *address = path != NULL ? strstr(path, " (0x") : NULL;
        if (path == NULL)
            continue;
        *(address != NULL ? address : path + strcspn(path, "\n")) = '\0';
        if (strcmp(path, last) != 0)
            runtimes_look_into(findings, path, first_is_program && objects++ == 0);
        snprintf(last, sizeof(last), "%s", path);
    }
    return objects;
}

static int runtimes_look_at_process(findings_t *findings, const char *pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%s/exe", pid);
    if (readlink(path, findings->program, sizeof(findings->program) - 1) < 0)
        findings->program[0] = '\0'; // the mappings will say why
    snprintf(path, sizeof(path), "/proc/%s/maps", pid);
    FILE *maps = fopen(path, "re");
    if (maps == NULL)
        return gp_fail(pid, "%s", errno == ENOENT ? "no such process" : strerror(errno));
    int objects = runtimes_look_through(findings, maps, true);
    fclose(maps);
    return objects > 0 ? 0 : gp_fail(pid, "its mappings cannot be read");
}

// The loader lists what it would load, and runs nothing. gp_run_check_program() has refused what has no loader.
static void runtimes_list_objects(const char *program, int out)
{
    char *arguments[] = {(char *)(uintptr_t)program, NULL};
    setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
    unsetenv("LD_PRELOAD");
    dup2(out, STDOUT_FILENO);
    execvp(program, arguments);
    _exit(EXIT_NOT_FOUND);
}

static int runtimes_look_at_program(findings_t *findings, const char *program)
{
    char path[PATH_MAX];
    int ends[2];
    if (gp_run_find_program(program, path) == EXIT_NOT_EXECUTABLE)
        return gp_fail(program, "is not a program");
    if (gp_run_check_program(program, NULL) != 0)
        return EXIT_FAILURE;
    if (gp_run_find_program(program, path) != 0 || pipe2(ends, O_CLOEXEC) != 0)
        return gp_fail(program, "%s", strerror(errno));
    findings->in_load_order = true;
    runtimes_look_into(findings, path, true);
    strcpy(findings->program, path);
    pid_t child = fork();
    if (child == 0)
        runtimes_list_objects(path, ends[1]);
    close(ends[1]);
    FILE *list = fdopen(ends[0], "r");
    runtimes_look_through(findings, list, false);
    if (list != NULL)
        fclose(list);
    if (child > 0)
        waitpid(child, NULL, 0);
    return 0;
}

// Where rows go: NULL is a table.
static gp_json_t *runtimes_json;

// A row: the runtime, its file (NULL = of all that are known), whether its switches are seen, and how.
static __attribute__((format(printf, 4, 5))) void runtimes_row(const char *name, const char *object, const char *state,
                                                               const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    if (runtimes_json == NULL) {
        printf("%-28s%s%s%s\n", name, object != NULL ? object : "", object != NULL ? ": " : "", text);
        return;
    }
    gp_json_line(runtimes_json);
    gp_json_open(runtimes_json, '{');
    gp_json_key_text(runtimes_json, "name", name);
    gp_json_key(runtimes_json, "object");
    if (object != NULL)
        gp_json_text(runtimes_json, object);
    else
        gp_json_null(runtimes_json);
    gp_json_key_text(runtimes_json, "state", state);
    gp_json_key_text(runtimes_json, "how", text);
    gp_json_close(runtimes_json, '}');
}

static void runtimes_list_all(void)
{
    for (const gp_patch_runtime_t *runtime = gp_patch_runtimes; runtime->name != NULL; runtime++)
        runtimes_row(runtime->title, NULL, "patched", "entry patch of %s: greenprof run [--patch %s]",
                     runtime->functions[0].symbol, runtime->name);
    for (int i = 0; i < COUNT; i++)
        if (i == 0 || strcmp(runtimes[i].name, runtimes[i - 1].name) != 0)
            runtimes_row(runtimes[i].name, NULL, runtimes[i].wrap != NULL ? "linked" : "hooked", "%s%s%s",
                         runtimes[i].how, runtimes[i].wrap != NULL ? ": pkg-config --libs greenprof-wrap-" : "",
                         runtimes[i].wrap != NULL ? runtimes[i].wrap : "");
    for (int i = 0; i < POLLED; i++)
        runtimes_row(polled[i].title, NULL, "polled",
                     "polled: %s is read at each sample; shares and names, no switches%s", polled[i].variable,
                     polled[i].is_patched ? "; where it is not patched" : "");
    runtimes_row("any scheduler", NULL, "linked", "from its source: <greenprof/coro.h>");
}

static bool runtimes_shared_is_there(const findings_t *findings, const char *symbol)
{
    for (int i = 0; i < COUNT; i++)
        if (runtimes[i].wrap == NULL && findings->library[i] && strcmp(runtimes[i].symbol, symbol) == 0)
            return true;
    return false;
}

// Is a runtime linked in without its link-time hook, and shown among the ones that can be patched?
static bool runtimes_is_patched(const findings_t *findings, const runtime_t *runtime)
{
    const char *refused;
    for (const gp_patch_runtime_t *patched = gp_patch_runtimes; runtime->wrap != NULL && patched->name != NULL;
         patched++)
        if (strcmp(patched->name, runtime->wrap) == 0 &&
            gp_patchable(findings->program, patched, &refused) > GP_PATCHABLE_REFUSED)
            return true;
    return false;
}

static int runtimes_show_patches(const findings_t *findings)
{
    const char *slash = strrchr(findings->program, '/'), *name = slash != NULL ? slash + 1 : findings->program,
               *refused;
    int shown = 0;
    for (const gp_patch_runtime_t *runtime = gp_patch_runtimes; runtime->name != NULL; runtime++) {
        gp_patchable_t patchable = gp_patchable(findings->program, runtime, &refused);
        if (patchable == GP_PATCHABLE_NOT)
            continue;
        shown++;
        if (patchable == GP_PATCHABLE_UNKNOWN)
            runtimes_row(runtime->title, name, "unhooked",
                         "not hooked; it has no symbols, and code that greenprof does not know; link with: pkg-config "
                         "--libs greenprof-wrap-%s",
                         runtime->name);
        else if (patchable == GP_PATCHABLE_REFUSED)
            runtimes_row(runtime->title, name, "unhooked",
                         "not hooked; %s() begins in a way that greenprof does not know", refused);
        else if (patchable == GP_PATCHABLE_BY_NAME)
            runtimes_row(runtime->title, name, "unhooked", "entry patch of %s, only by 'greenprof run --patch %s'",
                         runtime->functions[0].symbol, runtime->name);
        else
            runtimes_row(runtime->title, name, "patched", "entry patch of %s, by 'greenprof run'",
                         runtime->functions[0].symbol);
    }
    return shown;
}

// Show variables that are read at samples, where no patch makes it needless.
static int runtimes_show_polled(const findings_t *findings)
{
    const char *slash = strrchr(findings->program, '/'), *name = slash != NULL ? slash + 1 : findings->program;
    gp_elf_image_t program;
    int shown = 0;
    if (gp_elf_map(findings->program, &program) != 0)
        return 0;
    for (int i = 0; i < POLLED; i++) {
        gp_elf_variable_t variable;
        if (!gp_elf_variable(&program, polled[i].variable, &variable))
            continue;
        runtimes_row(polled[i].title, name, "polled",
                     "polled%s: %s is read at each sample; shares and names, no switches",
                     polled[i].is_patched ? " where it is not patched" : "", polled[i].variable);
        shown++;
    }
    gp_elf_unmap(&program);
    return shown;
}

// A host that is linked with greenprof: are its hooks in place when nothing is preloaded? Both libraries have libc's.
static const char *runtimes_reach(const findings_t *findings, int i)
{
    bool of_libc = strcmp(runtimes[i].symbol, "makecontext") == 0 || strcmp(runtimes[i].symbol, "siglongjmp") == 0;
    if (!findings->in_load_order || !findings->linked)
        return "";
    if (findings->behind_core[i] || of_libc)
        return "; without greenprof run, too";
    return "; under greenprof run only, unless linked by pkg-config --libs greenprof-hooks, before the runtime";
}

static void runtimes_show(const findings_t *findings)
{
    int shown = runtimes_show_patches(findings) + runtimes_show_polled(findings) + findings->unhooked_count;
    for (int i = 0; i < findings->unhooked_count; i++)
        runtimes_row("not known", NULL, "unhooked", "%s", findings->unhooked[i]);
    for (int i = 0; i < COUNT; i++) {
        const runtime_t *runtime = &runtimes[i];
        // A program that calls a shared library's function has its name, too.
        bool is_shown = i > 0 && findings->library[i - 1] && strcmp(runtime->name, runtimes[i - 1].name) == 0;
        if (!findings->library[i] || is_shown ||
            (runtime->wrap != NULL && runtimes_shared_is_there(findings, runtime->symbol)) ||
            runtimes_is_patched(findings, runtime))
            continue;
        shown++;
        if (runtime->wrap == NULL)
            runtimes_row(runtime->name, findings->where[i], "hooked", "%s%s", runtime->how,
                         runtimes_reach(findings, i));
        else if (findings->wrapped[i])
            runtimes_row(runtime->name, findings->where[i], "linked", "link-time hook is in place");
        else
            runtimes_row(runtime->name, findings->where[i], "unhooked",
                         "not hooked; link with: pkg-config --libs greenprof-wrap-%s", runtime->wrap);
    }
    if (shown == 0 && runtimes_json == NULL)
        printf("none that greenprof knows; coroutines with stacks of their own are found by these, and named by "
               "<greenprof/coro.h>; stackless ones (C++20, Rust async) are seen as their threads\n");
}

// The object around the rows.
static void runtimes_begin(gp_json_t *json, const char *of)
{
    runtimes_json = json;
    gp_json_open(json, '{');
    gp_json_key_uint(json, "version", 1);
    gp_json_key(json, "of");
    if (of != NULL)
        gp_json_text(json, of);
    else
        gp_json_null(json);
    gp_json_key(json, "rows");
    gp_json_open(json, '[');
}

static void runtimes_end(gp_json_t *json)
{
    gp_json_close(json, ']');
    gp_json_close(json, '}');
    putchar('\n');
}

int gp_command_runtimes(const gp_arguments_t *arguments)
{
    static findings_t findings;
    gp_json_t json = {.out = stdout};
    const char *what = arguments->operand_count > 0 ? arguments->operands[0] : NULL;
    bool is_pid = what != NULL && what[strspn(what, "0123456789")] == '\0';
    int status = what == NULL ? 0
                 : is_pid     ? runtimes_look_at_process(&findings, what)
                              : runtimes_look_at_program(&findings, what);
    if (status != 0)
        return status;
    if (arguments->json)
        runtimes_begin(&json, what);
    if (what == NULL)
        runtimes_list_all();
    else
        runtimes_show(&findings);
    if (arguments->json)
        runtimes_end(&json);
    return gp_finish_stdout();
}

const char *gp_runtimes_hint(const gp_dataset_t *dataset, char *text, size_t size)
{
    static findings_t findings;
    size_t len = (size_t)snprintf(text, size, "no hook: ");
    bool any = false;
    memset(&findings, 0, sizeof(findings));
    for (size_t i = 0; i < dataset->facts.modules.count; i++)
        runtimes_look_into(&findings, dataset->facts.modules.items[i].path,
                           strcmp(dataset->facts.modules.items[i].path, dataset->facts.exe) == 0);
    for (int i = 0; i < COUNT && len < size; i++) {
        const runtime_t *runtime = &runtimes[i];
        if (runtime->wrap == NULL || !findings.library[i] || findings.wrapped[i] ||
            runtimes_shared_is_there(&findings, runtime->symbol))
            continue;
        len +=
            (size_t)snprintf(text + len, size - len, "%sgreenprof-wrap-%s", any ? ", " : "link with ", runtime->wrap);
        any = true;
    }
    for (const gp_patch_runtime_t *runtime = gp_patch_runtimes; runtime->name != NULL && len < size; runtime++) {
        const char *refused;
        gp_patchable_t patchable = gp_patchable(dataset->facts.exe, runtime, &refused);
        if ((patchable <= GP_PATCHABLE_REFUSED && patchable != GP_PATCHABLE_UNKNOWN) || gp_patch_is_more(runtime))
            continue;
        bool by_patch = patchable > GP_PATCHABLE_REFUSED;
        len += (size_t)snprintf(text + len, size - len, "%s%s%s", any ? " or " : "",
                                by_patch ? "run --patch " : "link with greenprof-wrap-", runtime->name);
        any = true;
    }
    if (len < size)
        snprintf(text + len, size - len, "%scall prof_coro_create()", any ? " or " : "");
    return text;
}

const char *gp_runtimes_hint_of(const gp_facts_coro_t *coro, const char *hint, char *text, size_t size)
{
    bool is_shared = coro->region & (GP_REGION_HEAP | GP_REGION_FILE);
    snprintf(text, size, "%s%s", hint,
             is_shared ? "; this is no mapping of its own: more than one coroutine may be in it" : "");
    return text;
}
