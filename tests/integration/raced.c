// SPDX-License-Identifier: MIT
// With ThreadSanitizer: the exit status is 66 where its runtime has seen a race. Threads begin and end, memory passes
// from one to the next, and a child is forked. The run is long enough to be sampled.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 40, BYTES = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *shared;
static long sum;

static void *work(void *unused)
{
    (void)unused;
    struct timespec now, start;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    do {
        char *mine = malloc(BYTES);
        memset(mine, 1, BYTES);
        pthread_mutex_lock(&lock);
        char *old = shared;
        shared = mine;
        if (old != NULL)
            sum += old[BYTES - 1];
        pthread_mutex_unlock(&lock);
        free(old);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < 2000000);
    return NULL;
}

int main(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, work, NULL) != 0)
                return 1;
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    pid_t child = fork();
    if (child == 0)
        _exit(4);
    int status = 0;
    waitpid(child, &status, 0);
    puts(sum > 0 ? "raced" : "nothing");
    return WEXITSTATUS(status) - 1;
}
