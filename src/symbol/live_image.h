// SPDX-License-Identifier: MIT
// The files of processes that may still run: a mapped file can be read as long as its process lives, also where its
// path leads to another file by now, or to none (an upgraded package, a memfd).
//
// Threads: any. Signals: not safe.
#pragma once

#include <stdint.h>

#include "symbol/debug_file.h"
#include "symbol/elf_module.h"

// Say that process `pid` may be asked. A limited number of processes is.
void gp_live_image_process(uint32_t pid);

// Open the module's file as any process has it, by the module's build-id. `path`: by which it was opened. Returns false
// where no process has it, or none may be looked into.
bool gp_live_image_open(const gp_elf_module_t *module, gp_elf_t *elf, char path[GP_DEBUG_PATH_SIZE]);
