// SPDX-License-Identifier: MIT
// The debug information of a stripped file, found in other files.
#pragma once

#include "symbol/elf_file.h"

enum { GP_DEBUG_PATH_SIZE = 4200 };

// Open the separate debug file of `elf`: by build-id below /usr/lib/debug and in the cache of debuginfod's client
// ($DEBUGINFOD_CACHE_PATH, ~/.cache/debuginfod_client), then by .gnu_debuglink in the file's directory, its .debug/ and
// /usr/lib/debug; all but the cache also below each directory that stands for the process' root (symfs.h). A file
// counts only when its build-id (or, where `elf` has none, the link's CRC) is right.
//   path: that the process has `elf` by, wherever it was found here.
//   found: opened on success. found_path: its path.
// Returns 0 or -ENOENT. Source: GDB manual, "Debugging Information in Separate Files".
int gp_debug_file_open(const gp_elf_t *elf, const char *path, gp_elf_t *found, char found_path[GP_DEBUG_PATH_SIZE]);

// The same by a build-id alone, for a module without its own file, or with one of another build.
int gp_debug_file_open_by_build_id(const uint8_t *build_id, size_t build_id_len, gp_elf_t *found,
                                   char found_path[GP_DEBUG_PATH_SIZE]);

// Open the supplementary file that dwz put what several debug files share into (.gnu_debugaltlink).
// A file counts only when its build-id is the one in the link.
//   path: of `elf`; a relative name in the link starts from its directory.
// Returns 0 or -ENOENT.
int gp_debug_supplement_open(const gp_elf_t *elf, const char *path, gp_elf_t *found);

// The build-id of that file. Returns its length; 0: there is no such link.
size_t gp_debug_supplement_id(const gp_elf_t *elf, uint8_t build_id[GP_BUILD_ID_MAX]);
