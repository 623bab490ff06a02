// SPDX-License-Identifier: MIT
// The files of processes that may still run: what one has mapped can be read as long as it lives, also where its path
// leads to another file by now, or to none (a package that was upgraded, a memfd).
//
// Threads: any. Signals: not safe.
#pragma once

#include <stdint.h>

#include "symbol/debug_file.h"
#include "symbol/elf_module.h"

// Say that process `pid` may be asked. Of very many, some are.
void gp_live_image_process(uint32_t pid);

// Open the module's file as a process has it: the one with the module's build-id, whatever process it is. `path`: what
// it was opened by. Returns false where none has it, or may not be looked into.
bool gp_live_image_open(const gp_elf_module_t *module, gp_elf_t *elf, char path[GP_DEBUG_PATH_SIZE]);
