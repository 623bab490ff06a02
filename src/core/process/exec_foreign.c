// SPDX-License-Identifier: MIT
#include "process/exec_foreign.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptors.h"

enum { SEGMENTS_MAX = 64, INTERPRETER_MAX = 128 };

static const char preload[] = "LD_PRELOAD=";

static bool exec_has_musl_loader(int fd, const Elf64_Ehdr *header)
{
    Elf64_Phdr segment;
    char loader[INTERPRETER_MAX] = "";
    for (unsigned i = 0; i < header->e_phnum && i < SEGMENTS_MAX; i++) {
        off_t at = (off_t)(header->e_phoff + (uint64_t)i * sizeof(segment));
        if (syscall(SYS_pread64, fd, &segment, sizeof(segment), at) != (ssize_t)sizeof(segment))
            return false;
        if (segment.p_type != PT_INTERP)
            continue;
        (void)!syscall(SYS_pread64, fd, loader, sizeof(loader) - 1, (off_t)segment.p_offset);
        return strstr(loader, "/ld-musl-") != NULL;
    }
    return false;
}

bool gp_exec_is_foreign(const char *path)
{
    Elf64_Ehdr header;
    // By system calls: exec is no cancellation point.
    int fd = gp_descriptor_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return false;
    bool is_elf = syscall(SYS_pread64, fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
                  memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
    bool is_foreign = is_elf && (header.e_ident[EI_CLASS] != ELFCLASS64 || exec_has_musl_loader(fd, &header));
    syscall(SYS_close, fd);
    return is_foreign;
}

size_t gp_exec_environment_size(char *const envp[], size_t *longest)
{
    size_t count = 0;
    *longest = 1;
    for (; envp != NULL && envp[count] != NULL; count++) {
        size_t len = strncmp(envp[count], preload, sizeof(preload) - 1) == 0 ? strlen(envp[count]) : 0;
        *longest = len + 1 > *longest ? len + 1 : *longest;
    }
    return count;
}

// The other libraries are the program's. Returns whether there is one.
static bool exec_leave_out_own(const char *variable, char *text)
{
    size_t used = sizeof(preload) - 1;
    memcpy(text, preload, used);
    for (const char *at = variable + used, *end; *at != '\0'; at = end + (*end != '\0')) {
        end = at + strcspn(at, ": ");
        const char *own = strstr(at, "libgreenprof-core.so");
        if (end == at || (own != NULL && own < end))
            continue;
        if (used > sizeof(preload) - 1)
            text[used++] = ':';
        memcpy(text + used, at, (size_t)(end - at));
        used += (size_t)(end - at);
    }
    text[used] = '\0';
    return used > sizeof(preload) - 1;
}

void gp_exec_environment(char *const envp[], char **to, char *text)
{
    for (; envp != NULL && *envp != NULL; envp++) {
        bool is_preload = strncmp(*envp, preload, sizeof(preload) - 1) == 0;
        if (!is_preload)
            *to++ = *envp;
        else if (exec_leave_out_own(*envp, text))
            *to++ = text;
    }
    *to = NULL;
}
