// SPDX-License-Identifier: MIT
// Linked statically: nothing can be loaded into it. Waits until its standard input ends.
#include <stdio.h>

int main(void)
{
    return getchar() == EOF ? 0 : 1;
}
