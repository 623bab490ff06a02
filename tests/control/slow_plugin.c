// SPDX-License-Identifier: MIT
// A library whose relocation takes 0.4 s: the loader has listed it by then, and has yet to add its place to the slots
// of its calls. plugin_burn() makes one of these.
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

static const struct timespec delay = {.tv_nsec = 400000000};

static void nothing(void)
{
}

// Nothing may be called yet.
static void (*slow_resolver(void))(void)
{
#if defined(__x86_64__)
    long result = SYS_nanosleep;
    __asm__ volatile("syscall" : "+a"(result) : "D"(&delay), "S"(0) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long number __asm__("x8") = SYS_nanosleep, argument __asm__("x0") = (long)&delay, rest __asm__("x1") = 0;
    __asm__ volatile("svc 0" : "+r"(argument) : "r"(number), "r"(rest) : "memory");
#endif
    return nothing;
}

void slow(void) __attribute__((ifunc("slow_resolver")));
void (*slow_pointer)(void) = slow;

static void *thread(void *argument)
{
    return argument;
}

__attribute__((visibility("default"))) void plugin_burn(uint64_t ns)
{
    pthread_t other;
    (void)ns;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
}
