// SPDX-License-Identifier: MIT
// A program with gcc's AddressSanitizer, which wants to be the first library, and looks for leaks at its end. The run
// is long enough to be sampled.
#include <stdio.h>
#include <time.h>

int main(void)
{
    while (clock() < CLOCKS_PER_SEC / 4)
        ;
    puts("sanitized");
    return 3;
}
