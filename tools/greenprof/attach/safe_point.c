// SPDX-License-Identifier: MIT
#include "safe_point.h"

#include <errno.h>
#include <libunwind-ptrace.h>
#include <linux/rseq.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#define CORE_NAME "libgreenprof" // has locks of its own

typedef struct gp_unsafe_range {
    uint64_t lo, hi;
    enum gp_lock_guess lock;
} gp_unsafe_range_t;

enum { FRAMES_MAX = 1024, UNKNOWN_BYTES = 64, GLANCE_BYTES = 2048, PIECE_BYTES = 16384 };

// Functions of any module that hold an allocator's locks. C++'s own are there for allocators without malloc().
static const char *const allocators[] = {
    "malloc",
    "calloc",
    "realloc",
    "free",
    "memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "reallocarray",
    "malloc_trim",
    "malloc_info",
    "mallinfo2",
    "mallocx",
    "rallocx",
    "sdallocx",
    "dallocx",
    "malloc_usable_size",
    "posix_memalign",
    "_Znwm",
    "_Znam",
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
    "mi_malloc",
    "mi_free",
    "mi_realloc",
    "_ZnwmSt11align_val_t",
    "_ZdlPvSt11align_val_t",
};

// Functions of the C library that hold a lock of pthread_create(), or are in a state which it must not meet.
static const char *const holders[] = {
    "dl_iterate_phdr",
    "dlopen",
    "dlclose",
    "dlsym",
    "dlvsym",
    "dlmopen",
    "dladdr",
    "dladdr1",
    "dlinfo",
    "fork",
    "_Fork",
    "vfork",
    "exit",
    "_exit",
    "quick_exit",
    "at_quick_exit",
    "on_exit",
    "__cxa_atexit",
    "__cxa_finalize",
    "abort",
    "__register_atfork",
    "system",
    "popen",
    "posix_spawn",
    "posix_spawnp",
    "pthread_create",
    "pthread_exit",
    "__nptl_deallocate_tsd",
    "pthread_getattr_np",
    "pthread_setattr_default_np",
    "setuid",
    "setgid",
    "seteuid",
    "setegid",
    "setreuid",
    "setregid",
    "setresuid",
    "setresgid",
    "setgroups",
};

// The first function of a greenlet's own part of the thread's stack. Above it other greenlets, switched away from, have
// left their frames: where they are is no matter of locks.
#define GREENLET_MODULE "_greenlet"
static const char *const greenlet_begin = "_ZN8greenlet12UserGreenlet13g_initialstubEPv";

// A piece of the memory of the thread that is walked: it is stopped, and does not run on meanwhile. Word by word
// (PTRACE_PEEKDATA), a deep stack takes a tenth of a second.
static struct {
    pid_t tid;
    uint64_t at;
    size_t bytes; // 0 = none
    unsigned char memory[PIECE_BYTES];
} piece;

static bool safe_point_read_piece(uint64_t address)
{
    struct iovec mine = {piece.memory, PIECE_BYTES}, theirs;
    piece.at = address & ~(uint64_t)4095;
    theirs = (struct iovec){(void *)(uintptr_t)piece.at, PIECE_BYTES};
    ssize_t got = process_vm_readv(piece.tid, &mine, 1, &theirs, 1, 0);
    piece.bytes = got > 0 ? (size_t)got : 0;
    return address - piece.at + sizeof(unw_word_t) <= piece.bytes;
}

static int safe_point_access_memory(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write,
                                    void *thread)
{
    bool is_there = address >= piece.at && address - piece.at + sizeof(*value) <= piece.bytes;
    if (write || (!is_there && !safe_point_read_piece(address)))
        return _UPT_access_mem(space, address, value, write, thread);
    memcpy(value, piece.memory + (address - piece.at), sizeof(*value));
    return 0;
}

static int safe_point_add_range(gp_safe_places_t *places, uint64_t lo, uint64_t hi, enum gp_lock_guess lock)
{
    gp_unsafe_range_t *grown = realloc(places->unsafe, (places->count + 1) * sizeof(*grown));
    if (grown == NULL)
        return -ENOMEM;
    places->unsafe = grown;
    grown[places->count++] = (gp_unsafe_range_t){lo, hi, lock};
    return 0;
}

static int safe_point_add_functions(gp_safe_places_t *places, const gp_target_modules_t *modules,
                                    const gp_target_module_t *module, const char *const *names, size_t count,
                                    enum gp_lock_guess lock)
{
    gp_target_function_t functions[sizeof(holders) / sizeof(holders[0])];
    int error = gp_target_functions(modules, module, names, count, functions);
    for (size_t i = 0; i < count && error == 0; i++)
        if (functions[i].address != 0)
            error = safe_point_add_range(
                places, functions[i].address,
                functions[i].address + (functions[i].size > 0 ? functions[i].size : UNKNOWN_BYTES), lock);
    return error;
}

// Note where greenlets begin. In a greenlet that does not tell, a thread is borrowed only where it waits.
static void safe_point_add_begins(gp_safe_places_t *places, const gp_target_modules_t *modules,
                                  const gp_target_module_t *module)
{
    gp_target_function_t function;
    if (gp_target_functions(modules, module, &greenlet_begin, 1, &function) == 0 && function.address != 0) {
        places->begin_lo = function.address;
        places->begin_hi = function.address + function.size;
    }
}

static bool safe_point_is_named(const gp_target_module_t *module, const char *beginning)
{
    return strncmp(strrchr(module->path, '/') + 1, beginning, strlen(beginning)) == 0;
}

static void safe_point_measure(gp_safe_places_t *places)
{
    places->lo = UINT64_MAX;
    places->hi = 0;
    for (size_t i = 0; i < places->count; i++) {
        places->lo = places->unsafe[i].lo < places->lo ? places->unsafe[i].lo : places->lo;
        places->hi = places->unsafe[i].hi > places->hi ? places->unsafe[i].hi : places->hi;
    }
}

// By its functions, and with room: a library that is newer than this build (1.8) has more of them, takes a copy of so
// many, and the loader would tell the user of another size of _UPT_accessors.
static unw_addr_space_t safe_point_make_space(void)
{
    struct {
        unw_accessors_t known;
        void *later[8];
    } accessors = {
        .known =
            {
                .find_proc_info = _UPT_find_proc_info,
                .put_unwind_info = _UPT_put_unwind_info,
                .get_dyn_info_list_addr = _UPT_get_dyn_info_list_addr,
                .access_mem = safe_point_access_memory,
                .access_reg = _UPT_access_reg,
                .access_fpreg = _UPT_access_fpreg,
                .resume = _UPT_resume,
                .get_proc_name = _UPT_get_proc_name,
            },
    };
    return unw_create_addr_space(&accessors.known, 0);
}

int gp_safe_places_read(gp_safe_places_t *places, const gp_target_modules_t *modules)
{
    int error = 0;
    *places = (gp_safe_places_t){.space = safe_point_make_space()};
    for (size_t i = 0; i < modules->count && error == 0; i++) {
        const gp_target_module_t *module = &modules->items[i];
        bool is_libc = safe_point_is_named(module, "libc.so.6");
        bool is_loader = safe_point_is_named(module, "ld-");
        if (is_loader || safe_point_is_named(module, CORE_NAME)) {
            error = safe_point_add_range(places, module->code_lo, module->code_hi,
                                         is_loader ? GP_LOCK_LONG : GP_LOCK_BRIEF);
            continue;
        }
        if (safe_point_is_named(module, GREENLET_MODULE))
            safe_point_add_begins(places, modules, module);
        int unread = safe_point_add_functions(places, modules, module, allocators,
                                              sizeof(allocators) / sizeof(allocators[0]), GP_LOCK_BRIEF);
        if (is_libc)
            error = unread != 0 ? unread
                                : safe_point_add_functions(places, modules, module, holders,
                                                           sizeof(holders) / sizeof(holders[0]), GP_LOCK_LONG);
        // Other files, no ELF files or gone from the disk, are not known: data mostly.
    }
    safe_point_measure(places);
    return places->space != NULL ? error : -ENOMEM;
}

void gp_safe_places_free(gp_safe_places_t *places)
{
    free(places->unsafe);
    if (places->space != NULL)
        unw_destroy_addr_space(places->space);
    *places = (gp_safe_places_t){0};
}

static bool safe_point_is_waiting(long call)
{
    static const long calls[] = {
        SYS_poll,          SYS_ppoll,         SYS_select,          SYS_pselect6, SYS_epoll_wait,
        SYS_epoll_pwait,   SYS_epoll_pwait2,  SYS_nanosleep,       SYS_accept,   SYS_accept4,
        SYS_recvfrom,      SYS_recvmsg,       SYS_clock_nanosleep, SYS_recvmmsg, SYS_wait4,
        SYS_waitid,        SYS_pause,         SYS_connect,         SYS_sendto,   SYS_rt_sigtimedwait,
        SYS_rt_sigsuspend, SYS_sendmsg,       SYS_semop,           SYS_msgrcv,   SYS_semtimedop,
        SYS_io_getevents,  SYS_io_pgetevents, SYS_io_uring_enter,
    };
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (call == calls[i])
            return true;
    return false;
}

static const gp_unsafe_range_t *safe_point_range_of(const gp_safe_places_t *places, uint64_t pc)
{
    if (pc < places->lo || pc >= places->hi)
        return NULL;
    for (size_t i = 0; i < places->count; i++)
        if (pc >= places->unsafe[i].lo && pc < places->unsafe[i].hi)
            return &places->unsafe[i];
    return NULL;
}

// Returns 0 at the stack's end, 1 where the walk did not come there, -1 where a frame speaks against the place.
static int safe_point_walk(const gp_safe_places_t *places, void *thread)
{
    unw_cursor_t cursor;
    unw_word_t pc;
    if (unw_init_remote(&cursor, places->space, thread) != 0)
        return 1;
    for (int i = 0; i < FRAMES_MAX; i++) {
        if (unw_get_reg(&cursor, UNW_REG_IP, &pc) != 0)
            return 1;
        // A return address may be that behind a function's last call.
        if (safe_point_range_of(places, i > 0 ? pc - 1 : pc) != NULL || unw_is_signal_frame(&cursor) > 0)
            return -1;
        if (i > 0 && pc > places->begin_lo && pc <= places->begin_hi)
            return 0;
        int step = unw_step(&cursor);
        if (step <= 0)
            return step == 0 ? 0 : 1;
    }
    return 1;
}

static bool safe_point_read_memory(pid_t tid, uint64_t address, void *bytes, size_t size)
{
    struct iovec mine = {bytes, size}, theirs = {(void *)(uintptr_t)address, size};
    return address != 0 && process_vm_readv(tid, &mine, 1, &theirs, 1, 0) == (ssize_t)size;
}

// A thread interrupted in a restartable sequence begins it anew: made to make calls meanwhile, it would go on in the
// middle. There is none within a system call. Where the kernel cannot say, there may be one anywhere else (before Linux
// 5.13). Source: rseq(2), ptrace(2) PTRACE_GET_RSEQ_CONFIGURATION.
static bool safe_point_is_in_sequence(pid_t tid, long call)
{
    struct __ptrace_rseq_configuration configuration = {0};
    struct user_regs_struct registers;
    struct rseq_cs sequence;
    uint64_t at = 0;
    if (call >= 0)
        return false;
    if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof(configuration), &configuration) < 0)
        return errno == EIO;
    uint64_t area = configuration.rseq_abi_pointer;
    if (area == 0 || !safe_point_read_memory(tid, area + offsetof(struct rseq, rseq_cs), &at, sizeof(at)) || at == 0)
        return false;
    return !safe_point_read_memory(tid, at, &sequence, sizeof(sequence)) ||
           ptrace(PTRACE_GETREGS, tid, 0, &registers) != 0 ||
           registers.rip - sequence.start_ip < sequence.post_commit_offset;
}

bool gp_is_safe_place(const gp_safe_places_t *places, pid_t tid, long call)
{
    void *thread = safe_point_is_in_sequence(tid, call) ? NULL : _UPT_create(tid);
    if (thread == NULL)
        return false;
    piece.tid = tid;
    piece.bytes = 0;
    int result = safe_point_walk(places, thread);
    _UPT_destroy(thread);
    return result == 0 || (result > 0 && safe_point_is_waiting(call));
}

static enum gp_lock_guess safe_point_guess(const gp_safe_places_t *places, uint64_t pc)
{
    const gp_unsafe_range_t *range = safe_point_range_of(places, pc);
    return range == NULL ? GP_LOCK_NONE : range->lock;
}

enum gp_lock_guess gp_may_hold_lock(const gp_safe_places_t *places, pid_t tid)
{
    struct user_regs_struct registers;
    uint64_t words[GLANCE_BYTES / sizeof(uint64_t)];
    if (ptrace(PTRACE_GETREGS, tid, 0, &registers) != 0)
        return GP_LOCK_LONG;
    struct iovec mine = {words, sizeof(words)}, theirs = {(void *)(uintptr_t)registers.rsp, sizeof(words)};
    ssize_t got = process_vm_readv(tid, &mine, 1, &theirs, 1, 0);
    enum gp_lock_guess worst = got > 0 ? safe_point_guess(places, registers.rip) : GP_LOCK_LONG;
    for (size_t i = 0; got > 0 && i < (size_t)got / sizeof(words[0]) && worst != GP_LOCK_LONG; i++) {
        enum gp_lock_guess next = safe_point_guess(places, words[i]);
        worst = next > worst ? next : worst;
    }
    return worst;
}
