// SPDX-License-Identifier: MIT
#include "patch/near.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/maps.h"

enum { PAGE = 4096, PAGES_MAX = 16 };

#define REACH ((uintptr_t)0x7ff00000) // of a jump, less some room

static struct {
    unsigned char *memory;
    size_t used;
} pages[PAGES_MAX];

typedef struct gap {
    uintptr_t address, end; // the address to be near; where the mapping before ends
    uintptr_t page;         // the place that was found, 0 = none
} gap_t;

// The nearest place below is best: what lies above a program is where its heap grows.
static bool near_note_gap(const gp_mapping_t *mapping, void *argument)
{
    enum { LOWEST = 0x10000 };
    gap_t *gap = argument;
    uintptr_t lo = gap->end > LOWEST ? gap->end : LOWEST, page = mapping->lo - PAGE;
    gap->end = mapping->hi;
    bool room = mapping->lo > lo && mapping->lo - lo >= PAGE;
    if (mapping->lo <= gap->address) {
        if (room && gap->address - page < REACH)
            gap->page = page;
        return true;
    }
    if (gap->page != 0)
        return false;
    uintptr_t furthest = (gap->address + REACH) / PAGE * PAGE;
    if (room && lo <= furthest)
        gap->page = page < furthest ? page : furthest;
    return gap->page == 0 && mapping->hi < furthest;
}

static unsigned char *near_map_near(uintptr_t address)
{
    gap_t gap = {.address = address};
    if (gp_maps_each(near_note_gap, &gap) != 0 || gap.page == 0)
        return NULL;
    void *wanted = (void *)gap.page;
    void *memory = mmap(wanted, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory != wanted && memory != MAP_FAILED) { // a kernel that does not know the flag
        munmap(memory, PAGE);
        memory = MAP_FAILED;
    }
    return memory != MAP_FAILED ? memory : NULL;
}

unsigned char *gp_near_slot(uintptr_t address)
{
    for (int i = 0; i < PAGES_MAX; i++) {
        if (pages[i].memory == NULL)
            pages[i].memory = near_map_near(address);
        if (pages[i].memory == NULL)
            return NULL;
        uintptr_t memory = (uintptr_t)pages[i].memory;
        if ((memory > address ? memory - address : address - memory) < REACH &&
            pages[i].used + GP_NEAR_SLOT_BYTES <= PAGE) {
            unsigned char *slot = pages[i].memory + pages[i].used;
            pages[i].used += GP_NEAR_SLOT_BYTES;
            return gp_near_open(slot) == 0 ? slot : NULL;
        }
    }
    return NULL;
}

static int near_protect(unsigned char *slot, int protection)
{
    void *page = (void *)((uintptr_t)slot / PAGE * PAGE);
    return mprotect(page, PAGE, protection) == 0 ? 0 : -errno;
}

int gp_near_seal(unsigned char *slot)
{
    return near_protect(slot, PROT_READ | PROT_EXEC);
}

int gp_near_open(unsigned char *slot)
{
    return near_protect(slot, PROT_READ | PROT_WRITE);
}
