// SPDX-License-Identifier: MIT
// prof_dump_stats() of a warm process, for 1,000 distinct frames: 40 call chains of 25 functions each.
//
// dump_cost ROUNDS: dumps one profile again and again into a file, and for each dump also writes and renames a file of
// the same size without greenprof, in turns: what the file system takes of the time. Output, one line a round: us of
// wall time of the dump, us of CPU time of all threads in it, us of the plain file. The first line is the first dump,
// which reads the symbols.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <greenprof/prof.h>

extern "C" {
#include "worker.h"
}

namespace
{

enum { CHAIN = 25, CHAINS = 40, SPIN_NS = 8000000 };

volatile unsigned sink;

void spin()
{
    uint64_t end = worker_clock_ns(CLOCK_THREAD_CPUTIME_ID) + SPIN_NS;
    while (worker_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        sink = sink + 1;
}

template <int N> __attribute__((noinline)) void frame()
{
    if constexpr (N % CHAIN == CHAIN - 1)
        spin();
    else
        frame<N + 1>();
    sink = sink + N; // no tail call, and no two of them alike
}

template <int... N> void run_chains(std::integer_sequence<int, N...>)
{
    (frame<N * CHAIN>(), ...);
}

struct Cost {
    double wall_us, cpu_us;
};

template <typename Work> Cost timed(Work work)
{
    uint64_t cpu = worker_clock_ns(CLOCK_PROCESS_CPUTIME_ID), wall = worker_clock_ns(CLOCK_MONOTONIC);
    work();
    wall = worker_clock_ns(CLOCK_MONOTONIC) - wall;
    cpu = worker_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    return {(double)wall / 1e3, (double)cpu / 1e3};
}

void write_plainly(const std::string &path, const std::vector<char> &bytes)
{
    std::string temporary = path + ".new";
    int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0 || write(fd, bytes.data(), bytes.size()) != (ssize_t)bytes.size() || close(fd) < 0 ||
        rename(temporary.c_str(), path.c_str()) < 0)
        perror(path.c_str());
}

} // namespace

int main(int argc, char **argv)
{
    char directory[] = "/tmp/dump_cost.XXXXXX";
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 200;
    prof_options_t options = PROF_OPTIONS_INIT;
    struct stat status;

    options.scope = PROF_SCOPE_THREAD;
    options.frequency_hz = 1000;
    prof_t *profile = prof_start(&options);
    if (profile == NULL || mkdtemp(directory) == NULL) {
        perror("dump_cost");
        return 1;
    }
    run_chains(std::make_integer_sequence<int, CHAINS>());
    prof_stop(profile);
    std::string path = std::string(directory) + "/dump.prof", plain = std::string(directory) + "/plain";
    std::vector<char> bytes;
    for (unsigned i = 0; i <= rounds; i++) {
        int result = 0;
        Cost dump = timed([&] { result = prof_dump_stats(profile, path.c_str()); });
        if (result != 0 || stat(path.c_str(), &status) != 0)
            return 1;
        bytes.resize((size_t)status.st_size);
        // A new name every time, as services have it: a rename over a file makes ext4 write to the disk at once.
        if (i < rounds)
            unlink(path.c_str());
        Cost file = timed([&] { write_plainly(plain, bytes); });
        unlink(plain.c_str());
        printf("%.1f %.1f %.1f\n", dump.wall_us, dump.cpu_us, file.wall_us);
        usleep(2000); // a dump comes once in a while, not in a loop that has everything in its caches
    }
    prof_free(profile);
    if (argc > 2)
        printf("%s\n", path.c_str());
    else
        unlink(path.c_str());
    rmdir(directory);
    return 0;
}
