// SPDX-License-Identifier: MIT
// Two threads of State Threads that hand over to one another by two condition variables.
#include <st.h>

#include "worker.h"

static st_cond_t ping, pong;

static void *other(void *unused)
{
    for (;;) {
        st_cond_wait(ping);
        st_cond_signal(pong);
    }
    return unused;
}

static void block(unsigned long amount, unsigned which, double *figures)
{
    (void)which, (void)figures;
    for (unsigned long i = 0; i < amount; i++) {
        st_cond_signal(ping);
        st_cond_wait(pong);
    }
}

int main(int argc, char **argv)
{
    if (st_init() != 0)
        return 1;
    ping = st_cond_new();
    pong = st_cond_new();
    st_thread_create(other, NULL, 0, 0);
    st_usleep(1000); // until it waits
    return worker_serve(argc, argv, block);
}
