// SPDX-License-Identifier: MIT
#include "interpreter/redirect.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arch.h"

typedef struct module {
    uintptr_t inside; // an address that it holds
    uintptr_t base;
    const ElfW(Dyn) * dynamic;
    uintptr_t relro_lo, relro_hi; // made read-only by the dynamic linker
} module_t;

static int redirect_find_module(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    module_t *module = argument, found = {.inside = module->inside, .base = info->dlpi_addr};
    bool holds = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t lo = info->dlpi_addr + part->p_vaddr, hi = lo + part->p_memsz;
        if (part->p_type == PT_LOAD) {
            holds |= module->inside >= lo && module->inside < hi;
        } else if (part->p_type == PT_DYNAMIC) {
            found.dynamic = (const void *)lo; // NOLINT(performance-no-int-to-ptr)
        } else if (part->p_type == PT_GNU_RELRO) {
            found.relro_lo = lo;
            found.relro_hi = hi;
        }
    }
    if (holds)
        *module = found;
    return holds;
}

// A pointer of the dynamic section; the dynamic linker has added the module's base to it, but for some modules.
static const void *redirect_pointer(const module_t *module, ElfW(Sxword) tag)
{
    for (const ElfW(Dyn) *entry = module->dynamic; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == tag)
            return (const void *)(entry->d_un.d_ptr < module->base ? module->base + entry->d_un.d_ptr
                                                                   : entry->d_un.d_ptr);
    }
    return NULL;
}

static size_t redirect_number(const module_t *module, ElfW(Sxword) tag)
{
    for (const ElfW(Dyn) *entry = module->dynamic; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag)
            return entry->d_un.d_val;
    return 0;
}

static bool redirect_put(const module_t *module, uintptr_t slot, void *to)
{
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE), page = slot & ~(page_bytes - 1);
    bool sealed = slot >= module->relro_lo && page + page_bytes <= module->relro_hi;
    // NOLINTBEGIN(performance-no-int-to-ptr)
    if (sealed && mprotect((void *)page, page_bytes, PROT_READ | PROT_WRITE) != 0)
        return false;
    __atomic_store_n((void **)slot, to, __ATOMIC_RELEASE);
    if (sealed)
        mprotect((void *)page, page_bytes, PROT_READ);
    // NOLINTEND(performance-no-int-to-ptr)
    return true;
}

static size_t redirect_in(const module_t *module, const ElfW(Rela) * relocations, size_t bytes,
                          const gp_redirection_t *list, size_t count)
{
    const ElfW(Sym) *symbols = redirect_pointer(module, DT_SYMTAB);
    const char *names = redirect_pointer(module, DT_STRTAB);
    size_t done = 0;
    if (relocations == NULL || symbols == NULL || names == NULL)
        return 0;
    for (size_t i = 0; i < bytes / sizeof(*relocations); i++) {
        uint64_t type = ELF64_R_TYPE(relocations[i].r_info);
        if (type != GP_ARCH_JUMP_SLOT && type != GP_ARCH_GLOBAL_SLOT)
            continue;
        const char *name = names + symbols[ELF64_R_SYM(relocations[i].r_info)].st_name;
        for (size_t j = 0; j < count; j++)
            if (strcmp(name, list[j].name) == 0)
                done += redirect_put(module, module->base + relocations[i].r_offset, list[j].to);
    }
    return done;
}

size_t gp_redirect(const void *inside, const gp_redirection_t *list, size_t count)
{
    module_t module = {.inside = (uintptr_t)inside};
    dl_iterate_phdr(redirect_find_module, &module);
    if (module.dynamic == NULL)
        return 0;
    return redirect_in(&module, redirect_pointer(&module, DT_JMPREL), redirect_number(&module, DT_PLTRELSZ), list,
                       count) +
           redirect_in(&module, redirect_pointer(&module, DT_RELA), redirect_number(&module, DT_RELASZ), list, count);
}
