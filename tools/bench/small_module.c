// SPDX-License-Identifier: MIT
// One of a thousand modules of a process (many_modules.c): copied as often as it is wanted.
__attribute__((visibility("default"), noinline)) unsigned long module_work(unsigned long amount)
{
    unsigned long sum = 0;
    for (unsigned long i = 0; i < amount; i++)
        __asm__ volatile("" : "+r"(sum) : "r"(i));
    return sum + amount;
}
