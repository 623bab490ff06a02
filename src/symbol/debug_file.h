// Where the debug information of a stripped file is.
#ifndef GP_SYMBOL_DEBUG_FILE_H
#define GP_SYMBOL_DEBUG_FILE_H

#include "symbol/elf_file.h"

enum { GP_DEBUG_PATH_SIZE = 4200 };

// Open the separate debug file that belongs to `elf`: by build-id below /usr/lib/debug, then by
// .gnu_debuglink in the file's directory, its .debug/ and /usr/lib/debug. A file counts only when
// its build-id (or, where `elf` has none, the link's CRC) is right.
//   path: of `elf`.
//   found: opened on success. found_path: its path.
// Returns 0 or -ENOENT. Source: GDB manual, "Debugging Information in Separate Files".
int gp_debug_file_open(const gp_elf_t *elf, const char *path, gp_elf_t *found,
                       char found_path[GP_DEBUG_PATH_SIZE]);

#endif
