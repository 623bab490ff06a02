// SPDX-License-Identifier: MIT
// folly's fibers in shape: a FiberManager of fibers, which are Boost contexts on stacks used again, a queue of ready
// fibers, and a main context to run them. Linked with libboost_context.a, as folly is.
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "shares.h"

namespace
{

using fcontext_t = void *;
struct transfer_t {
    fcontext_t context;
    void *data;
};
extern "C" transfer_t jump_fcontext(fcontext_t to, void *data);
extern "C" fcontext_t make_fcontext(void *top, size_t size, void (*entry)(transfer_t));

class FiberManager;

class Fiber
{
  public:
    Fiber(FiberManager &manager, char *stack);
    void activate()
    {
        context_ = jump_fcontext(context_, this).context;
    }
    void deactivate()
    {
        main_ = jump_fcontext(main_, nullptr).context;
    }
    void start(std::function<void()> function);
    bool over = false;

  private:
    static void fiber_func(transfer_t transfer);
    FiberManager &manager_;
    char *stack_;
    std::function<void()> function_;
    fcontext_t context_ = nullptr, main_ = nullptr;
};

class FiberManager
{
  public:
    static constexpr size_t stack_bytes = SHARES_STACK_BYTES;

    void add_task(std::function<void()> function)
    {
        Fiber *fiber = nullptr;
        if (!pool_.empty()) {
            fiber = pool_.back();
            pool_.pop_back();
        } else {
            char *stack = static_cast<char *>(std::malloc(stack_bytes));
            fiber = (all_.emplace_back(new Fiber(*this, stack)), all_.back().get());
        }
        fiber->start(std::move(function));
        ready_.push_back(fiber);
    }

    void loop_until_no_ready()
    {
        while (!ready_.empty()) {
            active_ = ready_.front();
            ready_.pop_front();
            active_->activate();
            (active_->over ? static_cast<void>(pool_.push_back(active_))
                           : static_cast<void>(ready_.push_back(active_)));
        }
    }

    void yield()
    {
        active_->deactivate();
    }

  private:
    std::vector<std::unique_ptr<Fiber>> all_;
    std::vector<Fiber *> pool_;
    std::deque<Fiber *> ready_;
    Fiber *active_ = nullptr;
};

Fiber::Fiber(FiberManager &manager, char *stack) : manager_(manager), stack_(stack)
{
}

void Fiber::start(std::function<void()> function)
{
    function_ = std::move(function);
    over = false;
    context_ = make_fcontext(stack_ + FiberManager::stack_bytes, FiberManager::stack_bytes, fiber_func);
}

void Fiber::fiber_func(transfer_t transfer)
{
    auto *fiber = static_cast<Fiber *>(transfer.data);
    fiber->main_ = transfer.context;
    fiber->function_();
    fiber->over = true;
    fiber->deactivate(); // and is made anew, if at all
    std::abort();
}

} // namespace

int main(int argc, char **argv)
{
    FiberManager manager;
    if (shares_begin(argc, argv) < 0)
        return 2;
    for (int id = 0; id < SHARES_COUNT; id++) {
        manager.add_task([&manager, id] {
            for (int i = 0; i < shares_rounds; i++) {
                shares_step(id);
                manager.yield();
            }
        });
    }
    manager.loop_until_no_ready();
    return shares_end();
}
