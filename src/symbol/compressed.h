// SPDX-License-Identifier: MIT
// Compressed parts of ELF files: sections (zlib, zstd) and mini debug information (xz).
//
// Threads: any. Signals: not safe.
// Source: gABI, "Section Compression"; GDB manual, "Debugging information in a special section".
#pragma once

#include <stddef.h>
#include <stdint.h>

// Unpack the bytes of a section that has SHF_COMPRESSED. Returns malloc()ed bytes with a NUL behind
// them, *unpacked_len without it; NULL and errno (ENOEXEC: damaged, or packed in an unknown way).
void *gp_compressed_section(const void *bytes, size_t len, size_t *unpacked_len);

// The same for one whose name begins with ".zdebug", as was usual before: -gz=zlib-gnu.
// Source: binutils, bfd/compress.c: "ZLIB", the size as a big-endian number of 8 bytes, what zlib made.
void *gp_compressed_old_section(const void *bytes, size_t len, size_t *unpacked_len);

// Unpack an xz stream, of unknown size. Returns as above.
void *gp_compressed_xz(const void *bytes, size_t len, size_t *unpacked_len);
