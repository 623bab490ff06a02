// SPDX-License-Identifier: MIT
// Storms of C++ exceptions inside coroutines: thrown far down, caught half-way, rethrown, with destructors on the way.
//   exceptions SECONDS
#include "truth.h"

#include "../context.h"
#include <cstdint>
#include <stdexcept>
#include <string>

WORK(thrower)
WORK(catcher)
WORK(destructor)

namespace
{

constexpr int COUNT = 4;
constexpr std::size_t STACK_BYTES = 65536;

ucontext_t loop, contexts[COUNT];
bool going = true;
int left = COUNT;
unsigned long thrown, caught;

struct Cleanup {
    ~Cleanup()
    {
        if (thrown % 8 == 0)
            work_destructor(40000);
    }
};

TRUTH_OUT_OF_LINE void descend(int depth, int id)
{
    Cleanup cleanup;
    if (depth > 0) {
        descend(depth - 1, id);
    } else {
        thrown++;
        if (thrown % 4 == 0)
            work_thrower(200000);
        if (id % 2)
            throw std::runtime_error("a string that is too long for the small buffer: " + std::to_string(thrown));
        throw id;
    }
    __asm__ volatile("");
}

TRUTH_OUT_OF_LINE void half_way(int id)
{
    try {
        descend(8, id);
    } catch (const std::runtime_error &) {
        throw;
    } catch (int) {
        throw std::string("another");
    }
}

void run(int id)
{
    while (going) {
        try {
            half_way(id);
        } catch (const std::exception &) {
            caught++;
            if (caught % 4 == 0)
                work_catcher(100000);
        } catch (const std::string &text) {
            caught += text == "another";
            swapcontext(&contexts[id], &loop); // park while an exception is being handled
        }
        if (caught % 64 == 0)
            swapcontext(&contexts[id], &loop);
    }
    left--;
}

} // namespace

int main(int argc, char **argv)
{
    truth_thread_begin();
    if (argc < 2)
        return 2;
    uint64_t end = truth_cpu_ns() + static_cast<uint64_t>(atof(argv[1]) * 1e9);
    bool done[COUNT] = {};
    for (int i = 0; i < COUNT; i++) {
        context_on(&contexts[i], malloc(STACK_BYTES), STACK_BYTES, &loop);
        makecontext(&contexts[i], reinterpret_cast<void (*)()>(run), 1, i);
    }
    for (int i = 0; left > 0; i = (i + 1) % COUNT) {
        if (done[i])
            continue;
        int before = left;
        swapcontext(&loop, &contexts[i]);
        done[i] = left != before;
        going = truth_cpu_ns() < end;
    }
    EXPECT(thrower);
    EXPECT(catcher);
    EXPECT(destructor);
    printf("THROWN %lu %lu\n", thrown, caught);
    truth_print_total();
    return thrown == caught ? 0 : 3;
}
