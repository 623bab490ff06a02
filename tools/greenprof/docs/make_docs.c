// SPDX-License-Identifier: MIT
// usage: make_docs MAN-SOURCES OUT
//   Writes OUT/man/greenprof*.1, OUT/completion/greenprof.bash, _greenprof, greenprof.fish.
#include "make_docs.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report/report.h"
#include "report/sort_key.h"

void gp_docs_words(FILE *out, const gp_option_t *option, char separator)
{
    if (option->choices != NULL) {
        for (const char *at = option->choices; *at != '\0'; at++)
            fputc(*at == '|' ? separator : *at, out);
        fputc(separator, out);
    }
    if (option->hint == GP_HINT_FORMAT)
        for (const gp_exporter_t *exporter = gp_exporter_table(); exporter->name; exporter++)
            fprintf(out, "%s%c", exporter->name, separator);
    if (option->hint == GP_HINT_SORT)
        for (const gp_sort_key_t *key = gp_sort_keys; key->name != NULL; key++)
            fprintf(out, "%s%c", key->name, separator);
}

static void make_docs_fail(const char *path)
{
    fprintf(stderr, "make_docs: %s: %s\n", path, strerror(errno));
    exit(1);
}

static FILE *make_docs_create(const char *folder, const char *name)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        make_docs_fail(folder);
    }
    FILE *out = fopen(path, "w");
    if (out == NULL)
        make_docs_fail(path);
    return out;
}

static void make_docs_finish(FILE *out, const char *name)
{
    int failed = ferror(out);
    if (fclose(out) != 0 || failed)
        make_docs_fail(name);
}

static void make_docs_write_page(const char *sources, const char *folder, const gp_command_t *command)
{
    char source[PATH_MAX], name[64];
    snprintf(name, sizeof(name), "greenprof%s%s.1", command ? "-" : "", command ? command->name : "");
    snprintf(source, sizeof(source), "%s/%s.man", sources, command ? command->name : "greenprof");
    FILE *body = fopen(source, "r"), *out = make_docs_create(folder, name);
    gp_docs_man(out, command, body);
    if (body != NULL)
        fclose(body);
    make_docs_finish(out, name);
}

static void make_docs_folder(const char *path)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        make_docs_fail(path);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*write)(FILE *out);
    } completions[] = {{"greenprof.bash", gp_docs_bash}, {"_greenprof", gp_docs_zsh}, {"greenprof.fish", gp_docs_fish}};
    char folder[PATH_MAX];
    if (argc != 3) {
        fputs("usage: make_docs MAN-SOURCES OUT\n", stderr);
        return 2;
    }
    make_docs_folder(argv[2]);
    snprintf(folder, sizeof(folder), "%s/man", argv[2]);
    make_docs_folder(folder);
    make_docs_write_page(argv[1], folder, NULL);
    for (const gp_command_t *command = gp_commands; command->name != NULL; command++)
        make_docs_write_page(argv[1], folder, command);
    snprintf(folder, sizeof(folder), "%s/completion", argv[2]);
    make_docs_folder(folder);
    for (size_t i = 0; i < sizeof(completions) / sizeof(completions[0]); i++) {
        FILE *out = make_docs_create(folder, completions[i].name);
        completions[i].write(out);
        make_docs_finish(out, completions[i].name);
    }
    return 0;
}
