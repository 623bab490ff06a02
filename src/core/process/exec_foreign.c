// SPDX-License-Identifier: MIT
#include "process/exec_foreign.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptors.h"

enum { SEGMENTS_MAX = 64, INTERPRETER_MAX = 128 };

static const char preload[] = "LD_PRELOAD=";

typedef enum exec_kind { EXEC_NONE, EXEC_SCRIPT, EXEC_NATIVE, EXEC_FOREIGN } exec_kind_t; // NONE = cannot be read

#ifdef __GLIBC__
enum { IS_MUSL = false };
#else
enum { IS_MUSL = true };
#endif

static bool exec_foreign_has_other_loader(int fd, const Elf64_Ehdr *header)
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
        return (strstr(loader, "/ld-musl-") != NULL) != IS_MUSL;
    }
    return false;
}

// interpreter: of a script.
static exec_kind_t exec_foreign_look(int fd, char interpreter[INTERPRETER_MAX])
{
    union {
        Elf64_Ehdr elf;
        char text[INTERPRETER_MAX];
    } head = {.text = ""};
    long got = syscall(SYS_pread64, fd, &head, sizeof(head) - 1, 0);
    if (got < 2)
        return EXEC_NONE;
    if (memcmp(head.text, "#!", 2) == 0) {
        const char *begin = head.text + 2 + strspn(head.text + 2, " \t");
        size_t len = strcspn(begin, " \t\n");
        memcpy(interpreter, begin, len);
        interpreter[len] = '\0';
        return EXEC_SCRIPT;
    }
    bool is_elf = got >= (long)sizeof(head.elf) && memcmp(head.elf.e_ident, ELFMAG, SELFMAG) == 0;
    bool is_foreign =
        is_elf && (head.elf.e_ident[EI_CLASS] != ELFCLASS64 || exec_foreign_has_other_loader(fd, &head.elf));
    return is_foreign ? EXEC_FOREIGN : EXEC_NATIVE;
}

// By system calls: exec is no cancellation point.
static exec_kind_t exec_foreign_look_at(int at, const char *path, char interpreter[INTERPRETER_MAX])
{
    int fd = gp_descriptor_open(at, path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return EXEC_NONE;
    exec_kind_t kind = exec_foreign_look(fd, interpreter);
    syscall(SYS_close, fd);
    return kind;
}

static exec_kind_t exec_foreign_kind_of(int at, const char *path)
{
    char interpreter[INTERPRETER_MAX], other[INTERPRETER_MAX];
    exec_kind_t kind = exec_foreign_look_at(at, path, interpreter);
    if (kind == EXEC_SCRIPT && exec_foreign_look_at(AT_FDCWD, interpreter, other) == EXEC_FOREIGN)
        return EXEC_FOREIGN;
    return kind;
}

bool gp_exec_is_foreign(int fd, const char *path)
{
    char interpreter[INTERPRETER_MAX];
    if (path == NULL)
        return false;
    if (path[0] != '\0')
        return exec_foreign_kind_of(fd, path) == EXEC_FOREIGN;
    return fd >= 0 && exec_foreign_look(fd, interpreter) == EXEC_FOREIGN;
}

bool gp_exec_found_is_foreign(const char *file)
{
    const char *path = getenv("PATH");
    char candidate[PATH_MAX];
    if (strchr(file, '/') != NULL)
        return gp_exec_is_foreign(AT_FDCWD, file);
    for (const char *at = path != NULL ? path : "/bin:/usr/bin", *end; file[0] != '\0'; at = end + 1) {
        end = strchrnul(at, ':');
        size_t len = (size_t)(end - at), name_len = strlen(file);
        bool fits = len + name_len + 2 <= sizeof(candidate);
        if (fits) {
            memcpy(candidate, at, len);
            candidate[len] = '/';
            memcpy(candidate + (len > 0 ? len + 1 : 0), file, name_len + 1);
        }
        exec_kind_t kind = fits && syscall(SYS_faccessat, AT_FDCWD, candidate, X_OK) == 0
                               ? exec_foreign_kind_of(AT_FDCWD, candidate)
                               : EXEC_NONE;
        if (kind != EXEC_NONE || *end == '\0')
            return kind == EXEC_FOREIGN;
    }
    return false;
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
static bool exec_foreign_leave_out_own(const char *variable, char *text)
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
        else if (exec_foreign_leave_out_own(*envp, text))
            *to++ = text;
    }
    *to = NULL;
}
