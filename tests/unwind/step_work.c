// SPDX-License-Identifier: MIT
// Functions with awkward frames. Built at -O2 without frame pointers and bound lazily.
#define _GNU_SOURCE
#include "step_work.h"

#include <alloca.h>
#include <locale.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static volatile int sink;
static char text[256];

static NOINLINE int compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static void sort(void)
{
    int v[40];
    for (int i = 0; i < 40; i++)
        v[i] = i * 7919 % 41;
    qsort(v, 40, sizeof *v, compare);
    sink = v[3];
}

static void print(void)
{
    sink = snprintf(text, sizeof text, "%d %s %.17g %#lx %-20s|", 42, "hello", 3.14159, 77ul, "x");
    sink += (int)strtod("2.7182818284590452354e10", NULL);
}

static NOINLINE int variable_frame(int n)
{
    char *local = alloca((size_t)n * 16);
    memset(local, n, (size_t)n * 16);
    return n == 0 ? local == NULL : local[n] + variable_frame(n - 1);
}

static void use_alloca(void)
{
    sink = variable_frame(6);
}

static NOINLINE int realigned(int n)
{
    _Alignas(64) volatile char block[128];
    block[n] = (char)n;
    return n == 0 ? block[0] : realigned(n - 1) + block[n];
}

static NOINLINE int realigned_variable(int n)
{
    _Alignas(64) volatile char block[64];
    char *local = alloca((size_t)n * 8 + 8);
    memset(local, n, (size_t)n * 8 + 8);
    block[n] = local[n];
    return n == 0 ? block[0] : realigned_variable(n - 1) + block[n];
}

static void use_realigned(void)
{
    sink = realigned(5) + realigned_variable(5);
}

static NOINLINE int tail_c(int n)
{
    return sink + n;
}
static NOINLINE int tail_b(int n)
{
    return n > 3 ? tail_c(n) : abs(n - 7);
}
static NOINLINE int tail_a(int n)
{
    sink = n;
    return tail_b(n + 1);
}
static NOINLINE int many_arguments(int a, int b, int c, int d, int e, int f, int g, int h, int i)
{
    sink = a + b + c;
    return d + e + f + tail_a(g) + h * i;
}

static void use_tail_calls(void)
{
    sink = tail_a(1) + tail_a(5) + many_arguments(1, 2, 3, 4, 5, 6, 7, 8, 9);
}

static NOINLINE int shrink_wrapped(int *p)
{
    if (p == NULL)
        return 1;
    int a = rand(), b = rand();
    return *p + a % 7 + b % 5;
}

static void use_shrink_wrap(void)
{
    int one = 1;
    sink = shrink_wrapped(NULL) + shrink_wrapped(&one);
}

#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Winfinite-recursion" // it ends with a jump
static jmp_buf env;
static NOINLINE void jump_out(int n)
{
    if (n == 0)
        longjmp(env, 1);
    jump_out(n - 1);
    sink++;
}

static void use_longjmp(void)
{
    if (setjmp(env) == 0)
        jump_out(4);
}

// Lazily bound: the first call of each goes through _dl_runtime_resolve and the whole symbol
// lookup.
static void bind_lazily(void)
{
    struct tm tm;
    time_t t = 86400;
    gmtime_r(&t, &tm);
    sink = (int)strftime(text, sizeof text, "%Y-%m-%d %H", &tm);
    sink += (int)strspn(text, "0123456789");
}

static void on_signal(int signo)
{
    sink += signo;
}

static void use_signal(void)
{
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
}

const step_case_t step_cases[] = {
    {"sort", sort, false},
    {"print", print, false},
    {"alloca", use_alloca, false},
    {"realigned", use_realigned, false},
    {"tail-calls", use_tail_calls, false},
    {"shrink-wrap", use_shrink_wrap, false},
    {"longjmp", use_longjmp, true},
    {"lazy-bind", bind_lazily, false},
    {"signal", use_signal, false},
    {"throw", step_throw, true},
    {NULL, NULL, false},
};
