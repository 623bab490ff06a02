// SPDX-License-Identifier: MIT
#include "base/bpf.h"

#include <stdbool.h>
#include <string.h>

typedef struct machine {
    const struct seccomp_data *call;
    uint32_t a, x, memory[BPF_MEMWORDS];
} machine_t;

static uint32_t bpf_load(const machine_t *machine, const struct sock_filter *instruction, uint32_t otherwise)
{
    uint32_t word = 0;
    switch (BPF_MODE(instruction->code)) {
    case BPF_IMM:
        return instruction->k;
    case BPF_LEN:
        return sizeof(*machine->call);
    case BPF_MEM:
        return instruction->k < BPF_MEMWORDS ? machine->memory[instruction->k] : 0;
    case BPF_ABS:
        if (instruction->k <= sizeof(*machine->call) - sizeof(word))
            memcpy(&word, (const unsigned char *)machine->call + instruction->k, sizeof(word));
        return word;
    default:
        return otherwise;
    }
}

static uint32_t bpf_calculate(uint16_t code, uint32_t a, uint32_t b)
{
    enum { BITS = 32 };
    switch (BPF_OP(code)) {
    case BPF_ADD:
        return a + b;
    case BPF_SUB:
        return a - b;
    case BPF_MUL:
        return a * b;
    case BPF_DIV:
        return b != 0 ? a / b : 0;
    case BPF_AND:
        return a & b;
    case BPF_OR:
        return a | b;
    case BPF_XOR:
        return a ^ b;
    case BPF_LSH:
        return a << b % BITS;
    case BPF_RSH:
        return a >> b % BITS;
    default: // BPF_NEG
        return 0u - a;
    }
}

static bool bpf_is_true(uint16_t code, uint32_t a, uint32_t b)
{
    switch (BPF_OP(code)) {
    case BPF_JEQ:
        return a == b;
    case BPF_JGT:
        return a > b;
    case BPF_JGE:
        return a >= b;
    default: // BPF_JSET
        return (a & b) != 0;
    }
}

static void bpf_move(machine_t *machine, uint16_t code)
{
    if (BPF_MISCOP(code) == BPF_TAX)
        machine->x = machine->a;
    else
        machine->a = machine->x;
}

static void bpf_store(machine_t *machine, uint32_t at, uint32_t value)
{
    if (at < BPF_MEMWORDS)
        machine->memory[at] = value;
}

// How many instructions are left out behind a jump.
static size_t bpf_jump(const machine_t *machine, const struct sock_filter *instruction, uint32_t operand)
{
    if (BPF_OP(instruction->code) == BPF_JA)
        return instruction->k;
    return bpf_is_true(instruction->code, machine->a, operand) ? instruction->jt : instruction->jf;
}

uint32_t gp_bpf_run(const struct sock_filter *code, size_t count, const struct seccomp_data *call)
{
    machine_t machine = {.call = call};
    for (size_t at = 0; at < count; at++) { // jumps lead forwards only
        const struct sock_filter *instruction = &code[at];
        uint32_t operand = BPF_SRC(instruction->code) == BPF_X ? machine.x : instruction->k;
        switch (BPF_CLASS(instruction->code)) {
        case BPF_LD:
            machine.a = bpf_load(&machine, instruction, machine.a);
            break;
        case BPF_LDX:
            machine.x = bpf_load(&machine, instruction, machine.x);
            break;
        case BPF_ST:
            bpf_store(&machine, instruction->k, machine.a);
            break;
        case BPF_STX:
            bpf_store(&machine, instruction->k, machine.x);
            break;
        case BPF_ALU:
            if (BPF_OP(instruction->code) == BPF_DIV && operand == 0)
                return 0; // as the kernel does: SECCOMP_RET_KILL_THREAD
            machine.a = bpf_calculate(instruction->code, machine.a, operand);
            break;
        case BPF_JMP:
            at += bpf_jump(&machine, instruction, operand);
            break;
        case BPF_RET:
            return BPF_RVAL(instruction->code) == BPF_A ? machine.a : instruction->k;
        default:
            bpf_move(&machine, instruction->code);
            break;
        }
    }
    return SECCOMP_RET_KILL_PROCESS;
}

uint32_t gp_bpf_stricter(uint32_t a, uint32_t b)
{
    return (int32_t)(b & SECCOMP_RET_ACTION_FULL) < (int32_t)(a & SECCOMP_RET_ACTION_FULL) ? b : a;
}
