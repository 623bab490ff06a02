// A figure that chance or a busy machine has a part in: where one is off, the program is run again from the start,
// three times at most.
#ifndef MEASURED_H
#define MEASURED_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MEASURED_ATTEMPTS 3

// To be called in the program's own process, not in a child. Returns `fine`; does not return where another attempt is
// left.
static inline int measured_again(int fine, const char *what, const char *file, int line)
{
    const char *text = getenv("MEASURED_ATTEMPT");
    char next[2] = {text != NULL ? (char)(text[0] + 1) : '2', '\0'};
    if (fine || next[0] > '0' + MEASURED_ATTEMPTS)
        return fine;
    fprintf(stderr, "%s:%d: out of tolerance, measured again: %s\n", file, line, what);
    setenv("MEASURED_ATTEMPT", next, 1);
    execl("/proc/self/exe", file, (char *)NULL);
    return fine;
}

#define assert_measured(fine) assert_true(measured_again(fine, #fine, __FILE__, __LINE__))

#endif
