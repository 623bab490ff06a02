// SPDX-License-Identifier: MIT
// A comparison of measured numbers within a tolerance, and the only tests that may run again: where each failure of a
// program is one of these, the program starts again, three times at most. Every other failure is final.
//
// measured_stretch() says by how much what takes a moment may take longer now: measured.py's Noise.stretch.
//
// Where MEASURED_LOG names a file, each comparison and each one that is out of tolerance appends a line: tools/test
// counts the tests.
#ifndef MEASURED_H
#define MEASURED_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MEASURED_ATTEMPTS 3

static int measured_chances; // tests that a measured number ended

static inline void measured_note(const char *word, const char *file, const char *test)
{
    const char *path = getenv("MEASURED_LOG");
    FILE *log = path != NULL ? fopen(path, "a") : NULL;
    if (log == NULL)
        return;
    fprintf(log, "%s %s %s\n", word, file, test);
    fclose(log);
}

// Runnable tasks a processor now, from 1 to 5.
static inline double measured_stretch(void)
{
    FILE *file = fopen("/proc/loadavg", "r");
    int now = 1;
    if (file == NULL || fscanf(file, "%*s %*s %*s %d/", &now) != 1)
        now = 1;
    if (file != NULL)
        fclose(file);
    double stretch = (now - 1) / (double)sysconf(_SC_NPROCESSORS_ONLN);
    return stretch < 1 ? 1 : stretch > 5 ? 5 : stretch;
}

// Returns `fine`.
static inline int measured_compare(int fine, const char *what, const char *file, int line, const char *test)
{
    measured_note("measured", file, test);
    if (fine)
        return fine;
    fprintf(stderr, "%s:%d: out of tolerance: %s\n", file, line, what);
    measured_note("again", file, test);
    measured_chances++;
    return fine;
}

// In the program's own process, not in a child: ends the test where the numbers are off.
#define assert_measured(fine) assert_true(measured_compare(fine, #fine, __FILE__, __LINE__, __func__))

// failed: what cmocka_run_group_tests() returned. Returns main()'s status, or starts the program again.
static inline int measured_status(int failed, char **argv)
{
    const char *text = getenv("MEASURED_ATTEMPT");
    char next[2] = {text != NULL ? (char)(text[0] + 1) : '2', '\0'};
    if (failed == 0 || failed != measured_chances || next[0] > '0' + MEASURED_ATTEMPTS)
        return failed;
    fprintf(stderr, "measured again\n");
    setenv("MEASURED_ATTEMPT", next, 1);
    execv("/proc/self/exe", argv);
    return failed;
}

#endif
