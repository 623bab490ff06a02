// SPDX-License-Identifier: MIT
// Stacks are walked from outside while a thread of the program's unloads the module that they lead into.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "cmocka_all.h"
#include "collect/modules.h"
#include "collect/waiting_stack.h"
#include "unwind/unwind.h"

enum { LOADS = 3000, WORDS = 512 };

typedef void call_t(void (*)(void));

static uintptr_t place; // behind a call in the plugin
static _Atomic bool is_over;

static void note_place(void)
{
    place = (uintptr_t)__builtin_return_address(0);
}

static void load_once(void)
{
    void *plugin = dlopen(PLUGIN, RTLD_NOW);
    assert_non_null(plugin);
    call_t *call = (call_t *)(uintptr_t)dlsym(plugin, "plugin_call");
    call(note_place);
    dlclose(plugin);
}

static void *load_again_and_again(void *unused)
{
    for (unsigned i = 0; i < LOADS; i++)
        load_once();
    atomic_store(&is_over, true);
    return unused;
}

static void walk_while_it_comes_and_goes(bool exact)
{
    static uintptr_t stack[WORDS];
    uintptr_t frames[16];
    unsigned flags, walks = 0;
    pthread_t loader;
    load_once();
    for (unsigned i = 0; i < WORDS; i++)
        stack[i] = place;
    gp_unwind_regs_t regs = {.pc = place, .sp = (uintptr_t)stack, .fp = (uintptr_t)stack};
    is_over = false;
    assert_int_equal(pthread_create(&loader, NULL, load_again_and_again, NULL), 0);
    for (; !is_over; walks++)
        gp_waiting_stack_walk_from(&regs, exact, (uintptr_t)(stack + WORDS), frames, 16, &flags);
    pthread_join(loader, NULL);
    assert_true(walks > 0);
}

static void what_waits(void **state)
{
    (void)state;
    walk_while_it_comes_and_goes(false);
}

static void what_sleeps(void **state)
{
    (void)state;
    walk_while_it_comes_and_goes(true);
}

static void one_of_another_namespace(void **state)
{
    size_t count;
    (void)state;
    if (dlsym(RTLD_DEFAULT, "__asan_init") != NULL || dlsym(RTLD_DEFAULT, "__tsan_init") != NULL)
        skip(); // these cannot be loaded twice
    void *plugin = dlmopen(LM_ID_NEWLM, PLUGIN, RTLD_NOW);
    assert_non_null(plugin);
    uintptr_t call = (uintptr_t)dlsym(plugin, "plugin_call");
    for (unsigned i = 0; i < 2; i++) {
        assert_true(gp_modules_refresh());
        gp_loc_t loc = gp_modules_locate(call);
        uint32_t id = GP_LOC_MODULE(loc);
        assert_true(i == 0 ? id > 0 : id == 0);
        assert_int_equal(gp_modules_locate(call + 1), loc + 1);
        const gp_module_t *modules = gp_modules_all(&count);
        if (i == 0)
            assert_string_equal(modules[id - 1].path, PLUGIN);
        if (i == 0)
            dlclose(plugin);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_waits),
        cmocka_unit_test(what_sleeps),
        cmocka_unit_test(one_of_another_namespace),
    };
    gp_unwind_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
