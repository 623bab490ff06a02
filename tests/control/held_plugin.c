// SPDX-License-Identifier: MIT
// A plugin of held.c whose start waits for the program.
void held_wait(void);

__attribute__((constructor)) static void begin(void)
{
    held_wait();
}
