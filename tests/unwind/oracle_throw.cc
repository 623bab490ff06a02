// SPDX-License-Identifier: MIT
// A program that spends its time throwing, sorting and inflating: the oracle's C++ guest.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "step_work.h"

int main(int argc, char **argv)
{
    int turns = argc > 1 ? std::atoi(argv[1]) : 20;
    unsigned long sum = 0;
    for (int i = 0; i < turns; i++) {
        for (int j = 0; j < 2000; j++)
            step_throw();
        std::map<std::string, int> names;
        for (int j = 0; j < 20000; j++)
            names["name " + std::to_string(j * 7919 % 20011)] = j;
        std::vector<std::string> sorted;
        for (const auto &entry : names)
            sorted.push_back(entry.first);
        std::sort(sorted.begin(), sorted.end(), [](const std::string &a, const std::string &b) { return a > b; });
        sum += sorted.front().size();
    }
    return sum == 0;
}
