// SPDX-License-Identifier: MIT
// State Threads, with switch callbacks of the program's own.
#include <st.h>

#include "shares.h"

static unsigned long entered, left;

static void count_in(void)
{
    entered++;
}
static void count_out(void)
{
    left++;
}

static void run(int id)
{
    for (int i = 0; i < shares_rounds; i++) {
        shares_step(id);
        st_usleep(0);
    }
}

static void *entry_alpha(void *unused)
{
    run(0);
    return unused;
}
static void *entry_beta(void *unused)
{
    run(1);
    return unused;
}
static void *entry_gamma(void *unused)
{
    run(2);
    return unused;
}
static void *entry_idle(void *unused)
{
    run(3);
    return unused;
}

int main(int argc, char **argv)
{
    static void *(*const entries[])(void *) = {entry_alpha, entry_beta, entry_gamma, entry_idle};
    st_thread_t threads[SHARES_COUNT];
    if (shares_begin(argc, argv) < 0)
        return 2;
    st_set_switch_in_cb(count_in);
    if (st_init() != 0)
        return 2;
    st_set_switch_out_cb(count_out);
    for (int id = 0; id < SHARES_COUNT; id++)
        threads[id] = st_thread_create(entries[id], NULL, 1, 0);
    for (int id = 0; id < SHARES_COUNT; id++)
        st_thread_join(threads[id], NULL);
    printf("SWITCHES %d %d\n", entered > 0, left > 0);
    return shares_end();
}
