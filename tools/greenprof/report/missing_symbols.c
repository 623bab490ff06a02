// SPDX-License-Identifier: MIT
#include "missing_symbols.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "print.h"
#include "run/interpreters.h"
#include "symbol/debug_file.h"

#define DPKG_LISTS "/var/lib/dpkg/info"

enum { MODULES_MAX = 256, WORTH_PERCENT = 5, PACKAGE_SIZE = 128, NAMED = 0 };

typedef struct nameless {
    const gp_report_t *report;
    const gp_interpreter_t **interpreters; // by frame; NULL = its module is none
    const gp_interpreter_t *interpreter;   // that was met last
    uint64_t interpreted_ns;
    uint16_t *modules; // by frame: number in `paths` plus 1, or NAMED
    const char *paths[MODULES_MAX];
    uint64_t own_ns[MODULES_MAX], all_ns;
    size_t count;
} nameless_t;

bool gp_missing_symbols_frame(const gp_report_frame_t *frame)
{
    const char *slash = strrchr(frame->module, '/'), *base = slash != NULL ? slash + 1 : frame->module;
    size_t len = strlen(base);
    return !frame->pseudo && frame->module[0] == '/' && strncmp(frame->function, base, len) == 0 &&
           strncmp(frame->function + len, "+0x", 3) == 0;
}

static uint16_t missing_symbols_module_of(nameless_t *nameless, const gp_report_frame_t *frame)
{
    size_t i = 0;
    if (!gp_missing_symbols_frame(frame))
        return NAMED;
    while (i < nameless->count && strcmp(nameless->paths[i], frame->module) != 0)
        i++;
    if (i == nameless->count && i < MODULES_MAX)
        nameless->paths[nameless->count++] = frame->module;
    return i < MODULES_MAX ? (uint16_t)(i + 1) : NAMED;
}

// Time in the function on top, below what is no code.
static int missing_symbols_add_rows(void *context, const gp_report_row_t *rows, size_t count)
{
    nameless_t *nameless = context;
    for (size_t i = 0; i < count; i++) {
        uint32_t depth = rows[i].depth;
        while (depth > 0 && nameless->report->frames[rows[i].frames[depth - 1]].pseudo)
            depth--;
        uint32_t top = depth > 0 ? rows[i].frames[depth - 1] : nameless->report->frame_count;
        if (nameless->interpreters[top] != NULL) {
            nameless->interpreter = nameless->interpreters[top];
            nameless->interpreted_ns += rows[i].weight_ns;
        }
        uint16_t module = nameless->modules[top];
        if (module == NAMED)
            continue;
        nameless->own_ns[module - 1] += rows[i].weight_ns;
        nameless->all_ns += rows[i].weight_ns;
    }
    return 0;
}

static bool missing_symbols_has_line(FILE *list, const char *text)
{
    char line[PATH_MAX];
    while (fgets(line, sizeof(line), list) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, text) == 0)
            return true;
    }
    return false;
}

static bool missing_symbols_lists_file(const char *list_name, const char *path)
{
    char list_path[PATH_MAX];
    snprintf(list_path, sizeof(list_path), DPKG_LISTS "/%s", list_name);
    FILE *list = fopen(list_path, "re");
    bool found = list != NULL && missing_symbols_has_line(list, path);
    if (list != NULL)
        fclose(list);
    return found;
}

// "NAME:amd64.list" lists what is in NAME.
static bool missing_symbols_find_lister(const char *path, char package[PACKAGE_SIZE])
{
    DIR *lists = opendir(DPKG_LISTS);
    bool found = false;
    for (struct dirent *entry; lists != NULL && !found && (entry = readdir(lists)) != NULL;) {
        const char *suffix = strrchr(entry->d_name, '.');
        found = suffix != NULL && strcmp(suffix, ".list") == 0 && missing_symbols_lists_file(entry->d_name, path);
        if (found)
            snprintf(package, PACKAGE_SIZE, "%.*s", (int)strcspn(entry->d_name, ":"), entry->d_name);
    }
    if (lists != NULL)
        closedir(lists);
    if (found && strstr(package, ".list") != NULL) // of all architectures
        *strstr(package, ".list") = '\0';
    return found;
}

// The Debian package of a file, by any of its names: the link's that the loader followed, its own, and both where /lib
// is a link to /usr/lib, which packages and the loader may leave out or not.
static bool missing_symbols_find_package(const char *path, char package[PACKAGE_SIZE])
{
    static const char usr[] = "/usr";
    char *real = realpath(path, NULL), other[PATH_MAX];
    const char *const names[] = {path, real};
    bool found = false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !found && names[i] != NULL; i++) {
        bool is_below = strncmp(names[i], usr, strlen(usr)) == 0 && names[i][strlen(usr)] == '/';
        snprintf(other, sizeof(other), "%s%s", is_below ? "" : usr, names[i] + (is_below ? strlen(usr) : 0));
        found = missing_symbols_find_lister(names[i], package) || missing_symbols_find_lister(other, package);
    }
    free(real);
    return found;
}

// Is there a symbol table, in the file or in its debug file, which just does not have this code?
static bool missing_symbols_has_symbols(const char *path)
{
    char debug_path[GP_DEBUG_PATH_SIZE];
    gp_elf_t elf, debug;
    if (gp_elf_open(&elf, path) < 0)
        return false;
    bool found = gp_elf_section_of_type(&elf, SHT_SYMTAB) != NULL;
    if (!found && gp_debug_file_open(&elf, path, &debug, debug_path) == 0) {
        gp_elf_close(&debug);
        found = true;
    }
    gp_elf_close(&elf);
    return found;
}

// The reason why no package helps: the file was warned of, or is missing. NULL = there is none.
static const char *missing_symbols_obstacle(const gp_input_t *source, const char *path)
{
    uint32_t next = 0;
    gp_missing_symbols_t warned;
    while (gp_symbolizer_nameless(source->symbolizer, &next, &warned))
        if (warned.why > GP_NAMELESS_SPLIT && strcmp(warned.path, path) == 0)
            return "see the warning";
    return access(path, R_OK) != 0 ? strerror(errno) : NULL;
}

static void missing_symbols_print_remedy(const gp_input_t *source, const char *path)
{
    char package[PACKAGE_SIZE];
    const gp_interpreter_t *interpreter = gp_interpreter_of(path);
    const char *why = missing_symbols_obstacle(source, path);
    if (why != NULL)
        printf(" (%s)\n", why);
    else if (interpreter != NULL)
        printf(", which interprets %s\n", interpreter->language);
    else if (missing_symbols_has_symbols(path))
        printf("; its symbols do not cover that code\n");
    else if (missing_symbols_find_package(path, package)) // glibc's is from before there were others
        printf("; the package %s%s has them\n", package, strcmp(package, "libc6") == 0 ? "-dbg" : "-dbgsym");
    else
        printf("; it has no symbols: build it with -g, and do not strip it\n");
}

static void missing_symbols_print_widest(const gp_input_t *source, const nameless_t *nameless)
{
    size_t widest = 0;
    for (size_t i = 1; i < nameless->count; i++)
        if (nameless->own_ns[i] > nameless->own_ns[widest])
            widest = i;
    if ((double)nameless->all_ns * 100 < (double)nameless->report->total_ns * WORTH_PERCENT || nameless->all_ns == 0)
        return;
    printf("  no names   for %.1f %% of it, most in ",
           (double)nameless->all_ns * 100 / (double)nameless->report->total_ns);
    gp_print_text(nameless->paths[widest]);
    missing_symbols_print_remedy(source, nameless->paths[widest]);
}

static bool missing_symbols_has_language(const gp_report_t *report)
{
    for (uint32_t i = 0; i < report->frame_count; i++)
        if (!report->frames[i].pseudo && report->frames[i].module[0] == '\0')
            return true;
    return false;
}

// Whether the interpreter's own functions have names or not, those of the language have none.
static void missing_symbols_print_interpreter(const nameless_t *nameless)
{
    if (nameless->interpreter == NULL || missing_symbols_has_language(nameless->report) ||
        (double)nameless->interpreted_ns * 100 < (double)nameless->report->total_ns * WORTH_PERCENT)
        return;
    printf("  no names   %s's functions are not named here%s: %.1f %% of it is in the interpreter; why: greenprof "
           "runtimes PROGRAM\n",
           nameless->interpreter->language, nameless->interpreter->words,
           (double)nameless->interpreted_ns * 100 / (double)nameless->report->total_ns);
}

int gp_missing_symbols_print(const gp_input_t *source, const gp_report_t *report)
{
    size_t count = (size_t)report->frame_count + 1; // the last one stands for none
    nameless_t nameless = {.report = report, .modules = calloc(count, sizeof(*nameless.modules))};
    nameless.interpreters = calloc(count, sizeof(*nameless.interpreters));
    int result = nameless.modules != NULL && nameless.interpreters != NULL ? 0 : -ENOMEM;
    bool is_needed = false;
    for (uint32_t i = 0; i < report->frame_count && result == 0; i++) {
        nameless.modules[i] = missing_symbols_module_of(&nameless, &report->frames[i]);
        nameless.interpreters[i] = report->frames[i].pseudo ? NULL : gp_interpreter_of(report->frames[i].module);
        is_needed |= nameless.modules[i] != NAMED || nameless.interpreters[i] != NULL;
    }
    if (is_needed && result == 0)
        result = gp_report_each_part(report, missing_symbols_add_rows, &nameless);
    if (result == 0) {
        missing_symbols_print_widest(source, &nameless);
        missing_symbols_print_interpreter(&nameless);
    }
    free(nameless.interpreters);
    free(nameless.modules);
    return result;
}
