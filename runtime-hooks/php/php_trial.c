// SPDX-License-Identifier: MIT
// Does this PHP keep its frames where its version says? As its first request starts, before anything of it has run, a
// text is evaluated, in which a closure calls a method written in C, which calls another closure; all frames must read
// as the text is, and as the engine says. A version without a layout, or one that fails, is left alone.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#include "coro/helper_memory.h"
#include "coro/threads.h"
#include "interface.h"
#include "interpose/interpose.h"
#include "not_known.h"
#include "patch/hooks.h"
#include "php_requests.h"
#include "php_trial.h"

typedef int start_t(void);
typedef size_t write_t(const char *text, size_t size);

enum { ROOM = 64, FRAMES_MIN = 4, CURRENT = 488 };

static const char text[] = "(function () {\n"
                           "    (function () {\n"
                           "        echo ' ';\n"   // line 3
                           "    })->__invoke();\n" // of a class that no setting disables
                           "})();\n";

static const struct {
    enum gp_php_kind kind;
    const char *name, *class;
    uint32_t first_line, last_line, line;
} expected[] = {
    {GP_PHP_FUNCTION, "{closure}", "", 2, 4, 3},
    {GP_PHP_C, "__invoke", "Closure", 0, 0, 0},
    {GP_PHP_FUNCTION, "{closure}", "", 1, 5, 4},
    {GP_PHP_MAIN, "", "", 0, 0, 5},
};

static struct { // of the engine's API
    int (*evaluate)(const char *text, size_t size, void *value, const char *name);
    void (*clear_exception)(void);
    const char *(*file)(void), *(*function)(void), *(*version)(void);
    uint32_t (*line)(void);
    write_t **write;
    uintptr_t *current;
} php;

static gp_language_t language = {
    .name = "php",
    .number = GP_LANGUAGE_PHP,
    .is_of_stack = true,
    .walk = gp_php_walk,
    .is_loop = gp_php_is_loop,
    .is_own = gp_php_is_own,
    .locate = gp_php_locate,
};

static const char *why; // the trial failed; NULL = it did not

static bool php_trial_find_api(void)
{
    const gp_interpose_wanted_t all[] = {
        {&php.evaluate, "zend_eval_stringl"},        {&php.clear_exception, "zend_clear_exception"},
        {&php.file, "zend_get_executed_filename"},   {&php.line, "zend_get_executed_lineno"},
        {&php.function, "get_active_function_name"}, {&php.write, "zend_write"},
        {&php.current, "executor_globals"},
    };
    return gp_interpose_find_all(all, sizeof(all) / sizeof(all[0]), true);
}

gp_php_code_t gp_php_extent(const char *name)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *found = gp_interpose_find(name);
    bool is_there = found != NULL && dladdr1(found, &info, (void **)&symbol, RTLD_DL_SYMENT) != 0 && symbol != NULL;
    uintptr_t lo = (uintptr_t)found;
    return is_there ? (gp_php_code_t){lo, lo + symbol->st_size} : (gp_php_code_t){0};
}

static void php_trial_find_code(void)
{
    Dl_info info;
    gp_php_runtime.loop = gp_php_extent("execute_ex");
    gp_php_runtime.resume = gp_php_extent("zend_generator_resume");
    if (dladdr((void *)(uintptr_t)php.evaluate, &info) == 0)
        return;
    gp_hook_code_of(info.dli_fbase, &gp_php_runtime.code.lo, &gp_php_runtime.code.hi);
    dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE); // the handler reads its variables: a library stays
}

static bool php_trial_is_text(const char *kept, size_t len, const char *is)
{
    return len == strlen(is) && memcmp(kept, is, len) == 0;
}

static bool php_trial_is_right(uintptr_t word, size_t i)
{
    const gp_php_function_t *function = &gp_php_runtime.table->functions[gp_met_word_number(word)];
    return gp_met_word_number(word) != 0 && function->kind == expected[i].kind &&
           php_trial_is_text(function->name, function->name_len, expected[i].name) &&
           php_trial_is_text(function->class, function->class_len, expected[i].class) &&
           (function->kind == GP_PHP_C || php_trial_is_text(function->file, function->file_len, "greenprof")) &&
           function->first_line == expected[i].first_line && function->last_line == expected[i].last_line &&
           gp_php_word_line(word) == expected[i].line;
}

static write_t *writes; // the engine's, while the trial has its own in its place

// The engine writes what the inner closure says. A fatal error leaves the trial by longjmp(): so the engine's own is
// put back here as well.
static size_t php_trial_look(const char *said, size_t size)
{
    *php.write = writes;
    if (size != 1 || *said != ' ')
        return writes(said, size);
    uintptr_t words[ROOM], here = (uintptr_t)__builtin_frame_address(0);
    unsigned flags = 0;
    const gp_language_place_t place = {.pc = here, .sp = here, .stack_hi = UINTPTR_MAX / 2, .in_doubt = true};
    size_t depth = gp_php_walk(&place, words, ROOM, &flags), is = 0;
    why = "does not keep its frames where it says";
    const char *function = php.function();
    if (php.line() != expected[0].line || strcmp(php.file(), "greenprof") != 0 || function == NULL ||
        strcmp(function, expected[0].name) != 0)
        return size;
    for (size_t i = 0; i < depth && is < FRAMES_MIN; i++) {
        const gp_php_function_t *found = &gp_php_runtime.table->functions[gp_met_word_number(words[i])];
        if (found->kind == GP_PHP_C && found->class_len == 0) // what the method itself calls
            continue;
        if (!php_trial_is_right(words[i], is++))
            return size;
    }
    why = is == FRAMES_MIN && flags == 0 ? NULL : why;
    return size;
}

static bool php_trial_prepare(void)
{
    why = "is a build that lacks what is called";
    if (!php_trial_find_api())
        return false;
    why = "there is no memory";
    gp_php_runtime.table = gp_own_map(sizeof(gp_php_table_t));
    gp_php_runtime.current = (uintptr_t)php.current + CURRENT;
    return gp_php_runtime.table != NULL;
}

static void php_trial_run(void)
{
    static gp_not_known_t fact;
    if (php_trial_prepare()) {
        writes = *php.write;
        why = "came to no end of its trial";
        gp_php_runtime.thread = (uintptr_t)__builtin_thread_pointer();
        *php.write = php_trial_look;
        php.evaluate(text, sizeof(text) - 1, NULL, "greenprof");
        *php.write = writes;
        php.clear_exception();
    }
    if (why != NULL) {
        gp_php_runtime.thread = 0;
        gp_not_known_tell(&fact, "PHP 8.2: %s, native frames only", why);
        return;
    }
    php_trial_find_code();
    gp_language_add(&language);
}

static const char *php_trial_version(void)
{
    const char *(*version)(void) = (const char *(*)(void))(uintptr_t)gp_interpose_find("get_zend_version");
    return version != NULL ? version() : "of no version";
}

bool gp_php_is_known(void)
{
    static const char known[] = "Zend Engine v4.2.";
    return strncmp(php_trial_version(), known, sizeof(known) - 1) == 0;
}

// Versions without a layout are told by their forms, where they have names that tell.
static void php_trial_start(void)
{
    static gp_not_known_t fact;
    static bool is_tried;
    const gp_core_interface_t *(*volatile first)(void) = prof_core_interface;
    const char *said = php_trial_version();
    bool is_first = !is_tried;
    is_tried = true; // before: a fatal error leaves the trial by longjmp()
    if (is_first && first() == gp_core_own_interface()) {
        why = "its frames are not known";
        if (gp_php_is_known())
            php_trial_run();
        else if (gp_interpose_find("zend_ce_allow_dynamic_properties") != NULL)
            gp_not_known_tell(&fact, "PHP: %.*s is not known, native frames only", (int)strcspn(said, ","), said);
    }
    gp_php_runtime.thread = why == NULL && gp_php_runtime.table != NULL ? (uintptr_t)__builtin_thread_pointer() : 0;
}

// PHP linked into the program: patched (../patch); the shared library's.
GP_ENTRY_CODE start_t gp_patch_php_request_startup;
void *gp_patch_real_php_request_startup;

int gp_patch_php_request_startup(void)
{
    gp_php_request_begin();
    int result = GP_PATCHED(start_t, php_request_startup)();
    if (result == 0) {
        php_trial_start();
        gp_php_request_started();
    } else {
        gp_php_request_end();
    }
    return result;
}

PROF_API start_t php_request_startup;

int php_request_startup(void)
{
    int result = GP_ORIGINAL(start_t, "php_request_startup")();
    if (result == 0)
        php_trial_start();
    return result;
}
