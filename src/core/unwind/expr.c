// SPDX-License-Identifier: MIT
// The expression evaluator: a stack machine over one frame's registers and stack.
#include "unwind/expr.h"

#include "base/cursor.h"

enum { EXPR_STACK = 32, EXPR_STEPS_MAX = 1024 };

// Source: DWARF 5 table 7.9.
enum dwarf_op {
    OP_ADDR = 0x03,
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08,
    OP_CONST1S = 0x09,
    OP_CONST2U = 0x0a,
    OP_CONST2S = 0x0b,
    OP_CONST4U = 0x0c,
    OP_CONST4S = 0x0d,
    OP_CONST8U = 0x0e,
    OP_CONST8S = 0x0f,
    OP_CONSTU = 0x10,
    OP_CONSTS = 0x11,
    OP_DUP = 0x12,
    OP_DROP = 0x13,
    OP_OVER = 0x14,
    OP_PICK = 0x15,
    OP_SWAP = 0x16,
    OP_ROT = 0x17,
    OP_ABS = 0x19,
    OP_AND = 0x1a,
    OP_DIV = 0x1b,
    OP_MINUS = 0x1c,
    OP_MOD = 0x1d,
    OP_MUL = 0x1e,
    OP_NEG = 0x1f,
    OP_NOT = 0x20,
    OP_OR = 0x21,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_SHL = 0x24,
    OP_SHR = 0x25,
    OP_SHRA = 0x26,
    OP_XOR = 0x27,
    OP_BRA = 0x28,
    OP_EQ = 0x29,
    OP_GE = 0x2a,
    OP_GT = 0x2b,
    OP_LE = 0x2c,
    OP_LT = 0x2d,
    OP_NE = 0x2e,
    OP_SKIP = 0x2f,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
    OP_BREGX = 0x92,
    OP_DEREF_SIZE = 0x94,
    OP_NOP = 0x96,
};

typedef struct evaluator {
    gp_cursor_t r;
    const uint8_t *start;
    const gp_regfile_t *regs;
    gp_stack_memory_t *memory;
    uintptr_t stack[EXPR_STACK];
    unsigned depth;
    enum gp_expr_status status;
} evaluator_t;

static void expr_push(evaluator_t *e, uintptr_t value)
{
    if (e->depth == EXPR_STACK) {
        e->status = GP_EXPR_BAD;
        return;
    }
    e->stack[e->depth++] = value;
}

static uintptr_t expr_pop(evaluator_t *e)
{
    if (e->depth == 0) {
        e->status = GP_EXPR_BAD;
        return 0;
    }
    return e->stack[--e->depth];
}

static void expr_pick(evaluator_t *e, unsigned index)
{
    if (index >= e->depth) {
        e->status = GP_EXPR_BAD;
        return;
    }
    expr_push(e, e->stack[e->depth - 1 - index]);
}

static void expr_push_register(evaluator_t *e, uint64_t reg)
{
    int64_t offset = gp_read_sleb(&e->r);
    if (reg >= GP_REG_COUNT)
        e->status = GP_EXPR_BAD;
    else if (!(e->regs->known >> reg & 1))
        e->status = GP_EXPR_UNKNOWN_REG;
    else
        expr_push(e, e->regs->reg[reg] + (uintptr_t)offset);
}

static void expr_deref(evaluator_t *e, unsigned size)
{
    uintptr_t at = expr_pop(e), value = 0;
    unsigned shift = 8u * (unsigned)(at % sizeof value);
    if (size == 0 || size > sizeof value || at % sizeof value + size > sizeof value ||
        !gp_stack_read(e->memory, at - at % sizeof value, &value)) {
        e->status = GP_EXPR_BAD;
        return;
    }
    value >>= shift;
    expr_push(e, size < sizeof value ? value & (((uintptr_t)1 << 8 * size) - 1) : value);
}

static void expr_jump(evaluator_t *e, bool taken)
{
    int64_t offset = (int16_t)gp_read_uint(&e->r, 2);
    if (!taken || e->r.bad)
        return;
    if (offset < e->start - e->r.pos || offset > e->r.end - e->r.pos) {
        e->status = GP_EXPR_BAD;
        return;
    }
    e->r.pos += offset;
}

static uintptr_t expr_divide(evaluator_t *e, uint8_t op, uintptr_t a, uintptr_t b)
{
    if (b == 0 || (op == OP_DIV && b == UINTPTR_MAX)) {
        e->status = b == 0 ? GP_EXPR_BAD : e->status;
        return 0 - a;
    }
    return op == OP_MOD ? a % b : (uintptr_t)((intptr_t)a / (intptr_t)b);
}

static uintptr_t expr_shift(uint8_t op, uintptr_t a, uintptr_t b)
{
    bool all = b >= 8 * sizeof a;
    switch (op) {
    case OP_SHL:
        return all ? 0 : a << b;
    case OP_SHR:
        return all ? 0 : a >> b;
    default:
        // cppcheck-suppress shiftTooManyBitsSigned ; arithmetic shift in every compiler that builds this
        return (uintptr_t)((intptr_t)a >> (all ? 63 : b));
    }
}

static uintptr_t expr_compare(uint8_t op, intptr_t a, intptr_t b)
{
    switch (op) {
    case OP_EQ:
        return a == b;
    case OP_GE:
        return a >= b;
    case OP_GT:
        return a > b;
    case OP_LE:
        return a <= b;
    case OP_LT:
        return a < b;
    default:
        return a != b;
    }
}

static void expr_run_binary(evaluator_t *e, uint8_t op)
{
    uintptr_t b = expr_pop(e), a = expr_pop(e);
    switch (op) {
    case OP_AND:
        expr_push(e, a & b);
        break;
    case OP_OR:
        expr_push(e, a | b);
        break;
    case OP_XOR:
        expr_push(e, a ^ b);
        break;
    case OP_PLUS:
        expr_push(e, a + b);
        break;
    case OP_MINUS:
        expr_push(e, a - b);
        break;
    case OP_MUL:
        expr_push(e, a * b);
        break;
    case OP_DIV:
    case OP_MOD:
        expr_push(e, expr_divide(e, op, a, b));
        break;
    case OP_SHL:
    case OP_SHR:
    case OP_SHRA:
        expr_push(e, expr_shift(op, a, b));
        break;
    default:
        expr_push(e, expr_compare(op, (intptr_t)a, (intptr_t)b));
    }
}

static void expr_run_constant(evaluator_t *e, uint8_t op)
{
    static const uint8_t size[] = {1, 1, 2, 2, 4, 4, 8, 8};
    if (op == OP_CONSTU) {
        expr_push(e, gp_read_uleb(&e->r));
    } else if (op == OP_CONSTS) {
        expr_push(e, (uintptr_t)gp_read_sleb(&e->r));
    } else if (op == OP_ADDR) {
        expr_push(e, gp_read_uint(&e->r, sizeof(uintptr_t)));
    } else {
        unsigned bits = 8u * size[op - OP_CONST1U];
        uint64_t value = gp_read_uint(&e->r, bits / 8);
        bool negative = (op & 1) && value >> (bits - 1);
        expr_push(e, negative && bits < 64 ? value | ~(uint64_t)0 << bits : value);
    }
}

static void expr_run_stack(evaluator_t *e, uint8_t op)
{
    uintptr_t a, b, c;
    switch (op) {
    case OP_DUP:
        expr_pick(e, 0);
        break;
    case OP_OVER:
        expr_pick(e, 1);
        break;
    case OP_PICK:
        expr_pick(e, gp_read_u8(&e->r));
        break;
    case OP_DROP:
        (void)expr_pop(e);
        break;
    case OP_SWAP:
        a = expr_pop(e), b = expr_pop(e);
        expr_push(e, a), expr_push(e, b);
        break;
    default: // OP_ROT
        a = expr_pop(e), b = expr_pop(e), c = expr_pop(e);
        expr_push(e, a), expr_push(e, c), expr_push(e, b);
    }
}

static void expr_run_unary(evaluator_t *e, uint8_t op)
{
    uintptr_t a = expr_pop(e);
    switch (op) {
    case OP_ABS:
        expr_push(e, (intptr_t)a < 0 ? 0 - a : a);
        break;
    case OP_NEG:
        expr_push(e, 0 - a);
        break;
    case OP_NOT:
        expr_push(e, ~a);
        break;
    default: // OP_PLUS_UCONST
        expr_push(e, a + gp_read_uleb(&e->r));
    }
}

static void expr_run_control(evaluator_t *e, uint8_t op)
{
    switch (op) {
    case OP_DEREF:
        expr_deref(e, sizeof(uintptr_t));
        break;
    case OP_DEREF_SIZE:
        expr_deref(e, gp_read_u8(&e->r));
        break;
    case OP_SKIP:
        expr_jump(e, true);
        break;
    case OP_BRA:
        expr_jump(e, expr_pop(e) != 0);
        break;
    case OP_BREGX:
        expr_push_register(e, gp_read_uleb(&e->r));
        break;
    case OP_NOP:
        break;
    default:
        e->status = GP_EXPR_BAD;
    }
}

static void expr_run_one(evaluator_t *e)
{
    uint8_t op = gp_read_u8(&e->r);
    if (op >= OP_LIT0 && op <= OP_LIT31)
        expr_push(e, op - OP_LIT0);
    else if (op >= OP_BREG0 && op <= OP_BREG31)
        expr_push_register(e, op - OP_BREG0);
    else if (op == OP_ADDR || (op >= OP_CONST1U && op <= OP_CONSTS))
        expr_run_constant(e, op);
    else if (op >= OP_DUP && op <= OP_ROT)
        expr_run_stack(e, op);
    else if (op == OP_ABS || op == OP_NEG || op == OP_NOT || op == OP_PLUS_UCONST)
        expr_run_unary(e, op);
    else if (op >= OP_AND && op <= OP_NE && op != OP_BRA)
        expr_run_binary(e, op);
    else
        expr_run_control(e, op);
}

enum gp_expr_status gp_expr_eval(const uint8_t *block, const uint8_t *limit, const gp_regfile_t *regs,
                                 gp_stack_memory_t *stack, const uintptr_t *initial, uintptr_t *result)
{
    evaluator_t e;
    e.r = gp_cursor_over(block, limit);
    uint64_t len = gp_read_uleb(&e.r);
    if (e.r.bad || len > (uint64_t)(limit - e.r.pos))
        return GP_EXPR_BAD;
    e.r.end = e.r.pos + len;
    e.start = e.r.pos;
    e.regs = regs;
    e.memory = stack;
    e.depth = 0;
    e.status = GP_EXPR_OK;
    if (initial != NULL)
        expr_push(&e, *initial);
    for (unsigned i = 0; gp_cursor_more(&e.r) && e.status == GP_EXPR_OK; i++) {
        if (i == EXPR_STEPS_MAX)
            return GP_EXPR_BAD;
        expr_run_one(&e);
    }
    if (e.status == GP_EXPR_OK && (e.r.bad || e.depth == 0))
        return GP_EXPR_BAD;
    *result = e.depth > 0 ? e.stack[e.depth - 1] : 0;
    return e.status;
}
