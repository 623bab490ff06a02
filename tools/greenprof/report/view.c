// SPDX-License-Identifier: MIT
// The page of a capture, beside it, and in the user's browser where there is one.
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "export.h"
#include "message.h"
#include "store/store.h"

static bool view_is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL && value[0] != '\0';
}

// A page of no file, and one beside which nothing can be written, gets a folder of its own: names in /tmp are anyone's.
static int view_make_folder(const char *base, char page[PATH_MAX])
{
    char folder[PATH_MAX];
    const char *temporary = view_is_set("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    if (snprintf(folder, sizeof(folder), "%s/greenprof-XXXXXX", temporary) >= (int)sizeof(folder))
        return gp_fail(temporary, "%s", strerror(ENAMETOOLONG));
    if (mkdtemp(folder) == NULL)
        return gp_fail(folder, "%s", strerror(errno));
    return snprintf(page, PATH_MAX, "%s/%s.html", folder, base) < PATH_MAX
               ? 0
               : gp_fail(base, "%s", strerror(ENAMETOOLONG));
}

static int view_name_page(const gp_arguments_t *arguments, char page[PATH_MAX])
{
    const char *file = arguments->operands[0], *slash = strrchr(file, '/');
    char folder[PATH_MAX];
    if (arguments->output != NULL && gp_exporter_has_suffix(arguments->output) &&
        gp_exporter_of_file(arguments->output) != gp_exporter_find("html"))
        return gp_usage_error("view", "%s: a page is written as .html", arguments->output);
    if (arguments->output != NULL)
        return snprintf(page, PATH_MAX, "%s", arguments->output) < PATH_MAX
                   ? 0
                   : gp_fail(arguments->output, "%s", strerror(ENAMETOOLONG));
    if (gp_store_is_url(file) || strncmp(file, "/dev/", strlen("/dev/")) == 0)
        return view_make_folder("greenprof", page);
    snprintf(folder, sizeof(folder), "%.*s", slash != NULL ? (int)(slash - file) + 1 : 1, slash != NULL ? file : ".");
    if (access(folder, W_OK) != 0)
        return view_make_folder(slash != NULL ? slash + 1 : file, page);
    return snprintf(page, PATH_MAX, "%s.html", file) < PATH_MAX ? 0 : gp_fail(file, "%s", strerror(ENAMETOOLONG));
}

// Returns whether a browser took it. Source: xdg-open(1), which asks BROWSER as well, and needs a display.
static bool view_open(char *page)
{
    bool is_named = view_is_set("BROWSER");
    char *command[] = {is_named ? getenv("BROWSER") : (char[]){"xdg-open"}, page, NULL};
    int status;
    pid_t pid;
    if (!is_named && !view_is_set("DISPLAY") && !view_is_set("WAYLAND_DISPLAY"))
        return false;
    if (posix_spawnp(&pid, command[0], NULL, NULL, command, environ) != 0)
        return false;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int gp_command_view(const gp_arguments_t *arguments)
{
    char page[PATH_MAX], full[PATH_MAX];
    int status = view_name_page(arguments, page);
    if (status == 0 && strcmp(page, "-") == 0)
        status = gp_usage_error("view", "a browser reads a file: name one with -o, or use 'greenprof flamegraph'");
    if (status == 0)
        status = gp_export_write(arguments, gp_exporter_find("html"), page);
    if (status != 0)
        return status;
    bool is_opened = view_open(realpath(page, full) != NULL ? full : page);
    printf(is_opened ? "%s\n" : "%s: open it in a browser\n", page);
    return gp_finish_stdout();
}
