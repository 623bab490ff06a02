// SPDX-License-Identifier: MIT
// run: whether the program can be run, and whether a preloaded library will be loaded into it.
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "message.h"
#include "run_checks.h"

enum { SEGMENTS_MAX = 256 };

static bool run_program_is_program_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

int gp_run_find_program(const char *program, char path[PATH_MAX])
{
    const char *search = getenv("PATH");
    int status = EXIT_NOT_FOUND;
    if (strchr(program, '/') != NULL) {
        snprintf(path, PATH_MAX, "%s", program);
        if (access(path, F_OK) < 0)
            return EXIT_NOT_FOUND;
        return run_program_is_program_file(path) && access(path, X_OK) == 0 ? 0 : EXIT_NOT_EXECUTABLE;
    }
    if (search == NULL)
        search = "/bin:/usr/bin"; // execvp()'s default
    for (const char *at = search; program[0] != '\0'; at++) {
        size_t len = strcspn(at, ":");
        char candidate[PATH_MAX];
        snprintf(candidate, sizeof(candidate), "%.*s%s%s", (int)len, at, len ? "/" : "", program);
        if (run_program_is_program_file(candidate)) {
            strcpy(path, candidate);
            status = access(candidate, X_OK) == 0 ? 0 : EXIT_NOT_EXECUTABLE;
            if (status == 0)
                return 0;
        }
        at += len;
        if (*at == '\0')
            break;
    }
    return status;
}

// The loader that the program asks for. Returns whether there is one.
static bool run_program_has_interpreter(int fd, const Elf64_Ehdr *header, char interpreter[PATH_MAX])
{
    Elf64_Phdr segment;
    for (unsigned i = 0; i < header->e_phnum && i < SEGMENTS_MAX; i++) {
        off_t at = (off_t)(header->e_phoff + (uint64_t)i * sizeof(segment));
        if (pread(fd, &segment, sizeof(segment), at) != (ssize_t)sizeof(segment))
            return false;
        if (segment.p_type != PT_INTERP)
            continue;
        size_t len = segment.p_filesz < PATH_MAX ? (size_t)segment.p_filesz : PATH_MAX - 1;
        ssize_t got = pread(fd, interpreter, len, (off_t)segment.p_offset);
        interpreter[got > 0 ? got : 0] = '\0';
        return true;
    }
    return false;
}

// ld.so itself is no dynamic program, but it honours LD_PRELOAD when it is run as one.
static bool run_program_is_loader(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, "ld-linux", 8) == 0;
}

static int run_program_check_elf(const char *path, int fd, bool *is_musl)
{
    Elf64_Ehdr header;
    char interpreter[PATH_MAX] = "";
    if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return 0; // a script, or something the kernel will refuse
    if (header.e_ident[EI_CLASS] != ELFCLASS64)
        return gp_fail(path, "is a 32-bit program; greenprof cannot be loaded into it");
    if (!run_program_has_interpreter(fd, &header, interpreter) && !run_program_is_loader(path))
        return gp_fail(path, "is statically linked; greenprof cannot be loaded into it");
    bool needs_musl = strstr(interpreter, "/ld-musl-") != NULL || strstr(path, "/ld-musl-") != NULL;
    if (needs_musl && is_musl == NULL)
        return gp_fail(path, "is a musl program; its objects are not listed");
    if (is_musl != NULL)
        *is_musl = needs_musl;
    return 0;
}

// The loader ignores LD_PRELOAD where a program gains rights by being executed.
static int run_program_check_rights(const char *path, int fd)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return 0;
    if ((status.st_mode & (S_ISUID | S_ISGID)) != 0)
        return gp_fail(path, "is set-%s-ID; the loader keeps greenprof out of such programs",
                       status.st_mode & S_ISUID ? "user" : "group");
    if (geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0)
        return gp_fail(path, "has file capabilities; the loader keeps greenprof out of it");
    return 0;
}

// Of a script, the interpreter is what will be loaded: "#!/path argument". Returns whether there is one.
static bool run_program_script_interpreter(int fd, char interpreter[PATH_MAX])
{
    char line[PATH_MAX];
    ssize_t len = pread(fd, line, sizeof(line) - 1, 0);
    if (len < 2 || line[0] != '#' || line[1] != '!')
        return false;
    line[len] = '\0';
    char *start = line + 2 + strspn(line + 2, " \t");
    start[strcspn(start, " \t\n")] = '\0';
    snprintf(interpreter, PATH_MAX, "%s", start);
    return start[0] == '/';
}

static int run_program_check_file(const char *path, bool follow_script, bool *is_musl)
{
    char interpreter[PATH_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) // an executable file need not be readable
        return 0;
    int status = run_program_check_rights(path, fd);
    bool script = status == 0 && run_program_script_interpreter(fd, interpreter);
    if (status == 0)
        status = run_program_check_elf(path, fd, is_musl);
    close(fd);
    if (status == 0 && script && follow_script)
        return run_program_check_file(interpreter, false, is_musl);
    return status;
}

int gp_run_check_program(const char *program, bool *is_musl)
{
    char path[PATH_MAX];
    int status = gp_run_find_program(program, path);
    if (status == EXIT_NOT_FOUND) {
        if (program[0] != '\0' && strchr(program, '/') == NULL && access(program, F_OK) == 0)
            gp_fail(program, "command not found; for the file of that name say ./%s", program);
        else
            gp_fail(program, strchr(program, '/') ? "%s" : "command not found", strerror(ENOENT));
        return status;
    }
    if (status == EXIT_NOT_EXECUTABLE) {
        struct stat what;
        bool directory = stat(path, &what) == 0 && S_ISDIR(what.st_mode);
        gp_fail(program, "%s", strerror(directory ? EISDIR : EACCES));
        return status;
    }
    return run_program_check_file(path, true, is_musl);
}
