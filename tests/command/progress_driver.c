// SPDX-License-Identifier: MIT
// usage: progress_driver FILE OFFSET: shows progress as if FILE had been read up to OFFSET; each line of standard input
// is the next step: "m" a message meanwhile, "n" a step of unknown length, "e" the end.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "progress.h"

int main(int argc, char **argv)
{
    char line[16];
    if (argc != 3)
        return 2;
    int fd = open(argv[1], O_RDONLY);
    if (fd < 0 || lseek(fd, atol(argv[2]), SEEK_SET) < 0)
        return 1;
    gp_progress_begin("reading", argv[1], fd);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (line[0] == 'm') {
            gp_progress_clear();
            fprintf(stderr, "a message\n");
        } else if (line[0] == 'n') {
            gp_progress_begin("writing", "out\033[2J", -1);
        } else {
            gp_progress_end();
            fprintf(stderr, "the end\n");
        }
    }
    gp_progress_end();
    return 0;
}
