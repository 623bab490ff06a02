// SPDX-License-Identifier: MIT
// A coroutine that ends, of what is built on Boost.Context, and then a time in which nothing runs. With ENDS_STATIC
// Boost.Context is linked in, and hooked at link time.
//
//   ends fiber|context|jumps IDLE_SECONDS
//
//   LIFE name wall     seconds from its making to its end, as booked; the name is part of its first function's
#include <boost/context/fiber.hpp>
#if !defined(ENDS_STATIC)
#include <boost/fiber/all.hpp>
#endif

#include <sys/mman.h>

#include <cstring>

#include "../integration/truth.h"

namespace ctx = boost::context;
using ctx::detail::jump_fcontext;
using ctx::detail::make_fcontext;
using ctx::detail::transfer_t;

enum { STACK_BYTES = 65536, LIFE_NS = 30000000 };

static double idle_seconds;
static uint64_t born_ns, over_ns;

static uint64_t now_ns()
{
    return truth_clock_ns(CLOCK_MONOTONIC);
}

static TRUTH_OUT_OF_LINE void rest(uint64_t ns)
{
    struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    while (nanosleep(&time, &time) != 0)
        continue;
}

static void idle()
{
    rest((uint64_t)(idle_seconds * 1e9));
}

static void life(const char *name)
{
    printf("LIFE %s %.6f\n", name, truth_seconds(over_ns - born_ns));
}

#if !defined(ENDS_STATIC)
// Its scheduler frees it when it has the time: at the program's end here.
static void a_fiber()
{
    born_ns = now_ns();
    boost::fibers::fiber fiber([] {
        rest(LIFE_NS);
        boost::this_fiber::yield();
        rest(LIFE_NS);
        over_ns = now_ns();
    });
    fiber.join();
    idle();
    life("a_fiber()::{lambda");
}
#else
static void a_fiber()
{
}
#endif

static void a_context()
{
    born_ns = now_ns();
    ctx::fiber other([](ctx::fiber &&main) {
        rest(LIFE_NS);
        main = std::move(main).resume();
        rest(LIFE_NS);
        over_ns = now_ns();
        return std::move(main);
    });
    other = std::move(other).resume();
    rest(LIFE_NS);
    other = std::move(other).resume();
    idle();
    life("a_context()::{lambda");
}

// Contexts of one's own: nothing tells that a jump was the last one, until the stack is used again, or is gone.
template <int number> static void jumper(transfer_t from)
{
    rest(LIFE_NS);
    from = jump_fcontext(from.fctx, nullptr);
    rest(LIFE_NS);
    over_ns = now_ns();
    jump_fcontext(from.fctx, nullptr);
}

static char *new_stack()
{
    return (char *)mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void run(void (*entry)(transfer_t), char *stack)
{
    born_ns = now_ns();
    transfer_t there = {make_fcontext(stack + STACK_BYTES, STACK_BYTES, entry), nullptr};
    there = jump_fcontext(there.fctx, nullptr);
    jump_fcontext(there.fctx, nullptr);
}

static void jumps()
{
    char *reused = new_stack(), *unmapped = new_stack();
    run(jumper<1>, reused);
    life("jumper<1>");
    run(jumper<2>, unmapped);
    life("jumper<2>");
    idle();
    munmap(unmapped, STACK_BYTES);
    run(jumper<3>, reused);
    life("jumper<3>");
    munmap(reused, STACK_BYTES);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    idle_seconds = argc > 2 ? atof(argv[2]) : 0.3;
    if (strcmp(what, "fiber") == 0)
        a_fiber();
    else if (strcmp(what, "context") == 0)
        a_context();
    else if (strcmp(what, "jumps") == 0)
        jumps();
    else
        return 2;
    return 0;
}
