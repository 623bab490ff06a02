// SPDX-License-Identifier: MIT
// The table of module descriptors: plugins that come and go for ever, and many at once.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "unwind/module.h"
#include "unwind/unwind.h"

static uint8_t image[1 << 20]; // of a plugin's file
static size_t image_len;
static uint8_t *build_id;

static int read_image(void **state)
{
    static const uint8_t note[] = {4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0};
    (void)state;
    FILE *file = fopen(PLUGIN_A, "rb");
    image_len = file != NULL ? fread(image, 1, sizeof image, file) : 0;
    build_id = memmem(image, image_len, note, sizeof note);
    if (build_id == NULL)
        return -1;
    build_id += sizeof note;
    fclose(file);
    return gp_unwind_init();
}

// Load another build of the plugin.
//   fd: of its file, which is to stay open as long as it is loaded: the loader knows a library by its path
static void *load(uint32_t number, uintptr_t *code, int *fd)
{
    char path[64];
    memcpy(build_id, &number, sizeof number);
    *fd = memfd_create("plugin", 0);
    assert_int_equal(write(*fd, image, image_len), image_len);
    snprintf(path, sizeof path, "/proc/self/fd/%d", *fd);
    void *handle = dlopen(path, RTLD_NOW);
    assert_non_null(handle);
    *code = (uintptr_t)dlsym(handle, "plugin_call");
    assert_true(*code != 0);
    return handle;
}

static void test_loads_without_end(void **state)
{
    enum { LOADS = 6000 }; // more than there are descriptors
    int before = GP_MODULE_UNLISTED;
    (void)state;
    for (uint32_t i = 0; i < LOADS; i++) {
        uintptr_t code;
        gp_unwind_module_t module;
        int fd;
        void *handle = load(i, &code, &fd);
        int number = gp_module_find(code, &module);
        assert_true(number >= 0);
        assert_memory_equal(module.id, &i, sizeof i);
        assert_int_equal(gp_module_find(code, &module), number);
        assert_true(gp_module_check((uint32_t)number, code));
        // A row of the build before, which may have been at this very address, does not hold any more.
        assert_true(number != before);
        assert_false(before >= 0 && gp_module_check((uint32_t)before, code));
        before = number;
        dlclose(handle);
        close(fd);
        assert_false(gp_module_check((uint32_t)number, code));
    }
}

static void test_many_at_once(void **state)
{
    enum { MODULES = 900 };
    static void *handles[MODULES];
    static uintptr_t code[MODULES];
    static int numbers[MODULES], fds[MODULES];
    int listed = 0;
    gp_unwind_module_t module;
    (void)state;
    for (uint32_t i = 0; i < MODULES; i++) {
        handles[i] = load(i, &code[i], &fds[i]);
        numbers[i] = gp_module_find(code[i], &module);
        listed += numbers[i] >= 0;
    }
    assert_true(listed > MODULES * 99 / 100);
    for (uint32_t i = 0; i < MODULES; i++) {
        assert_int_equal(gp_module_find(code[i], &module), numbers[i]);
        assert_memory_equal(module.id, &i, sizeof i);
        assert_true(numbers[i] < 0 || gp_module_check((uint32_t)numbers[i], code[i]));
        assert_false(numbers[i] >= 0 && gp_module_check((uint32_t)numbers[i], code[(i + 1) % MODULES]));
    }
    for (uint32_t i = 0; i < MODULES; i++) {
        dlclose(handles[i]);
        close(fds[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads_without_end),
        cmocka_unit_test(test_many_at_once),
    };
    return cmocka_run_group_tests(tests, read_image, NULL);
}
