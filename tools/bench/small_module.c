// SPDX-License-Identifier: MIT
// A small module, of which a process has a thousand copies (many_modules.c).
__attribute__((visibility("default"), noinline)) unsigned long module_work(unsigned long amount)
{
    unsigned long sum = 0;
    for (unsigned long i = 0; i < amount; i++)
        __asm__ volatile("" : "+r"(sum) : "r"(i));
    return sum + amount;
}
