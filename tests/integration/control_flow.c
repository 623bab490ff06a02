// SPDX-License-Identifier: MIT
// Stacks as compilers and programs treat them: longjmp, deep recursion, alloca, variable arrays, vector registers.
//   control_flow longjmp | deep DEPTH | alloca | vectors | errno
#include "truth.h"

#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>

WORK(jumper)
WORK(lander)
WORK(bottom)
WORK(alloca)
WORK(array)
WORK(outer)

static volatile int never;

static jmp_buf landing;

static TRUTH_OUT_OF_LINE void jump_from(int depth)
{
    volatile char room[128] = {(char)depth};
    if (depth > 0)
        jump_from(depth - 1);
    else
        work_jumper(200000);
    if (!never)
        longjmp(landing, depth + 1);
    (void)room[0];
}

static void longjmps(void)
{
    for (volatile int i = 0; i < 3000; i++) {
        if (setjmp(landing) == 0)
            jump_from(20);
        work_lander(100000);
    }
    EXPECT(jumper);
    EXPECT(lander);
}

static TRUTH_OUT_OF_LINE void dive(int depth)
{
    volatile char room[32] = {(char)depth};
    if (depth > 0)
        dive(depth - 1);
    else
        work_bottom(1000000000);
    (void)room[0];
}

static TRUTH_OUT_OF_LINE void in_alloca(size_t size)
{
    volatile char *room = alloca(size);
    room[0] = room[size - 1] = 1;
    work_alloca(1000000);
    room[0] = room[size - 1];
}

static TRUTH_OUT_OF_LINE void in_array(int size)
{
    volatile char room[size];
    room[0] = room[size - 1] = 1;
    work_array(500000);
    room[0] = room[size - 1];
}

static TRUTH_OUT_OF_LINE void allocas(void)
{
    for (int i = 0; i < 1000; i++) {
        in_alloca((size_t)(i * 13 % 9000 + 16));
        in_array(i * 7 % 5000 + 16);
    }
    EXPECT(alloca);
    EXPECT(array);
}

// Sixteen sums at once, in registers that a handler must give back as they were.
static int vectors(void)
{
    double sums[16] = {0}, expected[16];
    uint64_t end = truth_cpu_ns() + 2000000000u, rounds = 0;
    long double extended = 0;
    do {
        for (int i = 0; i < 20000; i++) {
            for (int j = 0; j < 16; j++)
                sums[j] += (double)(j + 1);
            extended += 0.25L;
        }
        rounds += 20000;
    } while (truth_cpu_ns() < end);
    for (int j = 0; j < 16; j++)
        expected[j] = (double)rounds * (j + 1);
    return memcmp(sums, expected, sizeof(sums)) == 0 && extended == 0.25L * (long double)rounds ? 0 : 3;
}

// errno must be what the last call left there, at any moment.
static int errnos(void)
{
    uint64_t end = truth_cpu_ns() + 2000000000u;
    do {
        for (int i = 0; i < 1000; i++) {
            errno = 4711;
            for (volatile int j = 0; j < 200; j++)
                if (errno != 4711)
                    return 3;
            if (close(-1) != -1 || errno != EBADF)
                return 4;
            if (open("/nonexistent/file", O_RDONLY) != -1 || errno != ENOENT)
                return 5;
        }
    } while (truth_cpu_ns() < end);
    return 0;
}

int main(int argc, char **argv)
{
    int status = 0;
    truth_thread_begin();
    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "longjmp") == 0)
        longjmps();
    else if (strcmp(argv[1], "deep") == 0) {
        dive(atoi(argv[2]));
        work_outer(300000000);
        EXPECT(bottom);
        EXPECT(outer);
    } else if (strcmp(argv[1], "alloca") == 0)
        allocas();
    else if (strcmp(argv[1], "vectors") == 0)
        status = vectors();
    else if (strcmp(argv[1], "errno") == 0)
        status = errnos();
    else
        return 2;
    truth_print_total();
    return status;
}
