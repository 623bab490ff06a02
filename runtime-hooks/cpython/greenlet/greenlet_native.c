// SPDX-License-Identifier: MIT
#include "greenlet/greenlet_native.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "base/arch.h"
#include "base/descriptors.h"
#include "coro/registry.h"
#include "greenlet/greenlet_map.h"
#include "greenlet/greenlet_records.h"
#include "greenlet/greenlet_run.h"
#include "greenlet/plain_switch.h"
#include "interpreter/awaits.h"
#include "interpreter/peek_text.h"
#include "signal/rest.h"
#include "signal/thread.h"
#include "unwind/unwind.h"

enum {
    TLS_WORDS = 2,     // thread-local variables of the module: a guard, and the wanted one
    SLOTS = 32,        // of a table of virtual functions
    NATIVE_WORDS = 24, // of a C++ object, at most: one of them is its greenlet. Source: greenlet_greenlet.hpp
};

static void *greenlet_native_symbol_in(const void *in_module, const char *name, size_t *size)
{
    Dl_info info;
    ElfW(Sym) *symbol = NULL;
    void *library = dladdr(in_module, &info) != 0 ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *found = library != NULL ? dlsym(library, name) : NULL;
    if (found != NULL && (dladdr1(found, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0 || symbol == NULL))
        found = NULL;
    if (found != NULL)
        *size = symbol->st_size;
    if (library != NULL)
        dlclose(library);
    dlerror(); // the host asks for its own errors only
    return found;
}

void gp_greenlet_mark_bootstrap(const void *in_module)
{
    static const char *const names[] = {
        // UserGreenlet::inner_bootstrap(), of 2.0 and of 3.x
        "_ZN8greenlet12UserGreenlet15inner_bootstrapERNS_4refs14_OwnedGreenletI9_greenletXadL_ZNS1_15"
        "GreenletCheckerEPvEEEERNS1_14OwnedReferenceI7_objectXadL_ZNS1_11NoOpCheckerES4_EEEE",
        "_ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t size;
        void *start = greenlet_native_symbol_in(in_module, names[i], &size);
        if (start != NULL)
            gp_unwind_entry_add((uintptr_t)start, (uintptr_t)start + size);
    }
}

static int greenlet_native_find_variable(struct dl_phdr_info *info, size_t size, void *current)
{
    (void)size;
    const char *base = info->dlpi_name != NULL ? strrchr(info->dlpi_name, '/') : NULL;
    if (base == NULL || strncmp(base, "/_greenlet.", 11) != 0 || info->dlpi_tls_data == NULL)
        return 0;
    // The calling thread's variables of the module: one of them is the address of its state, which begins with the
    // main greenlet and the current one.
    const void *const *const *variables = info->dlpi_tls_data;
    for (int i = 0; i < TLS_WORDS && gp_greenlet_here.state == NULL; i++) {
        const void *members[2];
        if (gp_peek((uintptr_t)variables[i], members, sizeof(members)) && members[1] == current)
            gp_greenlet_here.state = &variables[i];
    }
    return 1;
}

void gp_greenlet_find_state(gp_py_t *current)
{
    if (gp_greenlet_here.state != NULL || current == NULL)
        return;
    dl_iterate_phdr(greenlet_native_find_variable, current);
    if (gp_thread_self != NULL) // an event of exact mode looks at the state from now on
        atomic_store_explicit(&gp_thread_self->exact_ready, NULL, memory_order_relaxed);
}

// Member functions that return an object: the caller says where it goes. Source: the psABI, and the Itanium C++ ABI.
typedef void *g_switch_t(void *result, void *native);
typedef void *g_initialstub_t(void *result, void *native, void *mark);

enum { FUNCTIONS = 3, UNWANTED_MAX = 1000 };

static g_switch_t *main_switch, *other_switch;
static g_initialstub_t *initialstub;
static void **replaceable[FUNCTIONS]; // slots of these three
static bool replaced;
static unsigned unwanted;               // switches in a row
static size_t greenlet_word, main_word, // in a C++ object: its greenlet, and that of a main one
    start_word; // its stack's start, NULL = it does not run; behind it the stack's end, NULL = it has not begun

// Tables are read-only to the process, but not to the kernel. The interpreter lock is held: no switch happens
// meanwhile.
static bool greenlet_native_write_slots(const uintptr_t values[FUNCTIONS])
{
    int memory = gp_descriptor_open(AT_FDCWD, "/proc/self/mem", O_WRONLY, 0);
    bool done = memory >= 0;
    for (size_t i = 0; i < FUNCTIONS && done; i++)
        done = pwrite(memory, &values[i], sizeof(values[i]), (off_t)(uintptr_t)replaceable[i]) ==
               (ssize_t)sizeof(values[i]);
    if (memory >= 0)
        close(memory);
    return done;
}

static void greenlet_native_put_back(void)
{
    const uintptr_t theirs[] = {(uintptr_t)main_switch, (uintptr_t)other_switch, (uintptr_t)initialstub};
    replaced = false;
    greenlet_native_write_slots(theirs);
}

__attribute__((noinline)) static void greenlet_native_not_wanted(void)
{
    if (gp_rest_is_now() || ++unwanted < UNWANTED_MAX || !replaced) // a rest is over soon
        return;
    int error = errno;
    greenlet_native_put_back();
    errno = error;
}

// C++ exceptions pass through greenlet_native_on_initialstub(): one that fails to begin a greenlet, or is thrown into
// the starter later. As its personality it is called on the way. Source: the Itanium C++ ABI, "Exception Handling".
__attribute__((used)) static int greenlet_native_on_unwind(int version, int actions, uint64_t class, void *exception,
                                                           void *context)
{
    enum { CLEANUP_PHASE = 2, CONTINUE_UNWIND = 8 };
    (void)version, (void)class, (void)exception, (void)context;
    if ((actions & CLEANUP_PHASE) && gp_greenlet_is_sampling())
        gp_greenlet_switched();
    return CONTINUE_UNWIND;
}

#define UNWOUND_BY_ON_UNWIND()                                                                                         \
    __asm__ volatile(".cfi_personality 0x1b, greenlet_native_on_unwind") // 0x1b: relative to itself, 4 bytes

// The greenlet that runs.
static inline gp_py_t *greenlet_native_current(void)
{
    return (gp_py_t *)(uintptr_t)gp_language_running(gp_greenlet_here.state);
}

static void *greenlet_native_of(const gp_py_t *greenlet)
{
    return *(void *const *)(const void *)((const char *)greenlet + GP_CPYTHON_GREENLET_NATIVE);
}

static inline void *greenlet_native_word_of(const gp_py_t *greenlet, size_t word)
{
    return ((void *const *)greenlet_native_of(greenlet))[word];
}

// The successor in place of `to`, which does not run: its first parent that is not over. NULL: `to` begins, or there is
// none.
__attribute__((noinline, cold)) static gp_py_t *greenlet_native_instead_of(gp_py_t *to)
{
    gp_py_t *error[3];
    gp_py.error_fetch(&error[0], &error[1], &error[2]); // thrown into the greenlet
    while (to != NULL && to != gp_py.none && greenlet_native_word_of(to, start_word) == NULL) {
        bool has_begun = greenlet_native_word_of(to, start_word + 1) != NULL;
        gp_py_t *parent = has_begun ? gp_py.get_attr(to, "parent") : NULL;
        gp_py.drop(parent); // its child keeps it
        to = parent;
    }
    gp_py.error_restore(error[0], error[1], error[2]);
    return to != gp_py.none ? to : NULL;
}

// This thread is new to greenlets, or to the hook.
__attribute__((noinline, cold)) static gp_py_t *greenlet_native_find_current(void)
{
    gp_greenlet_enter();
    return greenlet_native_current();
}

static void greenlet_native_before_switch(gp_py_t *to)
{
    gp_py_t *from = greenlet_native_current();
    if (!gp_greenlet_is_sampling()) {
        greenlet_native_not_wanted();
        return;
    }
    if (from == NULL && (from = greenlet_native_find_current()) == NULL)
        return;
    bool is_over = greenlet_native_word_of(from, start_word) == NULL;
    if (greenlet_native_word_of(to, start_word) == NULL)
        to = greenlet_native_instead_of(to);
    gp_greenlet_leaving(from, is_over, to);
}

__attribute__((noinline)) static void *greenlet_native_switch_anyhow(void *result, void *native, gp_py_t *to,
                                                                     g_switch_t *theirs)
{
    greenlet_native_before_switch(to);
    return theirs(result, native);
}

static uint64_t timed_since; // ticks: of the call in progress, where it is timed

__attribute__((noinline, cold)) static void *greenlet_native_switch_timed(void *result, void *native,
                                                                          g_switch_t *theirs)
{
    gp_hook_cost_end(timed_since, 1);
    return theirs(result, native);
}

static inline bool greenlet_native_switch_plainly(void **native, gp_py_t *to)
{
    if (!gp_word32_is(&gp_switch_special, 0) || native[start_word] == NULL || greenlet_native_current() == NULL)
        return false;
    const void *const *state = *gp_greenlet_here.state;
    if (greenlet_native_word_of(state[1], start_word) == NULL)
        return false;
    if (__builtin_expect(gp_hook_cost_is_next(), 0))
        timed_since = gp_ticks_counter();
    return gp_plain_switch(state, to, gp_arch_stack_pointer());
}

// These functions have nothing left to do after a switch: none of their frames stays on the suspended stack. Common
// cases are inlined, so that the arguments stay in their registers.
__attribute__((flatten)) static void *greenlet_native_on_main_switch(void *result, void *native)
{
    gp_py_t *to = ((gp_py_t **)native)[main_word];
    if (__builtin_expect(!greenlet_native_switch_plainly(native, to), 0))
        return greenlet_native_switch_anyhow(result, native, to, main_switch);
    if (__builtin_expect(gp_hook_cost_count(), 0))
        return greenlet_native_switch_timed(result, native, main_switch);
    return main_switch(result, native);
}

__attribute__((flatten)) static void *greenlet_native_on_other_switch(void *result, void *native)
{
    gp_py_t *to = ((gp_py_t **)native)[greenlet_word];
    if (__builtin_expect(!greenlet_native_switch_plainly(native, to), 0))
        return greenlet_native_switch_anyhow(result, native, to, other_switch);
    if (__builtin_expect(gp_hook_cost_count(), 0))
        return greenlet_native_switch_timed(result, native, other_switch);
    return other_switch(result, native);
}

__attribute__((noinline)) static void *greenlet_native_on_initialstub(void *result, void *native, void *mark)
{
    UNWOUND_BY_ON_UNWIND();
    if (gp_greenlet_is_sampling())
        gp_greenlet_starting(((gp_py_t **)native)[greenlet_word]);
    result = initialstub(result, native, mark);
    if (gp_greenlet_is_sampling())
        gp_greenlet_switched();
    return result;
}

// The slot of a function in the table of an object's virtual functions; NULL = it is not there.
static void **greenlet_native_find_slot(gp_py_t *greenlet, const void *function)
{
    void *native, **table, *slots[SLOTS];
    if (function == NULL || !gp_peek((uintptr_t)greenlet + GP_CPYTHON_GREENLET_NATIVE, &native, sizeof(native)) ||
        !gp_peek((uintptr_t)native, &table, sizeof(table)) || !gp_peek((uintptr_t)table, slots, sizeof(slots)))
        return NULL;
    for (size_t i = 0; i < SLOTS; i++)
        if (slots[i] == function)
            return &table[i];
    return NULL;
}

static bool greenlet_native_read_native(gp_py_t *greenlet, uintptr_t words[NATIVE_WORDS])
{
    uintptr_t native;
    return gp_peek((uintptr_t)greenlet + GP_CPYTHON_GREENLET_NATIVE, &native, sizeof(native)) &&
           gp_peek(native, words, NATIVE_WORDS * sizeof(*words));
}

static size_t greenlet_native_word_with(const uintptr_t words[NATIVE_WORDS], const gp_py_t *greenlet)
{
    size_t word = 0;
    while (word < NATIVE_WORDS && words[word] != (uintptr_t)greenlet)
        word++;
    return word;
}

// Stacks of main greenlets go to the end of memory, by their words; a stack not begun goes from 0 to 0.
static bool greenlet_native_is_stack_of_main(const uintptr_t stack[GP_CPYTHON_STACK_WORDS])
{
    return stack[GP_CPYTHON_STACK_START] != 0 && stack[GP_CPYTHON_STACK_END] == UINTPTR_MAX;
}

static bool greenlet_native_is_no_stack(const uintptr_t stack[GP_CPYTHON_STACK_WORDS])
{
    for (int i = 0; i < GP_CPYTHON_STACK_WORDS; i++)
        if (stack[i] != 0)
            return false;
    return true;
}

static bool greenlet_native_find_words(gp_py_t *main, gp_py_t *other)
{
    uintptr_t of_main[NATIVE_WORDS], of_other[NATIVE_WORDS];
    if (!greenlet_native_read_native(main, of_main) || !greenlet_native_read_native(other, of_other))
        return false;
    main_word = greenlet_native_word_with(of_main, main);
    greenlet_word = greenlet_native_word_with(of_other, other);
    if (main_word == NATIVE_WORDS || greenlet_word == NATIVE_WORDS)
        return false;
    for (start_word = 1; start_word + GP_CPYTHON_STACK_WORDS <= NATIVE_WORDS; start_word++)
        if (greenlet_native_is_stack_of_main(of_main + start_word) &&
            greenlet_native_is_no_stack(of_other + start_word)) {
            atomic_store_explicit(&gp_cpython_stack_at, start_word * sizeof(*of_main), memory_order_relaxed);
            return true;
        }
    return false;
}

bool gp_greenlet_find_switch(const void *in_module, gp_py_t *main, gp_py_t *other)
{
    size_t size;
    if (!GP_ARCH_RESULT_IS_ARGUMENT)
        return false;
    void *of_main = greenlet_native_symbol_in(in_module, "_ZN8greenlet12MainGreenlet8g_switchEv", &size);
    void *of_other = greenlet_native_symbol_in(in_module, "_ZN8greenlet12UserGreenlet8g_switchEv", &size);
    void *stub = greenlet_native_symbol_in(in_module, "_ZN8greenlet12UserGreenlet13g_initialstubEPv", &size);
    replaceable[0] = greenlet_native_find_slot(main, of_main);
    replaceable[1] = greenlet_native_find_slot(other, of_other);
    replaceable[2] = greenlet_native_find_slot(other, stub);
    main_switch = (g_switch_t *)(uintptr_t)of_main;
    other_switch = (g_switch_t *)(uintptr_t)of_other;
    initialstub = (g_initialstub_t *)(uintptr_t)stub;
    return replaceable[0] != NULL && replaceable[1] != NULL && replaceable[2] != NULL &&
           greenlet_native_find_words(main, other);
}

bool gp_greenlet_see_switches(void)
{
    const uintptr_t mine[] = {(uintptr_t)greenlet_native_on_main_switch, (uintptr_t)greenlet_native_on_other_switch,
                              (uintptr_t)greenlet_native_on_initialstub};
    unwanted = 0;
    if (replaced)
        return true;
    replaced = greenlet_native_write_slots(mine);
    if (!replaced)
        greenlet_native_put_back();
    return replaced;
}
