// SPDX-License-Identifier: MIT
// A program with gcc's AddressSanitizer, which wants to be the first library.
#include <stdio.h>

int main(void)
{
    puts("sanitized");
    return 3;
}
