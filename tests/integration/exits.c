// SPDX-License-Identifier: MIT
// Work for so long, then end in a given way.
//   exits HOW SECONDS
#include "truth.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

WORK(last)

static void *leave_process(void *unused)
{
    truth_print_total();
    (void)unused;
    exit(12);
}

static void *work_forever(void *unused)
{
    for (;;)
        work_last(1000000);
    return unused;
}

static void end(const char *how)
{
    pthread_t thread;
    volatile int *nothing = NULL;
    if (strcmp(how, "exit") == 0)
        exit(11);
    if (strcmp(how, "_exit") == 0)
        _exit(13);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(14);
    if (strcmp(how, "term") == 0)
        raise(SIGTERM);
    if (strcmp(how, "segv") == 0)
        *nothing = 1;
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "thread") == 0) {
        pthread_create(&thread, NULL, leave_process, NULL);
        for (;;)
            pause();
    }
    if (strcmp(how, "beside_threads") == 0) { // the others are in full swing
        for (int i = 0; i < 3; i++)
            pthread_create(&thread, NULL, work_forever, NULL);
        usleep(300000);
        exit(15);
    }
    if (strcmp(how, "pthread_exit") == 0) {
        pthread_create(&thread, NULL, leave_process, NULL);
        pthread_exit(NULL);
    }
}

int main(int argc, char **argv)
{
    struct rlimit none = {0, 0};
    truth_thread_begin();
    if (argc < 3)
        return 2;
    setrlimit(RLIMIT_CORE, &none);
    work_last((uint64_t)(atof(argv[2]) * 1e9));
    EXPECT(last);
    truth_print_total();
    end(argv[1]);
    return 0;
}
