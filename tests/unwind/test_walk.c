// SPDX-License-Identifier: MIT
// Walks of this program's own stacks: whole, cut short, forged, without tables.
#define _GNU_SOURCE
#include "../context.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include <cmocka.h>

#include "base/arch.h"
#include "unwind/memo.h"
#include "unwind/unwind.h"
#include "walk_helper.h"

static uintptr_t lo, hi;
static walk_result_t result, second;
static uintptr_t truth[WALK_MAX]; // return addresses, innermost first
static volatile int sink;

static NOINLINE void recurse(unsigned depth, void (*leaf)(void))
{
    volatile char local[64];
    truth[depth] = RETURN_ADDRESS();
    local[depth % 64] = 1;
    if (depth == 0)
        leaf();
    else
        recurse(depth - 1, leaf);
    sink += local[depth % 64];
}

static void walk_whole(void)
{
    walk_here(&result, lo, hi, WALK_MAX);
    sink++;
}

static void test_recursion(void **state)
{
    (void)state;
    for (unsigned depth = 0; depth < 200; depth += 7) {
        recurse(depth, walk_whole);
        assert_int_equal(result.flags, 0);
        size_t at = walk_find(&result, truth, depth + 1);
        assert_int_not_equal(at, SIZE_MAX);
        assert_true(at >= 2); // the kill's own frames and walk_whole
    }
}

static size_t wanted_max;
static void walk_limited(void)
{
    walk_here(&result, lo, hi, WALK_MAX);
    walk_here(&second, lo, hi, wanted_max);
    sink++;
}

// The frames of pthread_kill and walk_here differ between the two walks by one return address.
static void assert_same_root(size_t n)
{
    assert_memory_equal(result.frames + result.count - n, second.frames + second.count - n, n * sizeof *result.frames);
}

static void test_truncated(void **state)
{
    (void)state;
    for (wanted_max = 2; wanted_max < 60; wanted_max += 3) {
        recurse(80, walk_limited);
        assert_int_equal(second.count, wanted_max);
        assert_int_equal(second.flags, GP_UNWIND_TRUNCATED);
        assert_int_equal(second.frames[0], result.frames[0]);
        assert_same_root(wanted_max - 1);
    }
}

static void test_exactly_full(void **state)
{
    (void)state;
    recurse(30, walk_whole);
    wanted_max = result.count;
    recurse(30, walk_limited);
    assert_int_equal(second.count, wanted_max);
    assert_int_equal(second.flags, 0);
    wanted_max--;
    recurse(30, walk_limited);
    assert_int_equal(second.flags, GP_UNWIND_TRUNCATED);
}

static void test_tiny_output(void **state)
{
    (void)state;
    wanted_max = 0;
    recurse(3, walk_limited);
    assert_int_equal(second.count, 0);
    wanted_max = 1;
    recurse(3, walk_limited);
    assert_int_equal(second.count, 1);
    assert_int_equal(second.frames[0], result.frames[0]);
}

static uintptr_t cut_hi;
static void walk_cut(void)
{
    walk_here(&result, lo, cut_hi, WALK_MAX);
    sink++;
}

// Whatever the bounds are, frames are a prefix of the truth and what is missing is said.
static void test_bounds(void **state)
{
    (void)state;
    recurse(40, walk_whole);
    uintptr_t base = result.sp;
    for (size_t span = 0; span < 3000; span += 8) {
        cut_hi = base + span;
        recurse(40, walk_cut);
        assert_int_equal(result.flags, GP_UNWIND_INCOMPLETE);
        assert_true(result.count >= 1 && result.count < 40);
        if (result.count > 6)
            assert_int_not_equal(walk_find(&result, truth, result.count - 6), SIZE_MAX);
    }
}

static NOINLINE void entry_function(void (*next)(void))
{
    next();
    sink++;
}

static void enter(void)
{
    entry_function(walk_whole);
    sink++;
}

static void test_entry(void **state)
{
    (void)state;
    recurse(3, enter); // its rows are in the cache now
    size_t before = result.count;
    assert_int_equal(walk_find(&result, truth, 4) != SIZE_MAX, 1);
    uintptr_t start = (uintptr_t)entry_function;
    assert_int_equal(gp_unwind_entry_add(start, start + 40), 0);
    recurse(3, enter);
    assert_int_equal(result.flags, 0);
    assert_true(result.count < before);
    assert_int_equal(walk_find(&result, truth, 1), SIZE_MAX);
    assert_int_equal(gp_unwind_entry_add(start, start + 40), 0); // known already
}

static ucontext_t main_context, coroutine_context;
static _Alignas(16) char coroutine_stack[65536];
static uintptr_t forged;
static bool forge;

static NOINLINE void coroutine_inner(void)
{
    uintptr_t base = (uintptr_t)coroutine_stack;
    walk_here(&result, base, base + sizeof coroutine_stack, WALK_MAX);
    sink++;
}

// The switch hook's record: where its caller goes on, with which stack and frame pointer.
static gp_unwind_regs_t parked;

static NOINLINE void park(void)
{
    const uintptr_t *frame = __builtin_frame_address(0);
    memset(&parked, 0, sizeof parked);
    parked.pc = RETURN_ADDRESS() + 1;
    parked.sp = (uintptr_t)__builtin_dwarf_cfa();
    parked.fp = frame[0];
    swapcontext(&coroutine_context, &main_context);
    sink++;
}

static NOINLINE void coroutine_body(void)
{
    coroutine_inner();
    for (;;) {
        park();
        sink++;
    }
}

static void run_coroutine(void)
{
    context_on(&coroutine_context, coroutine_stack, sizeof coroutine_stack, &main_context);
    makecontext(&coroutine_context, coroutine_body, 0);
    if (forge) {
#if defined(__x86_64__)
        *(uintptr_t *)coroutine_context.uc_mcontext.gregs[REG_RSP] = forged;
#else
        coroutine_context.uc_mcontext.regs[30] = forged;
#endif
    }
    swapcontext(&main_context, &coroutine_context);
}

static void assert_ends_in_body(void)
{
    uintptr_t last = result.frames[result.count - 1];
    assert_int_equal(result.flags, 0);
    assert_true(last >= (uintptr_t)coroutine_body && last < (uintptr_t)coroutine_body + 256);
}

static void test_ucontext_bottom(void **state)
{
    (void)state;
    forge = false;
    run_coroutine();
    assert_ends_in_body();
}

static void test_forged_bottoms(void **state)
{
    const uintptr_t bottoms[] = {0, 1, 0xdeaddeaddeaddead, UINTPTR_MAX, (uintptr_t)abort, (uintptr_t)coroutine_inner};
    (void)state;
    forge = true;
    for (size_t i = 0; i < sizeof bottoms / sizeof *bottoms; i++) {
        forged = bottoms[i];
        run_coroutine();
        assert_ends_in_body();
    }
    forge = false;
}

static void test_parked(void **state)
{
    uintptr_t base = (uintptr_t)coroutine_stack;
    (void)state;
    run_coroutine();
    result.count =
        gp_unwind_walk_parked(&parked, base, base + sizeof coroutine_stack, result.frames, WALK_MAX, &result.flags);
    assert_int_equal(result.count, 1);
    assert_int_equal(result.frames[0], parked.pc - 1);
    assert_ends_in_body();
}

static void test_parked_before_first_run(void **state)
{
    gp_unwind_regs_t regs;
    uintptr_t base = (uintptr_t)coroutine_stack;
    (void)state;
    memset(&regs, 0, sizeof regs);
    regs.pc = (uintptr_t)coroutine_body;
    regs.sp = base + sizeof coroutine_stack - 64;
    result.count =
        gp_unwind_walk_parked(&regs, base, base + sizeof coroutine_stack, result.frames, WALK_MAX, &result.flags);
    assert_int_equal(result.count, 0);
    assert_int_equal(result.flags, 0);
}

// Assembly without a table: a function that keeps a frame pointer, and one to ruin it.
void no_cfi_with_fp(void (*leaf)(void));
void no_cfi_without_fp(void (*leaf)(void));
#if defined(__x86_64__)
__asm__(".text\n.globl no_cfi_with_fp\nno_cfi_with_fp:\n"
        "push %rbp\nmov %rsp, %rbp\nsub $0x40, %rsp\ncall *%rdi\nleave\nret\n"
        ".globl no_cfi_without_fp\nno_cfi_without_fp:\n"
        "push %rbp\nmov $0x123456, %ebp\ncall *%rdi\npop %rbp\nret\n");
#else
__asm__(".text\n.globl no_cfi_with_fp\nno_cfi_with_fp:\n"
        "stp x29, x30, [sp, #-64]!\nmov x29, sp\nblr x0\nldp x29, x30, [sp], #64\nret\n"
        ".globl no_cfi_without_fp\nno_cfi_without_fp:\n"
        "stp x29, x30, [sp, #-16]!\nmov x29, #0x1234\nblr x0\nldp x29, x30, [sp], #16\nret\n");
#endif

static void call_with_fp(void)
{
    no_cfi_with_fp(walk_whole);
    sink++;
}

static void call_without_fp(void)
{
    no_cfi_without_fp(walk_whole);
    sink++;
}

static void test_no_cfi(void **state)
{
    (void)state;
    recurse(5, call_with_fp);
    assert_int_equal(result.flags, 0);
    assert_int_not_equal(walk_find(&result, truth, 6), SIZE_MAX);
    recurse(5, call_without_fp);
    assert_int_equal(result.flags, GP_UNWIND_INCOMPLETE);
    uintptr_t last = result.frames[result.count - 1];
    assert_true(last >= (uintptr_t)no_cfi_without_fp && last < (uintptr_t)no_cfi_without_fp + 32);
}

static void on_inner(int signo)
{
    (void)signo;
    walk_here(&second, lo, hi, WALK_MAX);
    sink++;
}

static void raise_in_handler(void)
{
    signal(SIGUSR2, on_inner);
    raise(SIGUSR2);
    sink++;
}

static void test_signal_frames(void **state)
{
    (void)state;
    if (getauxval(AT_SYSINFO_EHDR) == 0)
        skip(); // qemu-user: the signal trampoline is on a page of no module
    recurse(6, raise_in_handler);
    assert_int_equal(second.flags, 0);
    assert_int_not_equal(walk_find(&second, truth, 7), SIZE_MAX);
}

// A memo must never show: walk random stacks, each also as one that was never seen (other bounds).
static void walk_twice(void)
{
    static unsigned walks;
    walk_here(&result, lo + walks++ % 32 * 64, hi, WALK_MAX); // a handler's lower bound moves with the stack pointer
    sink++;
}

// Bounds that hold the same frames. glibc rounds the stack's end up to a page from where the first frame is, which may
// be right below it; then the arguments' texts go on above.
static uintptr_t other_hi(void)
{
    extern void *__libc_stack_end;
    return hi - (uintptr_t)__libc_stack_end > 256 ? hi - 64 : hi + 64;
}

static void walk_afresh(void)
{
    walk_here(&second, lo, other_hi(), WALK_MAX);
    sink++;
}

static void zigzag(unsigned bits, unsigned depth, void (*leaf)(void));

// A frame with a special row: a realigned one of varying size.
static NOINLINE void zigzag_realigned(unsigned bits, unsigned depth, void (*leaf)(void))
{
    _Alignas(64) volatile char block[64];
    volatile char *local = __builtin_alloca(depth * 8 + 8);
    block[depth % 64] = local[depth] = 1;
    zigzag(bits, depth, leaf);
    sink += block[depth % 64] + local[depth];
}

static NOINLINE void zigzag(unsigned bits, unsigned depth, void (*leaf)(void))
{
    volatile char local[24];
    local[depth % 24] = 1;
    if (depth == 0) {
        leaf();
    } else if ((bits & 7) == 5) {
        zigzag_realigned(bits >> 1, depth - 1, leaf);
    } else if (bits & 1) {
        zigzag(bits >> 1, depth - 1, leaf);
        sink++;
    } else {
        zigzag(bits >> 1, depth - 1, leaf);
        sink += local[depth % 24];
    }
}

static size_t count_different(void)
{
    size_t different = 0;
    for (size_t i = 0; i < result.count; i++)
        different += result.frames[i] != second.frames[i];
    return different;
}

static void test_memo_is_invisible(void **state)
{
    unsigned seed = 12345;
    (void)state;
    for (unsigned i = 0; i < 3000; i++) {
        seed = seed * 1103515245u + 12345u;
        unsigned depth = seed >> 16 & 31, bits = seed >> 8;
        depth = i % 50 == 0 ? 150 : depth;
        zigzag(bits, depth, walk_twice);
        zigzag(bits, depth, walk_afresh);
        assert_int_equal(result.flags, second.flags);
        assert_int_equal(result.count, second.count);
        // The leaf functions and the two calls here are different code.
        assert_true(count_different() <= 2);
    }
}

// A memo with a frame at `words[32]` of a parked stack, and one that is reached by a word at `words[at]`.
static void record_two(uintptr_t words[64], size_t at, const gp_unwind_regs_t *regs)
{
    gp_stack_memory_t stack = gp_stack_of((uintptr_t)words, (uintptr_t)(words + 64));
    gp_memo_use_t use;
    gp_memo_take(&use, &stack);
    assert_non_null(use.memo);
    uintptr_t word = (uintptr_t)&words[at];
    *use.record = (gp_memo_frame_t){.ra = regs->pc, .sp = regs->sp, .fp = regs->fp};
    gp_memo_unlink(use.record++);
    *use.record++ = (gp_memo_frame_t){word, words[at], word, words[at], (uintptr_t)&words[40], regs->fp};
    *use.record = (gp_memo_frame_t){.sp = (uintptr_t)&words[48]};
    gp_memo_unlink(use.record++);
    gp_memo_release(&use);
}

// A walk that begins elsewhere on the stack than the one before finds its memo, but reads nothing below its own bounds.
static void test_a_memo_is_its_stacks(void **state)
{
    static _Alignas(64) uintptr_t words[64];
    uintptr_t end = (uintptr_t)(words + 64);
    (void)state;
    recurse(2, walk_whole);
    const gp_unwind_regs_t regs = {.pc = truth[0] + 1, .sp = (uintptr_t)&words[32]};
    words[8] = words[36] = truth[1] + 1;
    record_two(words, 36, &regs);
    result.count = gp_unwind_walk_parked(&regs, (uintptr_t)&words[16], end, result.frames, WALK_MAX, &result.flags);
    assert_int_equal(result.count, 2);
    assert_int_equal(result.frames[1], truth[1]);
    record_two(words, 8, &regs);
    result.count = gp_unwind_walk_parked(&regs, (uintptr_t)&words[16], end, result.frames, WALK_MAX, &result.flags);
    assert_int_equal(result.count, 1); // by its own row: the words there are 0
    assert_int_equal(result.frames[0], truth[0]);
}

#if defined(__x86_64__)

// Two functions, and what an assembler puts between them: nops through which the first runs on into the second; and
// what nothing runs through.
extern const char padding_of_nops[], padding_of_traps[];
__asm__(".text\n"
        "    .p2align 5\n"
        "    .cfi_startproc\n"
        "    .cfi_def_cfa_offset 24\n"
        "    nop\n"
        "    .cfi_endproc\n"
        "padding_of_nops:\n"
        "    .p2align 5\n"
        "    .cfi_startproc\n"
        "    .cfi_def_cfa_offset 24\n"
        "    ret\n"
        "    .cfi_endproc\n"
        "padding_of_traps:\n"
        "    .p2align 5, 0xcc\n"
        "    .cfi_startproc\n"
        "    .cfi_def_cfa_offset 24\n"
        "    ret\n"
        "    .cfi_endproc\n");

static uintptr_t by_pointer;

static NOINLINE void note_caller(void)
{
    by_pointer = RETURN_ADDRESS();
    sink++;
}

static void walk_padding(const char *pc)
{
    static _Alignas(64) uintptr_t words[64];
    const gp_unwind_regs_t regs = {.pc = (uintptr_t)pc, .sp = (uintptr_t)&words[32]};
    words[34] = by_pointer + 1;
    result.count =
        gp_unwind_walk(&regs, (uintptr_t)words, (uintptr_t)(words + 64), result.frames, WALK_MAX, &result.flags);
}

static void test_padding(void **state)
{
    (void)state;
    recurse(1, note_caller);
    walk_padding(padding_of_nops);
    assert_true(result.count >= 2);
    assert_int_equal(result.frames[1], by_pointer);
    walk_padding(padding_of_traps);
    assert_int_equal(result.count, 1);
    assert_int_equal(result.flags, GP_UNWIND_INCOMPLETE);
}

#else

static void test_padding(void **state)
{
    (void)state;
    skip();
}

#endif

enum { PIECES = 4, PIECE = 64 << 10 };
static _Alignas(4096) unsigned char pieces[PIECES][PIECE];
static const unsigned *order; // of the pieces, from the thread's own stack on
static gp_unwind_regs_t innermost;
static uintptr_t innermost_gp[33];

static NOINLINE void enter_piece(unsigned depth);

static void go_on_in_piece(void *depth)
{
    enter_piece(*(const unsigned *)depth + 1);
    sink++;
}

// Walk from the innermost piece, as the handler does: of where that piece ends no more is known than `end`.
static void walk_pieces(bool in_pieces, uintptr_t end)
{
    innermost.in_pieces = in_pieces;
    innermost.doubt = GP_UNWIND_DOUBTS;
    uintptr_t page = innermost.sp & ~(uintptr_t)4095;
    result.count = gp_unwind_walk(&innermost, page, end, result.frames, WALK_MAX, &result.flags);
}

static void walk_out_of_pieces(void)
{
    for (int again = 0; again < 3; again++) {
        walk_pieces(true, (uintptr_t)pieces[PIECES]);
        assert_int_equal(result.flags, 0);
        size_t met = 0;
        for (size_t i = 0; i < result.count && met <= PIECES; i++)
            met += result.frames[i] == truth[PIECES - met];
        assert_int_equal(met, PIECES + 1);
        second = result;
        walk_pieces(true, (uintptr_t)pieces[order[PIECES - 1]] + PIECE);
        assert_int_equal(result.flags, 0);
        assert_int_equal(result.count, second.count);
        assert_memory_equal(result.frames, second.frames, result.count * sizeof *result.frames);
        walk_pieces(false, (uintptr_t)pieces[order[PIECES - 1]] + PIECE);
        assert_int_equal(result.flags, GP_UNWIND_INCOMPLETE);
    }
}

static void note_registers(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info;
    gp_unwind_regs_from_ucontext(&innermost, innermost_gp, context);
    walk_out_of_pieces();
}

// The frame pointer is what leads back to the piece before: a frame of variable size has one.
static NOINLINE void enter_piece(unsigned depth)
{
    volatile unsigned char *room = __builtin_alloca(64 + (size_t)sink % 2);
    truth[depth] = RETURN_ADDRESS();
    room[0] = 1;
    if (depth < PIECES)
        gp_arch_run_on(pieces[order[depth]] + PIECE, go_on_in_piece, &depth);
    else
        raise(SIGUSR2);
    sink += room[0];
}

// Segments of a split stack lie wherever the kernel has had room for each: above the thread's stack, below, and below
// or above one another. Before: a walk went upwards only, and was lost at the first segment that led down.
static void test_pieces_in_any_order(void **state)
{
    static const unsigned orders[][PIECES] = {{3, 2, 1, 0}, {0, 1, 2, 3}, {1, 3, 0, 2}, {2, 0, 3, 1}};
    struct sigaction action = {.sa_sigaction = note_registers, .sa_flags = SA_SIGINFO};
    (void)state;
    sigaction(SIGUSR2, &action, NULL);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        order = orders[i];
        enter_piece(0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_pieces_in_any_order),
        cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_exactly_full),
        cmocka_unit_test(test_tiny_output),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_entry),
        cmocka_unit_test(test_ucontext_bottom),
        cmocka_unit_test(test_forged_bottoms),
        cmocka_unit_test(test_parked),
        cmocka_unit_test(test_parked_before_first_run),
        cmocka_unit_test(test_no_cfi),
        cmocka_unit_test(test_signal_frames),
        cmocka_unit_test(test_memo_is_invisible),
        cmocka_unit_test(test_a_memo_is_its_stacks),
    };
    walk_find_stack(&lo, &hi);
    gp_unwind_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
