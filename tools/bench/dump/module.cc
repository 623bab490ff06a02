// SPDX-License-Identifier: MIT
// One module of a service: some work in C++ templates, of which there is much to be said in debug information.
// Compiled once a module.
#include <map>
#include <regex>
#include <string>

namespace part
{

int count_words(const std::string &text)
{
    static const std::regex word("[a-z]+");
    std::map<std::string, int> counts;
    for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at)
        counts[at->str()]++;
    return (int)counts.size();
}

} // namespace part

extern "C" __attribute__((visibility("default"))) int module_work(const char *text)
{
    return part::count_words(text);
}
