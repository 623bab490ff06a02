// SPDX-License-Identifier: MIT
#include "collect/namespaces.h"

#include "unwind/module.h"

bool gp_namespace_has(uintptr_t pc)
{
    gp_location_t where;
    return gp_module_locate(pc, &where);
}

bool gp_namespace_module(uintptr_t pc, struct dl_phdr_info *info)
{
    gp_location_t where;
    gp_image_t image;
    if (!gp_module_locate(pc, &where) || !gp_module_image(&where, &image))
        return false;
    *info = (struct dl_phdr_info){
        .dlpi_addr = image.bias, .dlpi_phdr = image.headers, .dlpi_phnum = (ElfW(Half))image.count};
    return true;
}
