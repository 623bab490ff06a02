// SPDX-License-Identifier: MIT
// Does this Ruby keep its frames where its version says? Right before the program's first line, a block is called by
// Integer#times, in one called by Kernel#tap: a method in C and one in Ruby. Both must read as Ruby itself says. A
// version without a layout, or one that fails, is left alone.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/loaded.h"
#include "coro/helper_memory.h"
#include "interface.h"
#include "interpose/interpose.h"
#include "not_known.h"
#include "ruby_read.h"

typedef uintptr_t value_t;
typedef int run_node_t(void *node);
typedef value_t block_t(value_t item, value_t data, int count, const value_t *all, value_t block);

enum {
    FRAMES = 2, // Integer#times, Kernel#tap
    ROOM = 64,
    NIL = 8,
    ONE = 3,               // as a Fixnum
    NEAR_THREAD = 1 << 20, // static thread-local storage lies right below the thread pointer
    WORD = 8,
    ADDRESS_BITS = 47,
    SYMBOLS_WORDS = 3,
    SYMBOLS_MAX = 1 << 24,
};

static const gp_ruby_layout_t layouts[] = {
    {.version = {3, 1},
     .frame_bytes = 64,
     .iseq_body = 16,
     .body_path = 64,
     .body_label = 80,
     .body_first_line = 88,
     .body_lines = 120,
     .class_variables = 8,
     .body_bytes = 160},
};

static struct { // of Ruby's API
    value_t (*protect)(value_t (*call)(value_t), value_t argument, int *state);
    value_t (*block_call)(value_t object, uint64_t method, int count, const value_t *all, block_t *block, value_t data);
    void (*set_error)(value_t error);
    uint64_t (*intern)(const char *name);
    int (*frames)(int from, int count, value_t *frames, int *lines);
    value_t (*label)(value_t frame), (*path)(value_t frame), (*first_line)(value_t frame);
    const char *(*text)(volatile value_t *string);
} ruby;

static gp_language_t language = {
    .name = "ruby",
    .number = GP_LANGUAGE_RUBY,
    .is_of_stack = true,
    .walk = gp_ruby_walk,
    .is_loop = gp_ruby_is_loop,
    .is_own = gp_ruby_is_own,
    .locate = gp_ruby_locate,
};

static const char *why; // the trial failed; NULL = it did not

static bool ruby_trial_find_api(void)
{
    const gp_interpose_wanted_t all[] = {
        {&ruby.protect, "rb_protect"},         {&ruby.block_call, "rb_block_call"},
        {&ruby.set_error, "rb_set_errinfo"},   {&ruby.intern, "rb_intern"},
        {&ruby.frames, "rb_profile_frames"},   {&ruby.label, "rb_profile_frame_label"},
        {&ruby.path, "rb_profile_frame_path"}, {&ruby.first_line, "rb_profile_frame_first_lineno"},
        {&ruby.text, "rb_string_value_ptr"},
    };
    return gp_interpose_find_all(all, sizeof(all) / sizeof(all[0]), false);
}

// The interpreter's code, and its loop. Both stay unknown where native frames are not to be mixed in.
static void ruby_trial_find_code(void)
{
    Dl_info info;
    ElfW(Sym) *symbol = NULL;
    void *loop = gp_interpose_find("rb_vm_exec");
    if (loop == NULL || dladdr1(loop, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0 || symbol == NULL)
        return;
    gp_ruby_runtime.loop = (uintptr_t)loop;
    gp_ruby_runtime.loop_end = (uintptr_t)loop + symbol->st_size;
    gp_hook_code_of(info.dli_fbase, &gp_ruby_runtime.code, &gp_ruby_runtime.code_end);
}

// The thread's context lies at the same distance from each thread's pointer where the library came with the program.
static bool ruby_trial_find_context(void)
{
    uintptr_t variable = (uintptr_t)gp_interpose_find("ruby_current_ec"), own = (uintptr_t)__builtin_thread_pointer();
    gp_ruby_runtime.context = (intptr_t)(variable - own);
    return variable != 0 && variable < own && own - variable < NEAR_THREAD;
}

static bool ruby_trial_is_symbols(uintptr_t at)
{
    static const char *const known[] = {"tap", "times", "__classpath__", "+"};
    char text[ROOM];
    gp_ruby_symbols = at;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (gp_ruby_symbol(ruby.intern(known[i]), text, sizeof(text)) == 0 || strcmp(text, known[i]) != 0)
            return false;
    return true;
}

static bool ruby_trial_may_be_object(uintptr_t word)
{
    return word % WORD == 0 && word > UINT16_MAX && word >> ADDRESS_BITS == 0;
}

// The array of all names is one of the library's own variables, behind their number and a table: the one that leads to
// the names of known numbers. Source: Ruby 3.1, symbol.c (rb_symbols_t).
static int ruby_trial_find_symbols(struct dl_phdr_info *info, size_t size, void *library)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum && info->dlpi_addr == *(uintptr_t *)library; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t from = (info->dlpi_addr + segment->p_vaddr + WORD - 1) & ~(uintptr_t)(WORD - 1);
        uintptr_t to = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
        bool is_data = segment->p_type == PT_LOAD && segment->p_flags & PF_W;
        for (const uintptr_t *at = (const uintptr_t *)from; is_data && at + SYMBOLS_WORDS <= (const uintptr_t *)to;
             at++)
            if (at[0] != 0 && at[0] < SYMBOLS_MAX && ruby_trial_may_be_object(at[1]) &&
                ruby_trial_may_be_object(at[2]) && ruby_trial_is_symbols((uintptr_t)&at[2]))
                return 1;
    }
    gp_ruby_symbols = 0;
    return 0;
}

static bool ruby_trial_is_text(value_t string, const char *text, size_t len)
{
    volatile value_t value = string;
    const char *expected = ruby.text(&value);
    return strlen(expected) == len && memcmp(expected, text, len) == 0;
}

// Is Kernel#tap read as Ruby says?
static bool ruby_trial_is_right(const gp_ruby_function_t *function, uintptr_t word, value_t frame, int line)
{
    return ruby_trial_is_text(ruby.label(frame), function->label, function->label_len) &&
           ruby_trial_is_text(ruby.path(frame), function->path, function->path_len) &&
           ruby.first_line(frame) == function->key.first_line && line > 0 &&
           gp_ruby_line(function, gp_ruby_word_place(word)) == (uint32_t)line && function->id == ruby.intern("tap");
}

// In the inner block.
static value_t ruby_trial_look(value_t item, value_t data, int count, const value_t *all, value_t block)
{
    (void)item, (void)data, (void)count, (void)all, (void)block;
    uintptr_t words[ROOM], here = (uintptr_t)__builtin_frame_address(0);
    const uintptr_t *context =
        *(uintptr_t **)((uintptr_t)__builtin_thread_pointer() + (uintptr_t)gp_ruby_runtime.context);
    value_t frames[ROOM];
    int lines[ROOM];
    unsigned flags = 0;
    gp_ruby_runtime.classpath = ruby.intern("__classpath__");
    gp_ruby_runtime.attached = ruby.intern("__attached__");
    gp_ruby_runtime.main_stack = context[0];
    const gp_language_place_t place = {
        .pc = here, .sp = here, .stack_hi = gp_ruby_runtime.main_sp + 1, .in_doubt = true};
    size_t depth = gp_ruby_walk(&place, words, ROOM, &flags);
    int expected = ruby.frames(0, ROOM, frames, lines);
    why = "does not keep its frames where it says";
    if (depth < FRAMES || expected < FRAMES || gp_met_word_number(words[0]) == 0 || gp_met_word_number(words[1]) == 0)
        return NIL;
    const gp_ruby_function_t *in_c = &gp_ruby_runtime.table->functions[gp_met_word_number(words[0])];
    const gp_ruby_function_t *in_ruby = &gp_ruby_runtime.table->functions[gp_met_word_number(words[1])];
    if (in_c->kind != GP_RUBY_C || in_c->id != ruby.intern("times") || in_ruby->kind != GP_RUBY_CODE ||
        in_c->key.serial == in_ruby->key.serial || !ruby_trial_is_right(in_ruby, words[1], frames[1], lines[1]))
        return NIL;
    if (in_ruby->class_len != strlen("Kernel") || memcmp(in_ruby->class, "Kernel", in_ruby->class_len) != 0)
        gp_ruby_runtime.classpath = 0;
    why = NULL;
    return NIL;
}

static value_t ruby_trial_within(value_t item, value_t data, int count, const value_t *all, value_t block)
{
    (void)item, (void)data, (void)count, (void)all, (void)block;
    return ruby.block_call(ONE, ruby.intern("times"), 0, NULL, ruby_trial_look, 0);
}

static value_t ruby_trial_call(value_t unused)
{
    (void)unused;
    return ruby.block_call(ONE, ruby.intern("tap"), 0, NULL, ruby_trial_within, 0);
}

static const gp_ruby_layout_t *ruby_trial_layout(const int *version)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
        if (version != NULL && version[0] == layouts[i].version[0] && version[1] == layouts[i].version[1])
            return &layouts[i];
    return NULL;
}

static bool ruby_trial_prepare(const int *version)
{
    gp_ruby_runtime.layout = ruby_trial_layout(version);
    why = "its frames are not known";
    if (gp_ruby_runtime.layout == NULL)
        return false;
    why = "is a build that lacks what is called";
    if (!ruby_trial_find_api() || !ruby_trial_find_context())
        return false;
    why = "there is no memory";
    gp_ruby_runtime.table = gp_own_map(sizeof(gp_ruby_table_t));
    return gp_ruby_runtime.table != NULL;
}

// Ruby is set up, its main thread holds the lock, and nothing of the program has run but what -r names.
static void ruby_trial_run(void)
{
    static gp_not_known_t fact;
    const int *version = gp_interpose_find("ruby_api_version");
    int state = 0;
    if (ruby_trial_prepare(version)) {
        why = "its trial came to no end";
        ruby.protect(ruby_trial_call, 0, &state);
        if (state != 0)
            ruby.set_error(NIL);
    }
    if (why != NULL || state != 0) {
        gp_not_known_tell(&fact, "Ruby %d.%d: %s, native frames only", version != NULL ? version[0] : 0,
                          version != NULL ? version[1] : 0, why != NULL ? why : "its trial failed");
        return;
    }
    ruby_trial_find_code();
    struct link_map *map = NULL;
    Dl_info info;
    if (dladdr1(version, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 && map != NULL)
        dl_iterate_phdr(ruby_trial_find_symbols, &map->l_addr);
    gp_language_add(&language);
}

// How the main thread's stack goes with its frames, which lie elsewhere.
static void ruby_trial_find_main(void)
{
    const uintptr_t *end = dlsym(RTLD_DEFAULT, "__libc_stack_end");
    bool is_first = end != NULL && syscall(SYS_gettid) == getpid();
    gp_ruby_runtime.main_sp = is_first ? *end : (uintptr_t)__builtin_frame_address(0);
}

// The call by which `ruby` has its program run.
//   node: an instruction sequence; a constant where there is nothing to run
__attribute__((visibility("default"))) int ruby_run_node(void *node)
{
    enum { CONSTANTS_BELOW = 64, ODD = 7 };
    static bool is_tried;
    const gp_core_interface_t *(*volatile first)(void) = prof_core_interface;
    bool is_program = (uintptr_t)node > CONSTANTS_BELOW && ((uintptr_t)node & ODD) == 0;
    if (is_program && !is_tried && first() == gp_core_own_interface()) {
        is_tried = true;
        ruby_trial_find_main();
        ruby_trial_run();
    }
    return GP_ORIGINAL(run_node_t, "ruby_run_node")(node);
}
