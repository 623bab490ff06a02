// SPDX-License-Identifier: MIT
// The symbolizer in the process: the vDSO, its own code, caching, threads.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/helpers.h"
#include "symbol/demangle.h"
#include "symbol/elf_file.h"
#include "symbol/symbol_table.h"
#include "symbol/symbolizer.h"

// A function with a known name, and where it is.
__attribute__((noinline)) static uintptr_t main_address(void)
{
    return (uintptr_t)main_address;
}

static uint32_t add_file(gp_symbolizer_t *symbolizer, const char *path)
{
    uint8_t id[GP_BUILD_ID_MAX];
    gp_elf_t elf;
    assert_int_equal(gp_elf_open(&elf, path), 0);
    size_t len = gp_elf_build_id(&elf, id);
    gp_elf_close(&elf);
    return gp_symbolizer_module(symbolizer, path, strlen(path), id, len);
}

static void test_modules_are_the_same_once(void **state)
{
    (void)state;
    gp_symbolizer_t *symbolizer = gp_symbolizer_create();
    const uint8_t one[4] = {1}, two[4] = {2};
    uint32_t a = gp_symbolizer_module(symbolizer, "/x", 2, one, 4);
    assert_int_equal(gp_symbolizer_module(symbolizer, "/x", 2, one, 4), a);
    assert_int_not_equal(gp_symbolizer_module(symbolizer, "/x", 2, two, 4), a);
    assert_int_not_equal(gp_symbolizer_module(symbolizer, "/x", 2, one, 3), a);
    assert_int_not_equal(gp_symbolizer_module(symbolizer, "/y", 2, one, 4), a);
    gp_symbolizer_destroy(symbolizer);
    gp_symbolizer_destroy(NULL);
}

static void test_own_function(void **state)
{
    (void)state;
    gp_symbolizer_t *symbolizer = gp_symbolizer_create();
    char path[4096] = "";
    Dl_info info;
    assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
    uint32_t module = add_file(symbolizer, path);
    assert_true(dladdr((void *)main_address(), &info) != 0);
    uint64_t address = (uint64_t)main_address() - (uint64_t)(uintptr_t)info.dli_fbase;
    const gp_symbol_t *symbol = gp_symbolizer_resolve(symbolizer, module, address);
    assert_string_equal(symbol->function, "main_address");
    assert_non_null(strstr(symbol->file, "test_symbolizer"));                     // ".c" where it is built with -g
    assert_ptr_equal(gp_symbolizer_resolve(symbolizer, module, address), symbol); // resolved once
    gp_symbolizer_destroy(symbolizer);
}

static void test_no_module(void **state)
{
    (void)state;
    gp_symbolizer_t *symbolizer = gp_symbolizer_create();
    const gp_symbol_t *symbol = gp_symbolizer_resolve(symbolizer, GP_SYMBOLIZER_NO_MODULE, 0x7f00deadbeef);
    assert_string_equal(symbol->function, "0x7f00deadbeef");
    assert_int_equal(symbol->line + symbol->first_line, 0);
    gp_symbolizer_destroy(symbolizer);
}

// The vDSO's names come from memory, and only for the vDSO of this kernel.
static void test_vdso(void **state)
{
    (void)state;
    const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
    gp_symbolizer_t *symbolizer = gp_symbolizer_create();
    uint8_t id[GP_BUILD_ID_MAX];
    gp_symbol_table_t table = {0};
    gp_elf_t elf;
    const gp_symbol_source_t source = {&elf, true};
    if (image == NULL)
        skip();
    assert_int_equal(gp_elf_open_image(&elf, image, 8192), 0);
    size_t len = gp_elf_build_id(&elf, id);
    assert_true(len > 0);
    assert_int_equal(gp_symbol_table_load(&table, &source, 1, NULL), 0);
    uint64_t address = 0;
    for (size_t i = 0; i < table.count; i++)
        if (strstr(table.ranges[i].name, "clock_gettime") != NULL)
            address = table.ranges[i].lo;
    gp_symbol_table_free(&table);
    gp_elf_close(&elf);

    uint32_t module = gp_symbolizer_module(symbolizer, "[vdso]", 6, id, len);
    assert_non_null(strstr(gp_symbolizer_resolve(symbolizer, module, address)->function, "clock_gettime"));
    id[0] ^= 1;
    module = gp_symbolizer_module(symbolizer, "[vdso]", 6, id, len);
    assert_non_null(strstr(gp_symbolizer_resolve(symbolizer, module, address)->function, "[vdso]+0x"));
    gp_symbolizer_destroy(symbolizer);
}

static void expect_name(const char *mangled, const char *name)
{
    gp_arena_t arena = {0};
    assert_string_equal(gp_demangle(&arena, mangled), name);
    gp_arena_free(&arena);
}

static void test_demangle(void **state)
{
    (void)state;
    expect_name("main", "main");
    expect_name("_ZN4shop6BasketIiE3addERKi", "shop::Basket<int>::add(int const&)");
    expect_name("_ZN4shop6BasketIiE3addERKi.cold", "shop::Basket<int>::add(int const&)");
    expect_name("_ZN4shop6BasketIiE3addERKi@plt", "shop::Basket<int>::add(int const&)@plt");
    expect_name("puts@plt", "puts@plt");
    expect_name("work.cold", "work");
    expect_name("work.cold.12", "work");
    expect_name("work.colder", "work.colder");
    expect_name("work.part.0", "work.part.0");
    expect_name("_Znot_mangled", "_Znot_mangled");
    expect_name("_Z", "_Z");
    expect_name(".cold", ".cold");
    expect_name("work.constprop.0.isra.1.cold", "work");
    expect_name("work.lto_priv.0", "work");
    expect_name("_ZN4shop6BasketIiE3addERKi.constprop.0", "shop::Basket<int>::add(int const&)");
    expect_name("memcpy.constprop.0@plt", "memcpy@plt");
    expect_name("_ZL6hiddenv.__uniq.76238400712.llvm.1234", "hidden()");
    expect_name("hidden.__uniq.76238400712", "hidden");
    expect_name("_Z3vecPfi.avx2", "vec(float*, int)");
    expect_name("_Z3vecPfi.arch_sandybridge.0", "vec(float*, int)");
    expect_name("vec.sse4_2.cold", "vec");
    expect_name("vec.default", "vec");
    expect_name("main.defaults", "main.defaults"); // Go's
    expect_name("runtime.aeshash64.abi0", "runtime.aeshash64.abi0");
    expect_name("main.avxKind", "main.avxKind");
    expect_name("work.part.0.cold", "work.part.0");
    expect_name("_Z4workv.part.0.isra.0", "work() [clone .part.0]");
    expect_name("camlStdlib__List__map_1234", "Stdlib.List.map");
    expect_name("camlStdlib__List.map_1234", "Stdlib.List.map");
    expect_name("camlMain__fun_77", "Main.fun_77");
    expect_name("camlMain__$2b$7c_12", "Main.+|");
    expect_name("camlMain__work_3_8_code", "Main.work");
    expect_name("camlMain__step_2_308", "Main.step_2");
    expect_name("_D8d_fibers4spinFdZv", "d_fibers.spin(double)");
    expect_name("_D8d_fibers4spinFdZv.constprop.0", "d_fibers.spin(double)");
    expect_name("_Dmain", "D main");
    expect_name("_D8demangle11__T4testTaZv", "demangle.test!(char)");
    expect_name("_Data", "_Data");
    expect_name("caml_alloc_string", "caml_alloc_string");
    expect_name("camlP", "camlP");
    // Rust: the hash of legacy names is left out; v0.
    expect_name("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad");
    expect_name("_RNvCs1234_7mycrate3foo", "mycrate::foo");
    expect_name("_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>");
    expect_name("_RNvCs1234_7mycrate3foo.llvm.1234", "mycrate::foo");
    expect_name("_Rnot_mangled", "_Rnot_mangled");
    expect_name("Row", "Row");
    char *longest = malloc(100001);
    memset(longest, 'S', 100000);
    memcpy(longest, "_Z", 2);
    longest[100000] = '\0';
    expect_name(longest, longest);
    free(longest);
}

typedef struct crowd {
    gp_symbolizer_t *symbolizer;
    uint32_t module;
    const gp_symbol_t *first[64];
} crowd_t;

static void *resolve_all(void *argument)
{
    crowd_t *crowd = argument;
    size_t different = 0;
    for (unsigned round = 0; round < 50; round++)
        for (uint64_t i = 0; i < 64; i++) {
            const gp_symbol_t *symbol = gp_symbolizer_resolve(crowd->symbolizer, crowd->module, 0x1000 + i * 64);
            const gp_symbol_t *none = NULL;
            __atomic_compare_exchange_n(&crowd->first[i], &none, symbol, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
            different += __atomic_load_n(&crowd->first[i], __ATOMIC_SEQ_CST) != symbol;
        }
    return (void *)different;
}

// Many threads at once get the same answers, the very same.
static void test_threads(void **state)
{
    (void)state;
    crowd_t crowd = {.symbolizer = gp_symbolizer_create()};
    pthread_t threads[4];
    crowd.module = add_file(crowd.symbolizer, "/proc/self/exe");
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, resolve_all, &crowd);
    for (int i = 0; i < 4; i++) {
        void *different;
        pthread_join(threads[i], &different);
        assert_null(different);
    }
    gp_symbolizer_destroy(crowd.symbolizer);
}

// --- threads that read ahead

static atomic_uint started;

static int start_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    started++;
    return pthread_create(thread, NULL, run, argument);
}

static int no_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    (void)thread, (void)run, (void)argument;
    return EAGAIN;
}

enum { STEP = 56, AHEAD_MAX = 1 << 17 };

typedef struct code { // of a file: addresses in all of its text
    const char *path;
    uint64_t *addresses;
    size_t count;
} code_t;

static code_t code_of(const char *path)
{
    code_t code = {path, malloc(AHEAD_MAX * sizeof(*code.addresses)), 0};
    gp_elf_t elf;
    assert_int_equal(gp_elf_open(&elf, path), 0);
    const Elf64_Shdr *text = gp_elf_section(&elf, ".text");
    for (uint64_t at = 0; at < text->sh_size && code.count < AHEAD_MAX; at += STEP)
        code.addresses[code.count++] = text->sh_addr + at;
    gp_elf_close(&elf);
    return code;
}

static void print_chain(FILE *out, const gp_symbol_t *symbol)
{
    for (; symbol != NULL; symbol = symbol->outer)
        fprintf(out, "%s %s:%u (%u) ", symbol->function, symbol->file, symbol->line, symbol->first_line);
    fputc('\n', out);
}

// All answers, each as a line: begun before it is said which addresses, and asked for all at once.
static char *begun_answers_of(const code_t *code, unsigned threads, gp_helper_start_t *start)
{
    size_t len;
    char *text = NULL;
    FILE *out = open_memstream(&text, &len);
    const gp_symbol_t **symbols = calloc(code->count, sizeof(*symbols));
    gp_helpers_use(threads, start);
    gp_symbolizer_t *symbolizer = gp_symbolizer_create();
    uint32_t module = add_file(symbolizer, code->path);
    gp_symbolizer_begin(symbolizer, module);
    gp_symbolizer_begin(symbolizer, module);
    gp_symbolizer_begin(symbolizer, GP_SYMBOLIZER_NO_MODULE);
    gp_symbolizer_expect(symbolizer, module, code->addresses, 1);
    gp_symbolizer_expect(symbolizer, module, code->addresses, code->count);
    gp_symbolizer_resolve_all(symbolizer, module, code->addresses, code->count, symbols);
    for (size_t i = 0; i < code->count; i++)
        print_chain(out, symbols[i]);
    gp_symbolizer_destroy(symbolizer);
    gp_helpers_use(0, NULL);
    fclose(out);
    free(symbols);
    return text;
}

// All answers, each as a line; asked for in order or jumping about, where only a part of them is expected.
static char *answers_of(const code_t *code, unsigned threads, gp_helper_start_t *start, bool in_order)
{
    size_t len, part = in_order ? code->count : code->count / 3, stride = in_order ? 1 : 7919;
    char *text = NULL;
    FILE *out = open_memstream(&text, &len);
    gp_helpers_use(threads, start);
    gp_symbolizer_t *symbolizer = gp_symbolizer_create();
    uint32_t module = add_file(symbolizer, code->path);
    gp_symbolizer_expect(symbolizer, module, code->addresses, part / 2);
    gp_symbolizer_resolve(symbolizer, module, code->addresses[0]);
    gp_symbolizer_expect(symbolizer, module, code->addresses, part); // some for the second time
    for (size_t i = 0; i < code->count; i++)
        print_chain(out, gp_symbolizer_resolve(symbolizer, module, code->addresses[i * stride % code->count]));
    gp_symbolizer_destroy(symbolizer);
    gp_helpers_use(0, NULL);
    fclose(out);
    return text;
}

static void assert_same_answers(const code_t *code, bool in_order)
{
    char *alone = answers_of(code, 0, NULL, in_order);
    for (unsigned threads = 1; threads <= GP_HELPERS_MAX; threads++) {
        started = 0;
        char *beside = answers_of(code, threads, start_thread, in_order);
        assert_int_equal(started, threads);
        assert_string_equal(alone, beside);
        free(beside);
        char *begun = in_order ? begun_answers_of(code, threads, start_thread) : NULL;
        if (begun != NULL)
            assert_string_equal(alone, begun);
        free(begun);
    }
    char *without = answers_of(code, 1, no_thread, in_order);
    assert_string_equal(alone, without);
    free(without);
    free(alone);
}

// All answers, each as a line, where few of them are expected.
static char *hardly_expected_answers_of(const code_t *code, unsigned threads)
{
    enum { OF = 11 };
    size_t len, count = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &len);
    uint64_t *addresses = calloc(code->count, sizeof(*addresses));
    for (size_t i = 0; i < code->count; i += OF)
        addresses[count++] = code->addresses[i];
    gp_helpers_use(threads, start_thread);
    gp_symbolizer_t *symbolizer = gp_symbolizer_create();
    uint32_t module = add_file(symbolizer, code->path);
    gp_symbolizer_expect(symbolizer, module, addresses, count);
    for (size_t i = 0; i < count; i++)
        gp_symbolizer_resolve(symbolizer, module, addresses[i]);
    for (size_t i = 0; i < code->count; i++)
        print_chain(out, gp_symbolizer_resolve(symbolizer, module, code->addresses[i]));
    gp_symbolizer_destroy(symbolizer);
    gp_helpers_use(0, NULL);
    fclose(out);
    free(addresses);
    return text;
}

static void assert_same_unexpected(const code_t *code)
{
    char *alone = hardly_expected_answers_of(code, 0);
    for (unsigned threads = 1; threads <= 2; threads++) {
        char *beside = hardly_expected_answers_of(code, threads);
        assert_string_equal(alone, beside);
        free(beside);
    }
    free(alone);
}

static void test_ahead(void **state)
{
    (void)state;
    const char *const paths[] = {"/proc/self/exe", LIBC, LIBSTDCXX}; // the last has mangled names, without DWARF
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        if (access(paths[i], R_OK) != 0)
            continue;
        code_t code = code_of(paths[i]);
        assert_true(code.count > 1000);
        assert_same_answers(&code, true);
        assert_same_answers(&code, false);
        assert_same_unexpected(&code);
        free(code.addresses);
    }
}

// Addresses expected and never asked about, or only once.
static void test_ahead_for_nothing(void **state)
{
    (void)state;
    code_t code = code_of("/proc/self/exe");
    gp_helpers_use(1, start_thread);
    for (int asked = 0; asked < 2; asked++) {
        gp_symbolizer_t *symbolizer = gp_symbolizer_create();
        uint32_t module = add_file(symbolizer, code.path), other = add_file(symbolizer, LIBC);
        gp_symbolizer_begin(symbolizer, asked ? module : other);
        gp_symbolizer_expect(symbolizer, module, code.addresses, code.count);
        gp_symbolizer_expect(symbolizer, other, code.addresses, 1);
        gp_symbolizer_expect(symbolizer, GP_SYMBOLIZER_NO_MODULE, code.addresses, code.count);
        if (asked)
            assert_non_null(gp_symbolizer_resolve(symbolizer, module, code.addresses[code.count / 2]));
        gp_symbolizer_destroy(symbolizer);
    }
    gp_helpers_use(0, NULL);
    free(code.addresses);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modules_are_the_same_once),
        cmocka_unit_test(test_own_function),
        cmocka_unit_test(test_no_module),
        cmocka_unit_test(test_vdso),
        cmocka_unit_test(test_demangle),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_ahead_for_nothing),
    };
    return cmocka_run_group_tests_name("symbolizer", tests, NULL, NULL);
}
