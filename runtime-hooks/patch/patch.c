// SPDX-License-Identifier: MIT
#include "patch/patch.h"
#include "base/maps.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "patch/near.h"

enum {
    PAGE = 4096,
    ISLAND_BYTES = 16, // of a slot: jmp *stub, then what was moved
};

bool gp_patch_is_alone(void)
{
    struct stat tasks;
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3; // ".", "..", and one
}

static void patch_write_island(unsigned char *slot, const void *stub)
{
    static const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0}; // jmp *(%rip)
    memcpy(slot, jump, sizeof(jump));
    memcpy(slot + sizeof(jump), &stub, sizeof(stub));
}

int gp_patch_prepare(gp_patch_t *patch, uintptr_t function, size_t size, const void *stub)
{
    gp_prologue_t moved;
    unsigned char *slot = gp_near_slot(function);
    if (slot == NULL)
        return -ENOMEM;
    uintptr_t there = (uintptr_t)slot + ISLAND_BYTES;
    int error = gp_prologue_move((const unsigned char *)function, size, function, there, &moved);
    if (error == 0)
        error = gp_prologue_jump(patch->jump, function, (uintptr_t)slot);
    if (error == 0) {
        patch_write_island(slot, stub);
        memcpy(slot + ISLAND_BYTES, moved.code, moved.bytes);
    }
    int sealed = gp_near_seal(slot);
    patch->function = function;
    patch->original = slot + ISLAND_BYTES;
    return error != 0 ? error : sealed;
}

// A copy of pages as they are, executable: for the case that they cannot be made so again.
static void *patch_copy_pages(const void *pages, size_t bytes)
{
    void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return NULL;
    memcpy(copy, pages, bytes);
    if (mprotect(copy, bytes, PROT_READ | PROT_EXEC) == 0)
        return copy;
    munmap(copy, bytes);
    return NULL;
}

int gp_patch_apply(const gp_patch_t *patch)
{
    gp_mapping_t mapping;
    uintptr_t lo = patch->function / PAGE * PAGE;
    size_t bytes = (patch->function + GP_PROLOGUE_JUMP_BYTES - 1) / PAGE * PAGE + PAGE - lo;
    void *pages = (void *)lo;
    int error = gp_maps_find(patch->function, &mapping);
    if (error != 0 || lo + bytes > mapping.hi)
        return error != 0 ? error : -EFAULT;
    void *copy = patch_copy_pages(pages, bytes);
    if (copy == NULL)
        return -ENOMEM;
    if (mprotect(pages, bytes, PROT_READ | PROT_WRITE) != 0) {
        error = -errno;
    } else {
        memcpy((void *)patch->function, patch->jump, sizeof(patch->jump));
        if (mprotect(pages, bytes, mapping.protection) != 0) { // a policy forbids code that was written
            error = -errno;
            if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pages) == pages)
                return error;
        }
    }
    munmap(copy, bytes);
    return error;
}
