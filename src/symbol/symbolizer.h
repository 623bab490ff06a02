// SPDX-License-Identifier: MIT
// Names for addresses.
//
// Model: a symbolizer knows modules by (path, build-id), whatever process or capture they come from, and resolves an
// address within a module once: the answer is kept and stays valid, also when a file later changes, until the
// symbolizer is destroyed. An address that no symbol covers is "module+0x1234", never its neighbour's name.
//
// Order of calls: create -> module -> resolve... -> destroy.
// Threads: any number at once; one lock. Signals: not safe.
// Cost: ~100 ns for an address seen before; ~1 us for one in a table that is loaded; loading a table ~1-100 ms.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct gp_symbolizer gp_symbolizer_t;

typedef struct gp_symbol {
    const char *function; // demangled, or "module+0x1234"
    const char *file;     // source file that defines the function, else the module's path
    uint32_t line;        // of the address, where it is in `file`; 0 = unknown
    uint32_t first_line;  // at which the function is defined; 0 = unknown
    const char *module;   // path
    // The function that this one is inlined into, at the place of the call; NULL = none.
    const struct gp_symbol *outer;
} gp_symbol_t;

// Is it a frame that is not shown: greenprof's own, in the program's code (what <greenprof/coro.h> has there, or the
// way from it to the library); or the C library's way from a call into the kernel, where the call has the name?
static inline bool gp_symbol_is_hidden(const gp_symbol_t *symbol)
{
    static const char *const beginnings[] = {
        "prof_coro_switch",
        "__syscall_cancel", // glibc 2.41 and later: __syscall_cancel_arch in __internal_syscall_cancel in
                            // __syscall_cancel
        "__internal_syscall_cancel",
    };
    for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
        if (strncmp(symbol->function, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

// The function that has the code of a symbol, whatever is inlined there.
static inline const gp_symbol_t *gp_symbol_outermost(const gp_symbol_t *symbol)
{
    while (symbol != NULL && symbol->outer != NULL)
        symbol = symbol->outer;
    return symbol;
}

// A module number that says "no module": addresses are absolute.
#define GP_SYMBOLIZER_NO_MODULE UINT32_MAX

// Returns NULL and errno.
gp_symbolizer_t *gp_symbolizer_create(void);

// Make a module known.
//   build_id: uint8_t[20] where its length is 0: the stamp of the file instead (base/file_stamp.h); or NULL.
// Returns its number, the same one for the same (path, build-id); GP_SYMBOLIZER_NO_MODULE when memory is short.
uint32_t gp_symbolizer_module(gp_symbolizer_t *symbolizer, const char *path, size_t path_len, const uint8_t *build_id,
                              size_t build_id_len);

// Read a module's tables now, before names are asked for. Other threads may ask meanwhile, also for names in this
// module, and then read the tables themselves. Files of more than GP_SYMBOLIZER_PREPARED_MAX bytes are left for later.
enum { GP_SYMBOLIZER_PREPARED_MAX = 64 << 20 };
void gp_symbolizer_prepare(gp_symbolizer_t *symbolizer, uint32_t module);

// Are its tables read, so that asking for a name in it does not take long?
bool gp_symbolizer_is_prepared(gp_symbolizer_t *symbolizer, uint32_t module);

// Resolve an address as in the module's ELF file. Returns NULL when memory is short.
const gp_symbol_t *gp_symbolizer_resolve(gp_symbolizer_t *symbolizer, uint32_t module, uint64_t address);

// Say which addresses of a module are going to be asked about: where the program allows threads (base/helpers.h), they
// begin to read what is needed for these. Answers are the same as without.
//   addresses: uint64_t[count], ascending; not needed afterwards.
void gp_symbolizer_expect(gp_symbolizer_t *symbolizer, uint32_t module, const uint64_t *addresses, size_t count);

// Announce look-ups of at least so many addresses of a module, not known yet: the threads begin with data that all of
// them need.
enum { GP_SYMBOLIZER_MANY = 2000 };
void gp_symbolizer_begin(gp_symbolizer_t *symbolizer, uint32_t module);

// Resolve so many addresses, as one after the other.
//   addresses: uint64_t[count].
//   symbols: filled in; NULL where memory is short.
void gp_symbolizer_resolve_all(gp_symbolizer_t *symbolizer, uint32_t module, const uint64_t *addresses, size_t count,
                               const gp_symbol_t **symbols);

// Say where a just-in-time compiler may write the names of its code (perf-PID.map); code without a module has names
// from there. As many paths as there can be roots, and two more, count; where several name an address, the first given
// counts.
//   from_ns, to_ns: when the process lived (CLOCK_REALTIME); a file last changed before,
//   or made after, is another's. 0 and UINT64_MAX = whenever.
void gp_symbolizer_perf_map(gp_symbolizer_t *symbolizer, const char *path, uint64_t from_ns, uint64_t to_ns);

// The same for a process: /tmp/perf-PID.map below each directory that stands for its root (symfs.h), and here where
// none of them has it. Below such a directory it may be a copy that was made later.
//   pid: as the process itself has it, in its own name space of process ids.
void gp_symbolizer_process_perf_map(gp_symbolizer_t *symbolizer, uint32_t pid, uint64_t from_ns, uint64_t to_ns);

// The same for this very process.
void gp_symbolizer_own_perf_map(gp_symbolizer_t *symbolizer);

// Say that these files may have grown: they are looked at again before the next use.
void gp_symbolizer_refresh(gp_symbolizer_t *symbolizer);

// Why a module that was asked about has no names, where its file should have them, or not all; else an errno value.
enum {
    GP_NAMELESS_CHANGED = -1, // the file is another build
    GP_NAMELESS_UNSURE = -2,  // may be: the process did not tell the module's build-id
    GP_NAMELESS_SPLIT = -3,   // its functions have names; .dwo files with what is inlined into them are missing
    GP_NAMELESS_FOLDED =
        -4, // a linker made one of functions with identical code, or they are aliases: one name is shown
};

typedef struct gp_nameless {
    const char *path; // the module's
    int why;
    size_t count;        // of GP_NAMELESS_SPLIT: files; of GP_NAMELESS_FOLDED: functions
    const char *example; // where the first file should be; the name that the first function has
    const char *other;   // a second candidate
} gp_missing_symbols_t;

// Go through those modules.
//   next: 0 at first; updated. A module may come twice, the second time with GP_NAMELESS_FOLDED.
// Returns false when there are no more.
bool gp_symbolizer_nameless(gp_symbolizer_t *symbolizer, uint32_t *next, gp_missing_symbols_t *nameless);

// Kept answers grow with each new address, without end where code is compiled anew all the time: beyond this many
// bytes, or modules, an owner that goes on asking takes another symbolizer.
enum { GP_SYMBOLIZER_KEPT_MAX = 64 << 20, GP_SYMBOLIZER_MODULES_MAX = 4096 };
bool gp_symbolizer_is_crowded(gp_symbolizer_t *symbolizer);

void gp_symbolizer_destroy(gp_symbolizer_t *symbolizer);
