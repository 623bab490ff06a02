// SPDX-License-Identifier: MIT
// The program that the features start: works, and ends with a status by its argument.
#include <stdlib.h>

#include "features.h"

int main(int argc, char **argv)
{
    return argc == 2 ? (int)(features_work((uint64_t)atoi(argv[1]), 500) & 63) : 127;
}
