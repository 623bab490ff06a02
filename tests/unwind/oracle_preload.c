// SPDX-License-Identifier: MIT
// Walks every sample of an unmodified program twice, with greenprof and with libunwind, and counts
// how often they agree. Loaded by LD_PRELOAD; test-only: libunwind takes locks that a handler must
// not take, so it is not asked while the interrupted thread is inside the loader.
//
// Environment: ORACLE_OUT file to append the report to; ORACLE_HZ samples a second (default 1000).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "unwind/resolve.h"
#include "unwind/unwind.h"

#define TLS __attribute__((tls_model("initial-exec")))

enum { FRAMES = 512, DIFFS_MAX = 40000, ORACLE_SIGNAL_OFFSET = 6 };

// Which of the two stopped where, seen from the last frame that both have.
enum verdict {
    FORGED_BOTTOM,     // ours ended clean; libunwind went on at an address that no call precedes
    LIBUNWIND_GARBAGE, // its next frame is no code
    NO_ROW,            // interrupted assembly without rows: libunwind guesses, ours has found the call that
                       // led there
    LIBUNWIND_LOST,    // libunwind ended where ours went on
    OURS_LOST,         // the other way round, and ours says so
    DIFFERENT,
};
static const char *const verdict_names[] = {"forged-bottom",  "libunwind-garbage", "no-row",
                                            "libunwind-lost", "ours-lost",         "different"};

typedef struct diff {
    enum verdict verdict;
    unsigned count;
    bool shown;
    size_t ours, theirs;
    unsigned flags;
    int rc;
    uintptr_t lo, hi, sp;
    uintptr_t a[24], b[24]; // from the first difference on, one frame before it included
    size_t at;
} diff_t;

static struct {
    _Atomic unsigned long samples, agree, ours_incomplete, skipped, truncated;
    _Atomic unsigned diffs;
} stats;
static diff_t *diffs;
static int sample_signal;
static long period_ns;
static char out_path[512]; // copied early: PHP moves its environment
static __thread uintptr_t thread_lo TLS;
static __thread uintptr_t thread_hi TLS;
static __thread timer_t thread_timer TLS;
static __thread int busy TLS;
static uintptr_t loader_lo, loader_hi;

// The mapping around `sp`, for stacks other than the thread's own. Reads /proc: fine for an oracle.
static void find_mapping(uintptr_t sp, uintptr_t *lo, uintptr_t *hi)
{
    char buffer[512], line[256];
    size_t used = 0;
    ssize_t got;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    *lo = *hi = sp;
    while (fd >= 0 && (got = read(fd, buffer, sizeof buffer)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (buffer[i] != '\n') {
                if (used < sizeof line - 1)
                    line[used++] = buffer[i];
                continue;
            }
            line[used] = '\0';
            used = 0;
            char *rest;
            uintptr_t a = strtoull(line, &rest, 16), b = strtoull(rest + 1, NULL, 16);
            if (sp >= a && sp < b) {
                *lo = a;
                *hi = b;
            }
        }
    }
    if (fd >= 0)
        close(fd);
}

static size_t walk_libunwind(ucontext_t *context, uintptr_t *frames, int *rc)
{
    unw_cursor_t cursor;
    size_t n = 0;
    bool exact = true;
    if ((*rc = unw_init_local2(&cursor, (unw_context_t *)context, UNW_INIT_SIGNAL_FRAME)) < 0)
        return 0;
    do {
        unw_word_t ip;
        unw_get_reg(&cursor, UNW_REG_IP, &ip);
        frames[n++] = exact ? ip : ip - 1;
        exact = unw_is_signal_frame(&cursor) > 0;
    } while (n < FRAMES && (*rc = unw_step(&cursor)) > 0);
    return n;
}

static bool has_row(uintptr_t pc)
{
    gp_unwind_module_t storage;
    const gp_unwind_module_t *module;
    gp_row_t row;
    return gp_resolve_full(pc, false, &storage, &module, &row);
}

static enum verdict judge(const uintptr_t *a, size_t na, const uintptr_t *b, size_t nb, size_t at, unsigned flags)
{
    // libunwind's next frame is no code, but data taken for a return address by a frame-pointer guess; ours is code
    // after a call, or says that it is lost.
    bool ours_honest = at < na ? gp_is_return_address(a[at] + 1) : flags & GP_UNWIND_INCOMPLETE;
    if (at > 0 && at < nb && ours_honest && !gp_is_return_address(b[at] + 1))
        return LIBUNWIND_GARBAGE;
    if (at == 1 && at < na && !has_row(a[0]) && gp_is_return_address(a[1] + 1))
        return NO_ROW;
    if (at == nb && at < na)
        return LIBUNWIND_LOST;
    if (at == na && at < nb) {
        if (flags & GP_UNWIND_INCOMPLETE)
            return OURS_LOST;
        return b[at] + 1 < 4096 || !gp_is_return_address(b[at] + 1) ? FORGED_BOTTOM : DIFFERENT;
    }
    return DIFFERENT;
}

static void record(const uintptr_t *a, size_t na, const uintptr_t *b, size_t nb, size_t at, unsigned flags, int rc,
                   uintptr_t lo, uintptr_t hi, uintptr_t sp)
{
    unsigned slot = atomic_fetch_add(&stats.diffs, 1);
    if (slot >= DIFFS_MAX)
        return;
    diff_t *d = &diffs[slot];
    *d = (diff_t){.ours = na, .theirs = nb, .flags = flags, .rc = rc, .at = at, .lo = lo, .hi = hi, .sp = sp};
    d->verdict = judge(a, na, b, nb, at, flags);
    size_t from = at > 2 ? at - 2 : 0;
    for (size_t i = 0; i < 24; i++) {
        d->a[i] = from + i < na ? a[from + i] : 0;
        d->b[i] = from + i < nb ? b[from + i] : 0;
    }
}

static bool in_loader(const uintptr_t *frames, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (frames[i] >= loader_lo && frames[i] < loader_hi)
            return true;
    return false;
}

// A shot at a time: an oracle slower than its period must not starve the program.
static void rearm(void)
{
    struct itimerspec once = {{0, 0}, {0, period_ns}};
    timer_settime(thread_timer, 0, &once, NULL);
}

static void find_stack(uintptr_t sp, uintptr_t *lo, uintptr_t *hi)
{
    static __thread uintptr_t last_lo TLS, last_hi TLS;
    if (sp >= thread_lo && sp < thread_hi) {
        *lo = thread_lo;
        *hi = thread_hi;
        return;
    }
    if (sp < last_lo || sp >= last_hi)
        find_mapping(sp, &last_lo, &last_hi);
    *lo = last_lo;
    *hi = last_hi;
}

static void on_sample(int signo, siginfo_t *info, void *context)
{
    static __thread uintptr_t ours[FRAMES] TLS;
    static __thread uintptr_t theirs[FRAMES] TLS;
    uintptr_t gp[33], lo, hi;
    int saved = errno, rc = 0;
    unsigned flags;
    gp_unwind_regs_t regs;
    (void)signo, (void)info;
    if (busy)
        return;
    busy = 1;
    gp_unwind_regs_from_ucontext(&regs, gp, context);
    find_stack(regs.sp, &lo, &hi);
    size_t na = gp_unwind_walk(&regs, lo, hi, ours, FRAMES, &flags);
    if (in_loader(ours, na)) {
        atomic_fetch_add(&stats.skipped, 1);
        goto out;
    }
    size_t nb = walk_libunwind(context, theirs, &rc);
    atomic_fetch_add(&stats.samples, 1);
    if (flags & GP_UNWIND_INCOMPLETE)
        atomic_fetch_add(&stats.ours_incomplete, 1);
    if (flags & GP_UNWIND_TRUNCATED) {
        atomic_fetch_add(&stats.truncated, 1);
        goto out;
    }
    size_t same = 0;
    while (same < na && same < nb && ours[same] == theirs[same])
        same++;
    if (same == na && same == nb)
        atomic_fetch_add(&stats.agree, 1);
    else
        record(ours, na, theirs, nb, same, flags, rc, lo, hi, regs.sp);
out:
    busy = 0;
    rearm();
    errno = saved;
}

// Programs stand at the very end of their stack at times (Ruby reserves its stack by touching its
// last page).
static void use_alternate_stack(void)
{
    stack_t old, alt = {.ss_size = 65536};
    if (sigaltstack(NULL, &old) == 0 && (old.ss_flags & SS_DISABLE)) {
        alt.ss_sp = mmap(NULL, alt.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        sigaltstack(&alt, NULL);
    }
}

static void arm_thread(void)
{
    use_alternate_stack();
    pthread_attr_t attr;
    void *low;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        pthread_attr_getstack(&attr, &low, &size);
        pthread_attr_destroy(&attr);
        thread_lo = (uintptr_t)low;
        thread_hi = thread_lo + size;
    }
    const char *text = getenv("ORACLE_HZ");
    long hz = text != NULL ? strtol(text, NULL, 10) : 1000;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = sample_signal};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    if (timer_create(CLOCK_MONOTONIC, &event, &thread_timer) == 0) {
        period_ns = 1000000000 / hz;
        rearm();
    }
}

typedef struct start {
    void *(*run)(void *);
    void *arg;
} start_t;

static void *start_thread(void *arg)
{
    start_t start = *(start_t *)arg;
    free(arg);
    arm_thread();
    void *result = start.run(start.arg);
    timer_delete(thread_timer);
    return result;
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                                                          void *(*run)(void *), void *arg)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (real == NULL) {
        real =
            (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
    }
    start_t *start = malloc(sizeof *start);
    *start = (start_t){run, arg};
    return real(thread, attr, start_thread, start);
}

static void name_of(FILE *out, uintptr_t pc)
{
    Dl_info info;
    memset(&info, 0, sizeof info);
    if (pc == 0) {
        fputs("-", out);
    } else if (!dladdr((void *)pc, &info)) {
        fprintf(out, "?%#lx", pc);
    } else {
        const char *base = strrchr(info.dli_fname, '/');
        fprintf(out, "%s+%#lx(%s+%#lx)", base != NULL ? base + 1 : info.dli_fname, pc - (uintptr_t)info.dli_fbase,
                info.dli_sname != NULL ? info.dli_sname : "?",
                info.dli_sname != NULL ? pc - (uintptr_t)info.dli_saddr : 0);
    }
}

static void report_diff(FILE *out, const diff_t *d)
{
    size_t from = d->at > 2 ? d->at - 2 : 0;
    fprintf(out, "DIFF %s x%u at %zu: ours %zu flags %u, libunwind %zu rc %d, stack %#lx..%#lx sp %#lx\n",
            verdict_names[d->verdict], d->count, d->at, d->ours, d->flags, d->theirs, d->rc, d->lo, d->hi, d->sp);
    for (size_t i = 0; i < 24 && (d->a[i] != 0 || d->b[i] != 0); i++) {
        fprintf(out, "  %3zu %c ", from + i, d->a[i] == d->b[i] ? '=' : '!');
        name_of(out, d->a[i]);
        fputs("   |   ", out);
        name_of(out, d->b[i]);
        fputc('\n', out);
    }
}

// Count the later differences that have the same verdict after the same frame as the first of them.
static void fold_alike(unsigned first, unsigned count)
{
    diff_t *d = &diffs[first];
    size_t common = d->at > 2 ? 1 : d->at - (d->at > 0);
    if (d->shown)
        return;
    for (unsigned i = first; i < count; i++) {
        if (!diffs[i].shown && diffs[i].verdict == d->verdict &&
            diffs[i].a[diffs[i].at > 2 ? 1 : diffs[i].at - (diffs[i].at > 0)] == d->a[common]) {
            diffs[i].shown = true;
            d->count++;
        }
    }
}

__attribute__((destructor)) static void report(void)
{
    const char *path = out_path[0] != '\0' ? out_path : NULL;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, sample_signal);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    FILE *out = path != NULL ? fopen(path, "a") : NULL;
    if (out == NULL)
        return;
    fprintf(out,
            "SUMMARY %s pid %d samples %lu agree %lu differ %u incomplete %lu skipped %lu "
            "truncated %lu\n",
            program_invocation_short_name, (int)getpid(), stats.samples, stats.agree, stats.diffs,
            stats.ours_incomplete, stats.skipped, stats.truncated);
    unsigned count = stats.diffs < DIFFS_MAX ? stats.diffs : DIFFS_MAX;
    for (unsigned i = 0; i < count; i++) {
        fold_alike(i, count);
        if (diffs[i].count > 0)
            report_diff(out, &diffs[i]);
    }
    fclose(out);
}

static int find_loader(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (info->dlpi_name != NULL && strstr(info->dlpi_name, "ld-linux") != NULL) {
        loader_lo = info->dlpi_addr;
        loader_hi = loader_lo + 0x40000;
    }
    return 0;
}

__attribute__((constructor)) static void start(void)
{
    const char *only = getenv("ORACLE_ONLY");
    if (only != NULL && strcmp(only, program_invocation_short_name) != 0)
        return;
    if (getenv("ORACLE_OUT") != NULL)
        strncpy(out_path, getenv("ORACLE_OUT"), sizeof out_path - 1);
    sample_signal = SIGRTMIN + ORACLE_SIGNAL_OFFSET;
    diffs = mmap(NULL, sizeof(diff_t) * DIFFS_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    dl_iterate_phdr(find_loader, NULL);
    gp_unwind_init();
    struct sigaction action = {.sa_sigaction = on_sample, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    sigfillset(&action.sa_mask);
    sigaction(sample_signal, &action, NULL);
    arm_thread();
}
