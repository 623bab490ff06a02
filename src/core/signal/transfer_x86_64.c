// SPDX-License-Identifier: MIT
#include "signal/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/peek.h"
#include "signal/call_number.h"
#include "unwind/stack_read.h"

enum {
    RED_ZONE_BYTES = 128,
    ROOM_BYTES = 1024, // of the program's stack: a gp_transfer_t, and what a signal's handler on it finds usual
    SEGMENTS_MAX = 1024,
    SEGMENTS_PEEKED = 8,
    MESSAGE_BYTES = sizeof(struct mmsghdr),
    EVENT_BYTES = 32,       // struct io_event
    NO_WAIT = 8,            // RWF_NOWAIT
    BYTES_MAX = 0x7ffff000, // of one call. Source: MAX_RW_COUNT of the kernel
    FRAMES_BYTES = 1 << 16, // no handler's stack reaches further
};

_Static_assert(offsetof(gp_transfer_t, part) == 8 && offsetof(gp_transfer_t, resume) == 16 &&
                   offsetof(gp_transfer_t, sp) == 24 && offsetof(gp_transfer_t, flags) == 32 &&
                   offsetof(gp_transfer_t, number) == 40 && offsetof(gp_transfer_t, first) == 48 &&
                   offsetof(gp_transfer_t, next) == 104,
               "as transfer_x86_64.S has it");

enum shape { BUFFER, SEGMENTS, HEADER, ITEMS };

enum way { IN, OUT, COPY, RANDOM };

// How the calls that move data take it: which arguments are the address, and how much there is. NONE: it is not there.
enum { NONE = 6 };
typedef struct form {
    uint16_t number;
    uint8_t shape, way;
    uint8_t address, length;
    uint8_t least;      // ITEMS: how many are waited for, if not all
    uint8_t item_bytes; // ITEMS: of each
    uint8_t flags;      // of the socket's call, or RWF_NOWAIT
    uint8_t single;     // SEGMENTS, HEADER: the call for a part of one
} form_t;

static const form_t forms[] = {
    {SYS_read, BUFFER, IN, 1, 2, NONE, 1, NONE, 0},
    {SYS_pread64, BUFFER, IN, 1, 2, NONE, 1, NONE, 0},
    {SYS_write, BUFFER, OUT, 1, 2, NONE, 1, NONE, 0},
    {SYS_pwrite64, BUFFER, OUT, 1, 2, NONE, 1, NONE, 0},
    {SYS_recvfrom, BUFFER, IN, 1, 2, NONE, 1, 3, 0},
    {SYS_sendto, BUFFER, OUT, 1, 2, NONE, 1, 3, 0},
    {SYS_getrandom, BUFFER, RANDOM, 0, 1, NONE, 1, NONE, 0},
    {SYS_sendfile, BUFFER, COPY, NONE, 3, NONE, 1, NONE, 0},
    {SYS_copy_file_range, BUFFER, COPY, NONE, 4, NONE, 1, NONE, 0},
    {SYS_readv, SEGMENTS, IN, 1, 2, NONE, 1, NONE, SYS_read},
    {SYS_preadv, SEGMENTS, IN, 1, 2, NONE, 1, NONE, SYS_read},
    {327, SEGMENTS, IN, 1, 2, NONE, 1, 5, SYS_read}, // preadv2
    {SYS_writev, SEGMENTS, OUT, 1, 2, NONE, 1, NONE, SYS_write},
    {SYS_pwritev, SEGMENTS, OUT, 1, 2, NONE, 1, NONE, SYS_write},
    {328, SEGMENTS, OUT, 1, 2, NONE, 1, 5, SYS_write}, // pwritev2
    {SYS_recvmsg, HEADER, IN, 1, NONE, NONE, 1, 2, SYS_recvfrom},
    {SYS_sendmsg, HEADER, OUT, 1, NONE, NONE, 1, 2, SYS_sendto},
    {SYS_recvmmsg, ITEMS, IN, 1, 2, NONE, MESSAGE_BYTES, 3, 0},
    {SYS_sendmmsg, ITEMS, OUT, 1, 2, NONE, MESSAGE_BYTES, 3, 0},
    {SYS_io_getevents, ITEMS, IN, 3, 2, 1, EVENT_BYTES, NONE, 0},
    {SYS_io_pgetevents, ITEMS, IN, 3, 2, 1, EVENT_BYTES, NONE, 0},
};

static const form_t *transfer_form_of(uint64_t number)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (forms[i].number == number)
            return &forms[i];
    return NULL;
}

// The segments of a call.
typedef struct segments {
    uintptr_t at;
    size_t count;
} segments_t;

static bool transfer_read_segments(const form_t *form, const gp_transfer_call_t *call, struct msghdr *header,
                                   segments_t *out)
{
    *out = (segments_t){call->arguments[1], call->arguments[2]};
    if (form->shape == SEGMENTS)
        return out->count <= SEGMENTS_MAX;
    if (!gp_peek(call->arguments[1], header, sizeof(*header)))
        return false;
    *out = (segments_t){(uintptr_t)header->msg_iov, (size_t)header->msg_iovlen};
    return out->count <= SEGMENTS_MAX;
}

// The segment that byte `done` is in, and the sum of all. `*which` is the number of segments where the byte is behind
// the last.
static bool transfer_find_segment(const segments_t *segments, uint64_t done, size_t *which, struct iovec *rest,
                                  uint64_t *sum)
{
    struct iovec some[SEGMENTS_PEEKED];
    *sum = 0;
    *which = segments->count;
    for (size_t i = 0; i < segments->count; i++) {
        size_t left = segments->count - i, in = i % SEGMENTS_PEEKED;
        if (in == 0 && !gp_peek(segments->at + i * sizeof(some[0]), some,
                                (left < SEGMENTS_PEEKED ? left : SEGMENTS_PEEKED) * sizeof(some[0])))
            return false;
        if (*which == segments->count && done < *sum + some[in].iov_len) {
            *which = i;
            rest->iov_base = (char *)some[in].iov_base + (done - *sum);
            rest->iov_len = some[in].iov_len - (done - *sum);
        }
        *sum += some[in].iov_len;
    }
    return true;
}

// Bytes that the call asked for; 0 = not known.
static uint64_t transfer_asked_of(const form_t *form, const gp_transfer_call_t *call)
{
    struct msghdr header;
    struct iovec rest;
    segments_t segments;
    uint64_t sum;
    size_t which;
    if (form->shape == ITEMS)
        return (uint32_t)call->arguments[form->least != NONE ? form->least : form->length];
    if (form->shape == BUFFER)
        return call->arguments[form->length] < BYTES_MAX ? call->arguments[form->length] : BYTES_MAX;
    bool is_known = transfer_read_segments(form, call, &header, &segments) &&
                    transfer_find_segment(&segments, 0, &which, &rest, &sum);
    return is_known ? sum : 0;
}

// The rest, all but `done`: of segments, first what is left of one, then the others. Returns false where that is not to
// be had.
static bool transfer_plan_segments(const form_t *form, gp_transfer_t *transfer, gp_transfer_call_t *now)
{
    const gp_transfer_call_t *first = &transfer->first;
    struct iovec rest = {0};
    segments_t segments;
    uint64_t sum;
    size_t which;
    if (!transfer_read_segments(form, first, &transfer->header, &segments) ||
        !transfer_find_segment(&segments, transfer->done, &which, &rest, &sum) || which == segments.count)
        return false;
    *now = (gp_transfer_call_t){form->single, {first->arguments[0], (uintptr_t)rest.iov_base, rest.iov_len}};
    transfer->part = which + 1 < segments.count ? rest.iov_len : 0;
    transfer->next = *first;
    uintptr_t others = segments.at + (which + 1) * sizeof(rest);
    if (form->shape == HEADER) {
        now->arguments[3] = first->arguments[form->flags];
        transfer->header.msg_iov = (struct iovec *)others; // NOLINT(performance-no-int-to-ptr)
        transfer->header.msg_iovlen = (__typeof__(transfer->header.msg_iovlen))(segments.count - which - 1);
        transfer->header.msg_control = NULL;
        transfer->header.msg_controllen = 0;
        transfer->next.arguments[1] = (uintptr_t)&transfer->header;
    } else {
        transfer->next.arguments[1] = others;
        transfer->next.arguments[2] = segments.count - which - 1;
    }
    return true;
}

static bool transfer_plan(const form_t *form, gp_transfer_t *transfer, gp_transfer_call_t *now)
{
    if (form->shape == SEGMENTS || form->shape == HEADER)
        return transfer_plan_segments(form, transfer, now);
    *now = transfer->first;
    transfer->part = 0;
    if (form->address != NONE)
        now->arguments[form->address] += transfer->done * form->item_bytes;
    if (form->least != NONE)
        now->arguments[form->least] -= transfer->done;
    if (form->shape == BUFFER)
        now->arguments[form->length] = transfer_asked_of(form, &transfer->first);
    now->arguments[form->length] -= transfer->done;
    return true;
}

// /dev/zero, random and the like, which look for signals after each page. Source: drivers/char/mem.c, random.c.
static bool transfer_is_memory_device(const struct stat *file)
{
    enum { MEMORY = 1, MISC = 10, MEM = 1, ZERO = 5, FULL = 7, URANDOM = 9, HARDWARE_RANDOM = 183 };
    unsigned device = major(file->st_rdev), which = minor(file->st_rdev);
    if (!S_ISCHR(file->st_mode))
        return false;
    return device == MEMORY ? which == MEM || which == ZERO || (which >= FULL && which <= URANDOM)
                            : device == MISC && which == HARDWARE_RANDOM;
}

static bool transfer_is_stream(int fd)
{
    int type = 0;
    socklen_t size = sizeof(type);
    return syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

static bool transfer_is_terminal(int fd, const struct stat *file)
{
    struct winsize size;
    return S_ISCHR(file->st_mode) && syscall(SYS_ioctl, fd, TIOCGWINSZ, &size) == 0;
}

// Does it wait until all is done? And has what it goes to not gone?
static bool transfer_waits(int fd)
{
    struct pollfd state = {.fd = fd, .events = 0};
    long flags = syscall(SYS_fcntl, fd, F_GETFL);
    return flags >= 0 && !(flags & O_NONBLOCK) && syscall(SYS_poll, &state, 1, 0) == 0;
}

static bool transfer_is_limited(const struct stat *file)
{
    struct rlimit limit;
    return S_ISREG(file->st_mode) &&
           (syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY);
}

// recvmmsg() leaves the error that ended it for the next call, which would fail by it: also the kernel's own for a
// signal.
static void transfer_forget_restart(int fd)
{
    int error;
    socklen_t size = sizeof(error);
    struct pollfd state = {.fd = fd, .events = 0};
    if (syscall(SYS_poll, &state, 1, 0) == 1 && (state.revents & POLLERR))
        syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_ERROR, &error, &size);
}

// Messages: until all have come, or gone.
static bool transfer_is_cut_items(const form_t *form, const gp_transfer_call_t *call, uint64_t done)
{
    struct mmsghdr last;
    struct timespec left;
    uint64_t flags = call->arguments[3];
    gp_transfer_call_t of_last = {form->way == IN ? SYS_recvmsg : SYS_sendmsg,
                                  {0, call->arguments[1] + (done - 1) * MESSAGE_BYTES}};
    if (form->item_bytes != MESSAGE_BYTES) // events
        return true;
    if (flags & (MSG_DONTWAIT | MSG_WAITFORONE))
        return false;
    if (form->way == IN)
        transfer_forget_restart((int)call->arguments[0]);
    if (!transfer_waits((int)call->arguments[0]))
        return false;
    if (form->way == IN) // the rest of the timeout, as written by the kernel
        return call->arguments[4] == 0 ||
               (gp_peek(call->arguments[4], &left, sizeof(left)) && (left.tv_sec != 0 || left.tv_nsec != 0));
    return gp_peek(of_last.arguments[1], &last, sizeof(last)) &&
           last.msg_len == transfer_asked_of(transfer_form_of(SYS_sendmsg), &of_last);
}

// Is a reading call cut? From a stream, with all of it waited for, and nothing beside it that another call would lose.
static bool transfer_is_cut_in(const form_t *form, const gp_transfer_call_t *call, uint64_t flags)
{
    struct msghdr header;
    int fd = (int)call->arguments[0];
    if (form->shape == SEGMENTS || !(flags & MSG_WAITALL) ||
        (flags & (MSG_DONTWAIT | MSG_OOB | MSG_ERRQUEUE | MSG_PEEK)) ||
        (form->shape == HEADER &&
         (!gp_peek(call->arguments[1], &header, sizeof(header)) || header.msg_control != NULL)))
        return false;
    return transfer_is_stream(fd) && transfer_waits(fd);
}

static bool transfer_is_cut_out(const form_t *form, const gp_transfer_call_t *call, uint64_t flags,
                                const struct stat *file)
{
    int fd = (int)call->arguments[0];
    if (flags & (form->shape == SEGMENTS ? NO_WAIT : MSG_DONTWAIT))
        return false;
    bool takes_all =
        S_ISFIFO(file->st_mode) || (S_ISSOCK(file->st_mode) ? transfer_is_stream(fd) : transfer_is_terminal(fd, file));
    return takes_all && transfer_waits(fd);
}

// Did the signal end it, or would it have ended so by itself?
static bool transfer_is_cut(const form_t *form, const gp_transfer_call_t *call, uint64_t done)
{
    struct stat file;
    uint64_t flags = form->flags != NONE ? call->arguments[form->flags] : 0;
    int fd = (int)call->arguments[call->number == SYS_copy_file_range ? 2 : 0];
    if (form->way == RANDOM)
        return true;
    if (form->shape == ITEMS)
        return transfer_is_cut_items(form, call, done);
    if (syscall(SYS_fstat, fd, &file) != 0)
        return false;
    if (form->way == COPY) // a pipe takes what it has room for
        return !S_ISFIFO(file.st_mode) && transfer_waits(fd) && !transfer_is_limited(&file);
    if (transfer_is_memory_device(&file))
        return true;
    return form->way == OUT ? transfer_is_cut_out(form, call, flags, &file) : transfer_is_cut_in(form, call, flags);
}

// Is there room below the stack pointer? Not where this handler's own frames are.
static bool transfer_has_room(const ucontext_t *context, uintptr_t sp)
{
    uintptr_t least = sp - RED_ZONE_BYTES - ROOM_BYTES, other = (uintptr_t)context->uc_stack.ss_sp;
    gp_thread_t *thread = gp_thread_self;
    uint64_t id;
    if (sp - (uintptr_t)context < FRAMES_BYTES || (sp - other < context->uc_stack.ss_size && least < other))
        return false;
    bool is_outside = true;
    prof_coro_t *coro = thread != NULL ? gp_thread_coro_at(thread, sp, &id, &is_outside) : NULL;
    uintptr_t lo = coro != NULL && !is_outside ? atomic_load_explicit(&coro->lo, memory_order_relaxed) : 0;
    gp_stack_memory_t stack = {.lo = least, .hi = sp};
    return (lo == 0 || lo > sp || lo <= least) && gp_stack_see(&stack, least);
}

static const int argument_registers[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};

static gp_transfer_call_t transfer_call_of(const ucontext_t *context, uint64_t number)
{
    gp_transfer_call_t call = {.number = number};
    for (int i = 0; i < 6; i++)
        call.arguments[i] = (uint64_t)context->uc_mcontext.gregs[argument_registers[i]];
    return call;
}

static bool transfer_is_here(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP] == (uintptr_t)gp_transfer_gone;
}

static gp_transfer_t *transfer_of(const ucontext_t *context)
{
    return (gp_transfer_t *)context->uc_mcontext.gregs[REG_RSP]; // NOLINT(performance-no-int-to-ptr)
}

static void transfer_go(ucontext_t *context, gp_transfer_t *transfer, const gp_transfer_call_t *now)
{
    greg_t *registers = context->uc_mcontext.gregs;
    for (int i = 0; i < 6; i++)
        registers[argument_registers[i]] = (greg_t)now->arguments[i];
    transfer->number = now->number;
    registers[REG_RAX] = (greg_t)now->number;
    registers[REG_RCX] = 0;
    registers[REG_RSP] = (greg_t)transfer;
    registers[REG_RIP] = (greg_t)gp_transfer_go;
}

// The rest was cut short as well.
static void transfer_go_on(ucontext_t *context)
{
    gp_transfer_t *transfer = transfer_of(context);
    gp_transfer_t changed = *transfer;
    gp_transfer_call_t now;
    const form_t *form = transfer_form_of(changed.first.number);
    changed.done += (uint64_t)context->uc_mcontext.gregs[REG_RAX];
    if (form == NULL || changed.done >= transfer_asked_of(form, &changed.first) ||
        !transfer_is_cut(form, &changed.first, changed.done) || !transfer_plan(form, &changed, &now))
        return;
    *transfer = changed;
    if (form->shape == HEADER)
        transfer->next.arguments[1] = (uintptr_t)&transfer->header;
    transfer_go(context, transfer, &now);
}

bool gp_transfer_may_be_cut(const ucontext_t *context)
{
    uint64_t hint = gp_call_number_hint(context);
    return transfer_is_here(context) || hint == UINT64_MAX || transfer_form_of(hint) != NULL;
}

void gp_transfer_resume(ucontext_t *context)
{
    greg_t *registers = context->uc_mcontext.gregs;
    uint64_t number, done = (uint64_t)registers[REG_RAX];
    const form_t *form;
    gp_transfer_call_t now;
    if (transfer_is_here(context)) {
        transfer_go_on(context);
        return;
    }
    if (!gp_call_number(context, &number) || (form = transfer_form_of(number)) == NULL)
        return;
    gp_transfer_call_t call = transfer_call_of(context, number);
    uint64_t asked = transfer_asked_of(form, &call);
    uintptr_t sp = (uintptr_t)registers[REG_RSP];
    if (done >= asked || !transfer_is_cut(form, &call, done) || !transfer_has_room(context, sp))
        return;
    gp_transfer_t *transfer =
        (gp_transfer_t *)((sp - RED_ZONE_BYTES - sizeof(gp_transfer_t)) & ~(uintptr_t)15); // NOLINT
    *transfer = (gp_transfer_t){.done = done,
                                .resume = (uint64_t)registers[REG_RIP],
                                .sp = sp,
                                .flags = (uint64_t)registers[REG_EFL],
                                .first = call};
    if (transfer_plan(form, transfer, &now))
        transfer_go(context, transfer, &now);
}

uint64_t gp_transfer_number(const ucontext_t *context)
{
    return transfer_is_here(context) ? transfer_of(context)->number : UINT64_MAX;
}

void gp_transfer_see_through(gp_unwind_regs_t *regs, uintptr_t gp[33])
{
    if (regs->pc != (uintptr_t)gp_transfer_go && regs->pc != (uintptr_t)gp_transfer_gone)
        return;
    const gp_transfer_t *transfer = (const gp_transfer_t *)regs->sp; // NOLINT(performance-no-int-to-ptr)
    gp[GP_REG_SP] = regs->sp = transfer->sp;
    gp[GP_REG_PC] = regs->pc = transfer->resume;
}
