// SPDX-License-Identifier: MIT
// The CFI reader on hand-made programs: every instruction, every encoding, and bytes that make no
// sense.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/cfi.h"
#include "unwind/expr.h"
#include "unwind/packed_row.h"

enum { CODE = 0x1000, CODE_LEN = 0x100, R = 3 };

// A CIE and an FDE, absolute pointers; the FDE covers [CODE, CODE + CODE_LEN).
typedef struct image {
    uint8_t bytes[1024];
    size_t len, fde;
    gp_cfi_section_t section;
} image_t;

static void put(image_t *image, const void *bytes, size_t len)
{
    memcpy(image->bytes + image->len, bytes, len);
    image->len += len;
}

static void put_u32(image_t *image, uint32_t value)
{
    put(image, &value, sizeof value);
}

static void put_u64(image_t *image, uint64_t value)
{
    put(image, &value, sizeof value);
}

static void end_entry(image_t *image, size_t at)
{
    uint32_t len = (uint32_t)(image->len - at - 4);
    memcpy(image->bytes + at, &len, sizeof len);
}

static void build(image_t *image, const uint8_t *cie, size_t cie_len, const uint8_t *fde, size_t fde_len)
{
    const uint8_t head[] = {1, 'z', 'R', 0, 1, 0x78, GP_REG_RA, 1, 0x00}; // code 1, data -8, absolute
    memset(image, 0, sizeof *image);
    put_u32(image, 0);
    put_u32(image, 0);
    put(image, head, sizeof head);
    put(image, cie, cie_len);
    end_entry(image, 0);
    image->fde = image->len;
    put_u32(image, 0);
    put_u32(image, (uint32_t)image->len);
    put_u64(image, CODE);
    put_u64(image, CODE_LEN);
    put(image, "", 1); // no augmentation data
    put(image, fde, fde_len);
    end_entry(image, image->fde);
    image->section = (gp_cfi_section_t){.start = image->bytes, .end = image->bytes + image->len};
}

static bool row_at(const image_t *image, uintptr_t pc, gp_row_t *row)
{
    gp_fde_t fde;
    const uint8_t *next;
    return gp_cfi_decode(&image->section, image->bytes + image->fde, &fde, &next) &&
           gp_cfi_row(&image->section, &fde, pc, row);
}

// CFA = sp + 8, return address at CFA - 8: what every x86-64 CIE says.
static const uint8_t usual_cie[] = {0x0c, GP_REG_SP, 8, 0x80 | GP_REG_RA, 1};

static void row_of(image_t *image, const uint8_t *fde, size_t len, uintptr_t pc, gp_row_t *row)
{
    build(image, usual_cie, sizeof usual_cie, fde, len);
    assert_true(row_at(image, pc, row));
}
#define ROW(pc, ...) row_of(&image, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), pc, &row)

static void assert_rule(const gp_row_t *row, unsigned reg, int kind, int value)
{
    assert_int_equal(row->regs[reg].kind, kind);
    assert_int_equal(row->regs[reg].value, value);
}

static void test_initial_row(void **state)
{
    image_t image;
    gp_row_t row;
    (void)state;
    ROW(CODE, 0);
    assert_int_equal(row.cfa_reg, GP_REG_SP);
    assert_int_equal(row.cfa_offset, 8);
    assert_rule(&row, GP_REG_RA, GP_RULE_OFFSET, -8);
    assert_int_equal(row.regs[R].kind, GP_RULE_SAME);
    assert_int_equal(row.start, CODE);
    assert_int_equal(row.end, CODE + CODE_LEN);
}

static void test_advances(void **state)
{
    image_t image;
    gp_row_t row;
    (void)state;
    // advance 1; offset 16; advance1 0x10; offset 24; advance2 0x20; offset 32; advance4 0x30;
    // offset 40
#define PROGRAM 0x41, 0x0e, 16, 0x02, 0x10, 0x0e, 24, 0x03, 0x20, 0, 0x0e, 32, 0x04, 0x30, 0, 0, 0, 0x0e, 40
    static const struct {
        unsigned at;
        int cfa;
    } want[] = {{0, 8}, {1, 16}, {0x10, 16}, {0x11, 24}, {0x30, 24}, {0x31, 32}, {0x60, 32}, {0x61, 40}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        ROW(CODE + want[i].at, PROGRAM);
        assert_int_equal(row.cfa_offset, want[i].cfa);
    }
}

static void test_set_loc(void **state)
{
    image_t image;
    gp_row_t row;
    (void)state;
    ROW(CODE + 0x1f, 0x01, 0x20, 0x10, 0, 0, 0, 0, 0, 0, 0x0e, 16);
    assert_int_equal(row.cfa_offset, 8);
    ROW(CODE + 0x20, 0x01, 0x20, 0x10, 0, 0, 0, 0, 0, 0, 0x0e, 16);
    assert_int_equal(row.cfa_offset, 16);
}

static void test_cfa_rules(void **state)
{
    image_t image;
    gp_row_t row;
    (void)state;
    ROW(CODE, 0x0c, GP_REG_FP, 16);
    assert_int_equal(row.cfa_reg, GP_REG_FP);
    assert_int_equal(row.cfa_offset, 16);
    ROW(CODE, 0x0d, GP_REG_FP);
    assert_int_equal(row.cfa_reg, GP_REG_FP);
    assert_int_equal(row.cfa_offset, 8);
    ROW(CODE, 0x12, GP_REG_FP, 0x7e); // def_cfa_sf -2 * -8
    assert_int_equal(row.cfa_offset, 16);
    ROW(CODE, 0x13, 0x7d); // def_cfa_offset_sf -3 * -8
    assert_int_equal(row.cfa_offset, 24);
    ROW(CODE, 0x0f, 2, 0x76, 0);
    assert_true(row.cfa_is_expr);
    ROW(CODE, 0x0f, 2, 0x76, 0, 0x0c, GP_REG_SP, 32);
    assert_false(row.cfa_is_expr);
    assert_int_equal(row.cfa_offset, 32);
}

static void test_register_rules(void **state)
{
    image_t image;
    gp_row_t row;
    (void)state;
    ROW(CODE, 0x80 | R, 2);
    assert_rule(&row, R, GP_RULE_OFFSET, -16);
    ROW(CODE, 0x05, R, 3);
    assert_rule(&row, R, GP_RULE_OFFSET, -24);
    ROW(CODE, 0x11, R, 0x7f);
    assert_rule(&row, R, GP_RULE_OFFSET, 8);
    ROW(CODE, 0x2f, R, 2);
    assert_rule(&row, R, GP_RULE_OFFSET, 16);
    ROW(CODE, 0x14, R, 2);
    assert_rule(&row, R, GP_RULE_VAL_OFFSET, -16);
    ROW(CODE, 0x15, R, 0x7f);
    assert_rule(&row, R, GP_RULE_VAL_OFFSET, 8);
    ROW(CODE, 0x09, R, 5);
    assert_rule(&row, R, GP_RULE_REGISTER, 5);
    ROW(CODE, 0x07, R);
    assert_int_equal(row.regs[R].kind, GP_RULE_UNDEFINED);
    ROW(CODE, 0x80 | R, 2, 0x08, R);
    assert_int_equal(row.regs[R].kind, GP_RULE_SAME);
    ROW(CODE, 0x10, R, 2, 0x76, 0);
    assert_int_equal(row.regs[R].kind, GP_RULE_EXPR);
    ROW(CODE, 0x16, R, 2, 0x76, 0);
    assert_int_equal(row.regs[R].kind, GP_RULE_VAL_EXPR);
    ROW(CODE, 0x05, 60, 3, 0x2e, 16); // a vector register, GNU_args_size: nothing changes
    assert_int_equal(row.cfa_offset, 8);
}

static void test_restore(void **state)
{
    image_t image;
    gp_row_t row;
    (void)state;
    ROW(CODE, 0x80 | R, 2, 0xc0 | R);
    assert_int_equal(row.regs[R].kind, GP_RULE_SAME);
    ROW(CODE, 0x80 | GP_REG_RA, 5, 0x06, GP_REG_RA);
    assert_rule(&row, GP_REG_RA, GP_RULE_OFFSET, -8);
}

static void test_remember(void **state)
{
    image_t image;
    gp_row_t row;
    (void)state;
    // remember; cfa 16, R saved; advance 4; remember; cfa 32; advance 4; restore; advance 4;
    // restore
#define NESTED 0x0a, 0x0e, 16, 0x80 | R, 2, 0x44, 0x0a, 0x0e, 32, 0x44, 0x0b, 0x44, 0x0b
    ROW(CODE + 4, NESTED);
    assert_int_equal(row.cfa_offset, 32);
    ROW(CODE + 8, NESTED);
    assert_int_equal(row.cfa_offset, 16);
    assert_rule(&row, R, GP_RULE_OFFSET, -16);
    ROW(CODE + 12, NESTED);
    assert_int_equal(row.cfa_offset, 8);
    assert_int_equal(row.regs[R].kind, GP_RULE_SAME);
}

static void test_aarch64_sign_state(void **state)
{
    image_t image;
    gp_row_t row;
    (void)state;
    ROW(CODE, 0x2d);
    assert_true(row.ra_signed);
    ROW(CODE, 0x2d, 0x2d);
    assert_false(row.ra_signed);
}

static void test_malformed(void **state)
{
    static const uint8_t bad[][4] = {
        {0x0b, 0, 0, 0},              // restore_state without remember
        {0x3f, 0, 0, 0},              // no such instruction
        {0x03, 0x10, 0, 0},           // advance2 that ends outside, after the next one is read
        {0x0f, 0x70, 0, 0},           // a block longer than the program
        {0x0c, 0x7f, 8, 0},           // CFA by a register that is not tracked
        {0x80 | R, 0x80, 0x80, 0x80}, // LEB128 without end
    };
    image_t image;
    gp_row_t row;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        build(&image, usual_cie, sizeof usual_cie, bad[i], i == 2 ? 2 : 4);
        assert_false(row_at(&image, CODE, &row));
    }
    build(&image, (const uint8_t *)"", 0, (const uint8_t *)"", 0); // no CFA rule at all
    assert_false(row_at(&image, CODE, &row));
    build(&image, (const uint8_t[]){0xc0 | R}, 1, usual_cie, sizeof usual_cie); // restore in a CIE
    assert_false(row_at(&image, CODE, &row));
}

static void test_every_truncation(void **state)
{
    const uint8_t program[] = {NESTED, 0x0f, 3, 0x76, 0x78, 0x06};
    image_t image;
    gp_row_t row;
    (void)state;
    build(&image, usual_cie, sizeof usual_cie, program, sizeof program);
    assert_true(row_at(&image, CODE, &row));
    for (size_t len = 0; len < image.len; len++) {
        image_t cut = image;
        cut.section = (gp_cfi_section_t){.start = cut.bytes, .end = cut.bytes + len};
        assert_false(row_at(&cut, CODE, &row));
    }
}

static enum gp_expr_status eval(const uint8_t *ops, size_t len, uintptr_t *result)
{
    static _Alignas(8) uintptr_t memory[8] = {11, 22, 33, 44, 55, 66, 77, 88};
    uint8_t block[64];
    gp_regfile_t regs = {.known = 1u << 1 | 1u << 2};
    gp_stack_memory_t stack = gp_stack_of((uintptr_t)memory, (uintptr_t)(memory + 8));
    regs.reg[1] = (uintptr_t)memory;
    regs.reg[2] = 1000;
    block[0] = (uint8_t)len;
    memcpy(block + 1, ops, len);
    return gp_expr_eval(block, block + 1 + len, &regs, &stack, NULL, result);
}
#define EVAL(...) eval((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), &value)
#define YIELDS(want, ...)                                                                                              \
    do {                                                                                                               \
        assert_int_equal(EVAL(__VA_ARGS__), GP_EXPR_OK);                                                               \
        assert_int_equal(value, want);                                                                                 \
    } while (0)

static void test_expressions(void **state)
{
    uintptr_t value;
    (void)state;
    YIELDS(7, 0x37);
    YIELDS(1000 - 8, 0x72, 0x78);
    YIELDS(22, 0x71, 8, 0x06);
    YIELDS(3, 0x35, 0x32, 0x1c);
    YIELDS(10, 0x35, 0x32, 0x1e);
    YIELDS(2, 0x37, 0x35, 0x1d);
    YIELDS(-2, 0x36, 0x1f, 0x33, 0x1b);
    YIELDS(4, 0x36, 0x3c, 0x1a);
    YIELDS(12, 0x33, 0x32, 0x24);
    YIELDS(1, 0x35, 0x35, 0x29);
    YIELDS(0, 0x35, 0x35, 0x2b);
    YIELDS(0xfffe, 0x0a, 0xfe, 0xff);
    YIELDS(-2, 0x0b, 0xfe, 0xff);
    YIELDS(300, 0x10, 0xac, 2);
    YIELDS(5, 0x35, 0x37, 0x13);
    YIELDS(5, 0x35, 0x37, 0x14, 0x13, 0x13);
    YIELDS(105, 0x35, 0x23, 100);
    YIELDS(9, 0x31, 0x28, 1, 0, 0x38, 0x39); // bra over lit8
    YIELDS(22, 0x71, 8, 0x94, 4);            // deref_size
    // The PLT's: sp + 8 + ((pc & 15) >= 11) * 8, here with register 2 for both.
    YIELDS(1008, 0x72, 8, 0x72, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22);
}

static void test_bad_expressions(void **state)
{
    uintptr_t value;
    (void)state;
    assert_int_equal(EVAL(0x73, 0), GP_EXPR_UNKNOWN_REG);
    assert_int_equal(EVAL(0x22), GP_EXPR_BAD);                   // underflow
    assert_int_equal(EVAL(0x72, 0, 0x06), GP_EXPR_BAD);          // reads outside the stack
    assert_int_equal(EVAL(0x71, 64, 0x06), GP_EXPR_BAD);         // one past it
    assert_int_equal(EVAL(0x31, 0x30, 0x1b), GP_EXPR_BAD);       // division by zero
    assert_int_equal(EVAL(0x31, 0x2f, 0xfd, 0xff), GP_EXPR_BAD); // endless loop
    assert_int_equal(EVAL(0x31, 0x2f, 0x70, 0), GP_EXPR_BAD);    // jump outside
    assert_int_equal(EVAL(0x96), GP_EXPR_BAD);                   // yields nothing
    assert_int_equal(EVAL(0xff), GP_EXPR_BAD);
}

static void test_packing(void **state)
{
    image_t image;
    gp_row_t row;
    gp_packed_row_t packed;
    (void)state;
    ROW(CODE, 0x0e, 48, 0x80 | GP_REG_FP, 2);
    packed = gp_row_pack(&row, CODE);
    assert_int_equal(gp_row_kind(packed), GP_ROW_SP);
    assert_int_equal(gp_row_off(packed), 6);
    assert_int_equal(gp_row_fp(packed), 2);
    assert_int_equal(gp_row_ra(packed), 1);
    ROW(CODE, 0x0c, GP_REG_FP, 16, 0x80 | GP_REG_FP, 2);
    assert_int_equal(gp_row_kind(gp_row_pack(&row, CODE)), GP_ROW_FP);
    ROW(CODE, 0x07, GP_REG_RA);
    assert_int_equal(gp_row_pack(&row, CODE), gp_row_special(GP_SPECIAL_END, 0));
    ROW(CODE, 0x0e, 0x80, 0x80, 0x40); // a megabyte: does not fit
    assert_int_equal(gp_row_pack(&row, CODE), gp_row_special(GP_SPECIAL_FULL, 0));
    ROW(CODE, 0x0d, R);
    assert_int_equal(gp_row_pack(&row, CODE), gp_row_special(GP_SPECIAL_FULL, 0));
    ROW(CODE, 0x0e, 12); // no multiple of a word
    assert_int_equal(gp_row_pack(&row, CODE), gp_row_special(GP_SPECIAL_FULL, 0));
}

static void test_packing_expressions(void **state)
{
    enum { BREG_FP = 0x70 + GP_REG_FP };
    image_t image;
    gp_row_t row;
    (void)state;
    ROW(CODE, 0x0f, 3, BREG_FP, 0x78, 0x06, 0x10, GP_REG_FP, 2, BREG_FP, 0);
    assert_int_equal(gp_row_pack(&row, CODE), gp_row_special(GP_SPECIAL_REALIGN, 1));
#if defined(__x86_64__)
    // The PLT's own expression, at both ends of an entry.
#define PLT 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22
    ROW(CODE, PLT);
    assert_int_equal(gp_row_pack(&row, CODE), gp_row_simple(GP_ROW_SP, 1, 0, 1));
    assert_int_equal(gp_row_pack(&row, CODE + 10), gp_row_simple(GP_ROW_SP, 1, 0, 1));
    assert_int_equal(gp_row_pack(&row, CODE + 11), gp_row_simple(GP_ROW_SP, 2, 0, 1));
#endif
    ROW(CODE, 0x0f, 2, 0x70 + R, 0); // another register
    assert_int_equal(gp_row_pack(&row, CODE), gp_row_special(GP_SPECIAL_FULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_initial_row),    cmocka_unit_test(test_advances),
        cmocka_unit_test(test_set_loc),        cmocka_unit_test(test_cfa_rules),
        cmocka_unit_test(test_register_rules), cmocka_unit_test(test_restore),
        cmocka_unit_test(test_remember),       cmocka_unit_test(test_aarch64_sign_state),
        cmocka_unit_test(test_malformed),      cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_expressions),    cmocka_unit_test(test_bad_expressions),
        cmocka_unit_test(test_packing),        cmocka_unit_test(test_packing_expressions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
