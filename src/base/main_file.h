// SPDX-License-Identifier: MIT
// Files of what is mapped: of the program that runs, and of addresses.
//
// The program is what the loader jumps to: where it was started as "ld.so PROGRAM", /proc/self/exe is the loader. A
// file that was removed or replaced keeps its path here; which build it was, the build-id tells.
//
// Signals: not safe. Threads: any. Cost: reads /proc/self/maps.
#pragma once

#include <stdint.h>

enum { GP_MAIN_FILE_SIZE = 4096 };

// The path of the program's file in `path`, "" where it is not known. Returns what the file can be opened by, whatever
// has become of its path: `path`, or another name of it.
const char *gp_main_file(char path[GP_MAIN_FILE_SIZE]);

// The path of the file that is mapped at `address`; "" = none.
void gp_mapped_file(uintptr_t address, char path[GP_MAIN_FILE_SIZE]);
