// SPDX-License-Identifier: MIT
// A program of functions with known names and lines. Compiled with -O2 -g.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#ifdef __clang__
#define KEEP __attribute__((noinline, used))
#else
#define KEEP __attribute__((noinline, used, noipa))
#endif

namespace shop
{
template <typename T> struct Basket {
    std::vector<T> items;
    KEEP void add(const T &item) // LINE Basket::add
    {
        items.push_back(item);
    }
    KEEP long total(long scale) const; // declared here, defined below
};

template <typename T> KEEP long Basket<T>::total(long scale) const // LINE Basket::total
{
    long sum = 0;
    for (const T &item : items)
        sum += (long)item * scale;
    return sum;
}

KEEP std::map<std::string, int> stock(const char *name) // LINE stock
{
    std::map<std::string, int> found;
    found[name] = 3;
    return found;
}
} // namespace shop

static KEEP long helper(long n) // LINE helper
{
    return n < 2 ? n : helper(n - 1) + helper(n - 2);
}

static inline __attribute__((always_inline)) long squared(long n) // LINE squared
{
    return n * n;
}

KEEP long caller_of_inline(long n) // LINE caller_of_inline
{
    return squared(n) + helper(n); // LINE call of squared
}

int main(int argc, char **) // LINE main
{
    auto on_stack = [&](long n) KEEP { return caller_of_inline(n) + argc; };
    shop::Basket<int> basket;
    basket.add(argc);
    std::printf("%ld %zu %ld\n", basket.total(2), shop::stock("x").size(), on_stack(10));
    return 0;
}
