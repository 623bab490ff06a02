// SPDX-License-Identifier: MIT
// Modules of a statically linked program, for the stack walker: the program and the kernel's vDSO. Its C library has a
// lookup that knows neither. Runs in the signal handler.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>

#ifdef DLFO_EH_SEGMENT_TYPE

int gp_static_dl_find_object(const void *pc, struct dl_find_object *found);

extern const char __ehdr_start[] __attribute__((visibility("hidden"))); // made by the linker

static bool find_object_is_in(const ElfW(Ehdr) * head, uintptr_t pc, struct dl_find_object *found)
{
    uintptr_t lo = (uintptr_t)head, hi = lo, first = UINTPTR_MAX, rows = 0;
    const ElfW(Phdr) *segments = (const ElfW(Phdr) *)(lo + head->e_phoff);
    for (size_t i = 0; i < head->e_phnum; i++) {
        const ElfW(Phdr) *segment = &segments[i];
        if (segment->p_type == PT_LOAD && first == UINTPTR_MAX)
            first = segment->p_vaddr;
        if (segment->p_type == PT_LOAD)
            hi = lo + (segment->p_vaddr - first) + segment->p_memsz;
        else if (segment->p_type == PT_GNU_EH_FRAME)
            rows = segment->p_vaddr;
    }
    if (pc < lo || pc >= hi)
        return false;
    found->dlfo_map_start = (void *)(uintptr_t)lo;
    found->dlfo_map_end = (void *)hi;
    found->dlfo_link_map = (struct link_map *)(uintptr_t)lo;
    found->dlfo_eh_frame = rows != 0 ? (void *)(lo + (rows - first)) : NULL;
    return true;
}

int gp_static_dl_find_object(const void *pc, struct dl_find_object *found)
{
    const ElfW(Ehdr) *vdso = (const ElfW(Ehdr) *)getauxval(AT_SYSINFO_EHDR);
    if (find_object_is_in((const ElfW(Ehdr) *)__ehdr_start, (uintptr_t)pc, found))
        return 0;
    return vdso != NULL && find_object_is_in(vdso, (uintptr_t)pc, found) ? 0 : -1;
}

#endif
