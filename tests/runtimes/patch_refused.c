// SPDX-License-Identifier: MIT
// A program with routines of Boost's names that begin in ways greenprof does not patch. Ends with status 7 if they are
// as they were built.
#include <stdio.h>
#include <string.h>

void jump_fcontext(void);
void make_fcontext(void);

__asm__(".text\n"
        ".globl jump_fcontext\n.type jump_fcontext, @function\n"
        "jump_fcontext: vpxor %xmm0, %xmm0, %xmm0\n .skip 12, 0x90\n ret\n.size jump_fcontext, . - jump_fcontext\n"
        ".globl make_fcontext\n.type make_fcontext, @function\n"
        "make_fcontext: .skip 12, 0x90\n ret\n.size make_fcontext, . - make_fcontext\n");

int main(void)
{
    static const unsigned char jump[] = {0xc5, 0xf9, 0xef, 0xc0, 0x90}, make[] = {0x90, 0x90, 0x90, 0x90, 0x90};
    if (memcmp((const void *)(unsigned long)jump_fcontext, jump, sizeof(jump)) != 0 ||
        memcmp((const void *)(unsigned long)make_fcontext, make, sizeof(make)) != 0)
        return 1;
    puts("as it was");
    return 7;
}
