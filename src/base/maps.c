// SPDX-License-Identifier: MIT
#include "base/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/descriptors.h"

enum { TEXT_BYTES = 2048 }; // a line that is longer, by its path, is cut

// LO-HI rwxp OFFSET MAJOR:MINOR INODE PATH
static bool maps_parse(const char *line, gp_mapping_t *mapping)
{
    char *end;
    *mapping = (gp_mapping_t){.lo = strtoul(line, &end, 16)};
    mapping->hi = *end == '-' ? strtoul(end + 1, &end, 16) : 0;
    if (mapping->hi == 0 || strnlen(end, 6) < 6)
        return false;
    mapping->protection =
        (end[1] == 'r' ? PROT_READ : 0) | (end[2] == 'w' ? PROT_WRITE : 0) | (end[3] == 'x' ? PROT_EXEC : 0);
    for (int field = 0; field < 3 && end != NULL; field++)
        end = strchr(end + 1, ' ');
    mapping->inode = end != NULL ? strtoull(end, &end, 10) : 0;
    mapping->path = end != NULL ? end + strspn(end, " ") : "";
    mapping->is_heap = strcmp(mapping->path, "[heap]") == 0;
    return true;
}

int gp_maps_each(gp_maps_visit_t *visit, void *argument)
{
    char text[TEXT_BYTES + 1];
    size_t kept = 0;
    bool more = true, is_rest = false; // of a line that was cut
    // The process' own entry is empty once its first thread has ended.
    int fd = gp_descriptor_open(AT_FDCWD, "/proc/thread-self/maps", O_RDONLY, 0);
    if (fd < 0)
        return -errno;
    for (ssize_t got; more && (got = read(fd, text + kept, TEXT_BYTES - kept)) > 0;) {
        text[kept + (size_t)got] = '\0';
        char *line = text;
        for (char *next; more && (next = strchr(line, '\n')) != NULL; line = next + 1) {
            gp_mapping_t mapping;
            *next = '\0';
            more = is_rest || !maps_parse(line, &mapping) || visit(&mapping, argument);
            is_rest = false;
        }
        kept = strlen(line);
        memmove(text, line, kept);
        if (kept == TEXT_BYTES) {
            gp_mapping_t mapping;
            more = is_rest || !maps_parse(text, &mapping) || visit(&mapping, argument);
            is_rest = true;
            kept = 0;
        }
    }
    close(fd);
    return 0;
}

typedef struct lookup {
    uintptr_t address;
    gp_mapping_t *found;
    bool done;
} lookup_t;

static bool maps_holds(const gp_mapping_t *mapping, void *argument)
{
    lookup_t *lookup = argument;
    lookup->done = lookup->address >= mapping->lo && lookup->address < mapping->hi;
    if (lookup->done)
        *lookup->found = *mapping;
    return !lookup->done;
}

int gp_maps_find(uintptr_t address, gp_mapping_t *mapping)
{
    lookup_t lookup = {.address = address, .found = mapping};
    int error = gp_maps_each(maps_holds, &lookup);
    return error != 0 ? error : lookup.done ? 0 : -EFAULT;
}
