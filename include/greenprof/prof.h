// SPDX-License-Identifier: MIT
// Profiles: what ran, and for how long, between prof_start() and prof_stop().
//
// Model: one sampler serves the process; it runs while at least one profile does. Each profile has a scope (a request,
// a thread, the process) and receives the samples that fall into it. Its total is the exact CPU time of its scope;
// the samples say how that time is distributed over functions. Any number of profiles run at once, and starting or
// stopping one never disturbs another.
//
// Order of calls: prof_start -> prof_stop [-> prof_resume -> prof_stop]... -> prof_dump_stats / prof_dump -> prof_free.
// A dump of a running profile is allowed and holds what was sampled so far. A child of fork() inherits the running
// profiles with what they hold, and goes on sampling into its own copies.
//
// Unless a declaration says otherwise: callable from any thread and any coroutine (4 KiB of free stack are enough), not
// from a signal handler; functions that return int return 0 or a negative errno value and leave errno alone.
#ifndef GREENPROF_PROF_H
#define GREENPROF_PROF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PROF_API __attribute__((visibility("default")))
#else
#define PROF_API
#endif

// The version of these headers; prof_version() gives the running library's.
#define PROF_VERSION_MAJOR 0
#define PROF_VERSION_MINOR 1
#define PROF_VERSION_PATCH 0

typedef struct prof prof_t;

typedef enum prof_scope {
    PROF_SCOPE_REQUEST = 0, // the calling coroutine, and the coroutines it spawns from then on
    PROF_SCOPE_THREAD = 1,  // the calling thread, whatever coroutine it runs
    PROF_SCOPE_PROCESS = 2  // everything
} prof_scope_t;

typedef enum prof_clock {
    PROF_CLOCK_CPU = 0, // on-CPU time
    PROF_CLOCK_WALL = 1 // on-CPU, ready and parked time: stacks of waits end in [parked], [ready] or [waiting]
} prof_clock_t;

typedef enum prof_mode {
    PROF_MODE_SAMPLE = 0, // call counts in the output are numbers of samples
    PROF_MODE_EXACT = 1   // every call of instrumented functions and of Python counted: <greenprof/exact.h>
} prof_mode_t;

enum { PROF_FREQUENCY_DEFAULT_HZ = 1000, PROF_FREQUENCY_MAX_HZ = 20000 };

// Options of prof_start(). Start from PROF_OPTIONS_INIT, which sets the defaults; fields added later default to zero.
typedef struct prof_options {
    size_t size;      // sizeof(prof_options_t) of the caller's headers
    const char *name; // shown in outputs; copied, at most 63 bytes are kept; NULL = "profile"
    prof_scope_t scope;
    prof_clock_t clock;
    prof_mode_t mode;
    unsigned frequency_hz; // samples per second of CPU time and thread, 1..PROF_FREQUENCY_MAX_HZ; 0 = the default.
                           // The sampler runs at the highest frequency any running profile asked for.
} prof_options_t;

// clang-format off
#define PROF_OPTIONS_INIT {sizeof(prof_options_t), 0, PROF_SCOPE_REQUEST, PROF_CLOCK_CPU, PROF_MODE_SAMPLE, PROF_FREQUENCY_DEFAULT_HZ}
// clang-format on

// Say which version of the library the program runs with. A program may have been built with older headers: functions
// of a newer minor version are looked for with dlsym(3), fields of options with their `size`.
//   major, minor, patch: set to the numbers, each NULL where it is not wanted.
// Returns the same as text, "0.1.0"; static. Threads: any. Signals: safe.
PROF_API const char *prof_version(int *major, int *minor, int *patch);

// Start a profile of the calling request, thread or process.
//   options: NULL = all defaults. A smaller `size` than this header's comes from an older caller and is accepted; a
//            larger one is accepted where the bytes beyond are zero, else E2BIG.
// Returns the running profile (errno as it was), or NULL and errno: EINVAL (frequency above the maximum, unknown scope,
//   clock or mode), ENOTSUP (clock or mode not supported), E2BIG, EBUSY (the host handles every signal fit for
//   sampling; its handlers are left in place), ENOMEM, EAGAIN (no timer or thread to be had), ENOSYS (no clock engine
//   works here), ESRCH (in a child of _Fork() or of a bare clone(), as with all that follows: fork handlers were not
//   run; and in a fork handler).
// Threads: any. Signals: not safe. Cost: ~0.5 us, ~1 us on a thread's own stack; the first one also starts the sampler
// (~1 ms).
PROF_API prof_t *prof_start(const prof_options_t *options);

// Stop a profile. Every sample taken before the call is in it, and none after: where the scope is a request, a
// later dump or resume waits for the last of them. May be called from any coroutine or thread, not only from the one
// that started it.
// Returns 0; -EINVAL for NULL or a pointer that is no profile; -EALREADY when it is stopped already (nothing changes).
// Threads: any. Signals: not safe. Cost: ~0.3 us, ~1 us on a thread's own stack; in other scopes, and in exact mode,
// one hand-over to the collector thread, ~50 us.
PROF_API int prof_stop(prof_t *profile);

// Let a stopped profile go on, with what it holds. A request profile from then on covers the calling coroutine and
// those it spawns, and the coroutines that were spawned in it before and still live.
// Returns 0, -EINVAL, -EALREADY when it runs, or what prof_start() could fail with.
PROF_API int prof_resume(prof_t *profile);

// Write a profile as pstats (what `python3 -m pstats`, SnakeViz and gprof2dot read); see prof_dump().
PROF_API int prof_dump_stats(prof_t *profile, const char *path);

// Write a profile in another format.
//   format: "callgrind", "firefox", "flamegraph" (SVG), "folded", "html", "json", "otlp", "pprof", "pstats" or
//         "speedscope": those that `greenprof export --help` lists, but for the timeline.
//   path: written under a temporary name in the same directory, then renamed: no reader sees half a file and no failed
//         dump leaves one. "-" and /dev/stdout are standard output.
// Returns 0; -EINVAL (NULL, no profile, unknown format); -ENOTSUP (the timeline "chrome", which needs a capture);
//   -ENOMEM; -EAGAIN (no thread to be had); else the error of opening, writing or renaming (-ENOENT, -EACCES, -ENOSPC,
//   ...). libgreenprof has it, libgreenprof-core does not.
// Threads: any; the work is done on a thread of its own, so a small coroutine stack is enough; the caller waits.
// Signals: not safe.
PROF_API int prof_dump(prof_t *profile, const char *format, const char *path);

// Stop a profile if it runs, write it as prof_dump() does, and free it; the slow part is on a thread of greenprof's
// own: for a service that goes on with its requests. From here on the profile is that thread's. The files are written
// one after the other, and the processor is the program's first; of 256 that wait already, the caller writes its own.
// Profiles still waiting when the process ends by exit() are written within 3 s; in a forked child they are freed only.
//   format, path: see prof_dump(); a relative path is one of now.
// Returns 0: it will be written; or what prof_dump() does before it opens the file, and the profile is still the
// caller's. Threads: any. Signals: not safe. Cost: ~40 us, caches cold.
PROF_API int prof_finish(prof_t *profile, const char *format, const char *path);

// Wait until all those were written.
//   limit_ms: 0 = only look
// Returns 0; -ETIMEDOUT; or why one could not be written, the first since this was last returned.
// Threads: any. Signals: not safe.
PROF_API int prof_finish_flush(unsigned limit_ms);

// Exact CPU time of a profile's scope so far, ns; 0 for NULL. The kernel's figure, with all time that no sample has
// reached yet. For the whole process, the time of threads beyond any signal (blocked by system calls of their own, or
// no timer to be had) is left out: a dump has it as the counter unsampled_ns. Threads: any. Signals: not safe. Cost: ~1
// us; of the process, ~20 us and 1 us a thread: it first scans /proc/self/task for threads that bypassed
// pthread_create().
PROF_API uint64_t prof_total_ns(prof_t *profile);

// Where time went, ns. wall_ns is the sum of all parts but longest_ns.
typedef struct prof_ledger {
    size_t size;           // sizeof(prof_ledger_t), set by the caller
    uint64_t wall_ns;      // of all coroutines in it, added up: several may wait at the same time
    uint64_t cpu_ns;       // on the CPU
    uint64_t blocked_ns;   // asleep in a system call, and the whole thread with it
    uint64_t preempted_ns; // the thread could run but did not: other threads and processes had the CPU
    uint64_t ready_ns;     // runnable, waiting for the scheduler to come round
    uint64_t parked_ns;    // waiting for something to happen
    uint64_t waiting_ns;   // ready or parked: the runtime does not say when a coroutine becomes ready
    uint64_t longest_ns;   // longest time that a coroutine kept its thread
    uint64_t switches;     // times one of them was switched to
    uint64_t spawned;      // coroutines they created
    uint64_t gil_ns;       // waiting for the lock of CPython's interpreter
    uint64_t lock_ns;      // waiting for a lock of the program's
} prof_ledger_t;

#define PROF_LEDGER_INIT                                                                                               \
    {                                                                                                                  \
        sizeof(prof_ledger_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                                      \
    }

// Read a profile's ledger so far.
//   request scope: the coroutines in it. process scope: all coroutines; a thread's own stack waits while its coroutines
//   run, which is not counted again. thread scope: wall, cpu and, together as blocked, the rest.
// Returns 0; -EINVAL (NULL, no profile, size 0 or larger than this library's).
// Threads: any. Signals: not safe. Cost: O(coroutines in the profile).
PROF_API int prof_ledger(prof_t *profile, prof_ledger_t *ledger);

// Free a profile; stops it first if it runs. NULL and pointers that are no profile are ignored.
PROF_API void prof_free(prof_t *profile);

#ifdef __cplusplus
}
#endif

#endif
