// SPDX-License-Identifier: MIT
// Completions for bash, zsh and fish.
#include <stdint.h>
#include <string.h>

#include "make_docs.h"

static void make_completion_put_commands(FILE *out, const char *separator)
{
    for (const gp_command_t *command = gp_commands; command->name != NULL; command++)
        fprintf(out, "%s%s%s%s", command > gp_commands ? separator : "", command->name,
                command->also != NULL ? separator : "", command->also != NULL ? command->also : "");
}

// A command's names, as a pattern or a list.
static const char *make_completion_names(const gp_command_t *command, const char *separator)
{
    static char names[64];
    snprintf(names, sizeof(names), "%s%s%s", command->name, command->also != NULL ? separator : "",
             command->also != NULL ? command->also : "");
    return names;
}

static bool make_completion_is_repeatable(const gp_option_t *option)
{
    return option->kind == GP_OPTION_TEXTS || option->kind == GP_OPTION_REGEX;
}

static bool make_completion_has_words(const gp_option_t *option)
{
    return option->choices != NULL || option->hint == GP_HINT_FORMAT || option->hint == GP_HINT_SORT;
}

// bash

static void make_completion_bash_hint(FILE *out, gp_hint_t hint)
{
    switch (hint) {
    case GP_HINT_FILE:
        fputs("_greenprof_files", out);
        break;
    case GP_HINT_CAPTURE:
        fputs("_greenprof_captures", out);
        break;
    case GP_HINT_PROGRAM:
        fputs("_greenprof_programs", out);
        break;
    case GP_HINT_COMMAND:
        fputs("_greenprof_words '", out);
        make_completion_put_commands(out, " ");
        fputs("'", out);
        break;
    default:
        fputs(":", out);
    }
}

static void make_completion_bash_value(FILE *out, const gp_option_t *option)
{
    fputs("        ", out);
    if (option->letter != '\0')
        fprintf(out, "-%c | ", option->letter);
    fprintf(out, "--%s) ", option->name);
    if (make_completion_has_words(option)) {
        fprintf(out, "%s '", option->hint == GP_HINT_SORT ? "_greenprof_list" : "_greenprof_words");
        gp_docs_words(out, option, ' ');
        fputs("'", out);
    } else {
        make_completion_bash_hint(out, option->hint);
    }
    fputs("; return ;;\n", out);
}

static void make_completion_bash_command(FILE *out, const gp_command_t *command)
{
    fprintf(out, "    %s)\n        case $previous in\n", make_completion_names(command, " | "));
    for (const gp_option_t *option = gp_options; option->name != NULL; option++)
        if (gp_option_applies(option, command) && option->kind != GP_OPTION_FLAG)
            make_completion_bash_value(out, option);
    fputs("        esac\n        if [[ $current == -* ]]; then\n            _greenprof_words '", out);
    for (const gp_option_t *option = gp_options; option->name != NULL; option++) {
        if (!gp_option_applies(option, command))
            continue;
        if (option->letter != '\0')
            fprintf(out, "-%c ", option->letter);
        fprintf(out, "--%s ", option->name);
    }
    fputs("'\n        else\n            ", out);
    make_completion_bash_hint(out, command->hint);
    fputs("\n        fi\n        ;;\n", out);
}

void gp_docs_bash(FILE *out)
{
    fputs("# bash completion for greenprof; made from the tables of the command.\n\n"
          "_greenprof_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$current\"); }\n\n"
          "# Keys and commas.\n"
          "_greenprof_list() {\n"
          "    local before=\n"
          "    [[ $current != *,* ]] || before=${current%,*},\n"
          "    mapfile -t COMPREPLY < <(compgen -P \"$before\" -W \"$1\" -- \"${current##*,}\")\n"
          "}\n\n"
          "_greenprof_files() {\n"
          "    compopt -o filenames 2>/dev/null\n"
          "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
          "}\n\n"
          "_greenprof_captures() {\n"
          "    compopt -o filenames 2>/dev/null\n"
          "    mapfile -t COMPREPLY < <(compgen -f -X '!*.greenprof*' -- \"$current\"; "
          "compgen -d -- \"$current\")\n"
          "}\n\n"
          "_greenprof_programs() {\n"
          "    compopt -o filenames 2>/dev/null\n"
          "    mapfile -t COMPREPLY < <(compgen -c -- \"$current\"; compgen -f -- \"$current\")\n"
          "}\n\n"
          "_greenprof() {\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    COMPREPLY=()\n"
          "    if [[ $current == '=' ]]; then # --option=VALUE comes in three words\n"
          "        current=\n"
          "    elif [[ $previous == '=' ]]; then\n"
          "        previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    fi\n"
          "    if ((COMP_CWORD == 1)); then\n"
          "        _greenprof_words '",
          out);
    make_completion_put_commands(out, " ");
    fputs(" --help --version'\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n", out);
    for (const gp_command_t *command = gp_commands; command->name != NULL; command++)
        make_completion_bash_command(out, command);
    fputs("    esac\n}\n\ncomplete -F _greenprof greenprof\n", out);
}

// zsh and fish: a description is the first sentence.

static void make_completion_put_description(FILE *out, const char *text, const char *escaped)
{
    const char *end = strstr(text, ". ");
    size_t len = end != NULL ? (size_t)(end - text) : strlen(text);
    if (len > 0 && (text[len - 1] == '.' || text[len - 1] == ':'))
        len--;
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\'')
            fputs("'\\''", out);
        else
            fprintf(out, "%s%c", strchr(escaped, text[i]) != NULL ? "\\" : "", text[i]);
}

static void make_completion_zsh_hint(FILE *out, gp_hint_t hint)
{
    switch (hint) {
    case GP_HINT_FILE:
        fputs("_files", out);
        break;
    case GP_HINT_CAPTURE:
        fputs("_files -g \"*.greenprof*(-.)\"", out);
        break;
    case GP_HINT_PROGRAM:
        fputs("_normal", out);
        break;
    case GP_HINT_COMMAND:
        fputs("(", out);
        make_completion_put_commands(out, " ");
        fputs(")", out);
        break;
    default:
        fputc(' ', out);
    }
}

static void make_completion_zsh_value(FILE *out, const gp_option_t *option)
{
    const char *value = gp_option_value(option);
    if (value == NULL)
        return;
    fputc(':', out);
    make_completion_put_description(out, option->value != NULL ? option->value : option->name, ":[]");
    fputc(':', out);
    if (option->hint == GP_HINT_SORT) {
        fputs("_values -s , key ", out);
        gp_docs_words(out, option, ' ');
    } else if (make_completion_has_words(option)) {
        fputc('(', out);
        gp_docs_words(out, option, ' ');
        fputc(')', out);
    } else {
        make_completion_zsh_hint(out, option->hint);
    }
}

static void make_completion_zsh_option(FILE *out, const gp_option_t *option)
{
    bool flag = option->kind == GP_OPTION_FLAG;
    fputs("      ", out);
    if (make_completion_is_repeatable(option))
        fputs("'*'", out);
    else if (option->letter != '\0')
        fprintf(out, "'(-%c --%s)'", option->letter, option->name);
    if (option->letter != '\0')
        fprintf(out, "{-%c%s,--%s%s}", option->letter, flag ? "" : "+", option->name, flag ? "" : "=");
    else
        fprintf(out, "--%s%s", option->name, flag ? "" : "=");
    fputs("'[", out);
    make_completion_put_description(out, option->what, ":[]\\");
    fputc(']', out);
    make_completion_zsh_value(out, option);
    fputs("' \\\n", out);
}

void gp_docs_zsh(FILE *out)
{
    fputs("#compdef greenprof\n"
          "# Made from the tables of the command.\n\n"
          "_greenprof() {\n"
          "  local -a commands\n"
          "  commands=(\n",
          out);
    for (const gp_command_t *command = gp_commands; command->name != NULL; command++) {
        fprintf(out, "    '%s:", command->name);
        make_completion_put_description(out, command->what, ":\\");
        fputs("'\n", out);
    }
    fputs("  )\n"
          "  if (( CURRENT == 2 )); then\n"
          "    _describe command commands\n"
          "    return\n"
          "  fi\n"
          "  local command=$words[2]\n"
          "  shift words\n"
          "  (( CURRENT-- ))\n"
          "  case $command in\n",
          out);
    for (const gp_command_t *command = gp_commands; command->name != NULL; command++) {
        fprintf(out, "  %s)\n    _arguments -s -S \\\n", make_completion_names(command, "|"));
        for (const gp_option_t *option = gp_options; option->name != NULL; option++)
            if (gp_option_applies(option, command))
                make_completion_zsh_option(out, option);
        fprintf(out, "      '%s:operand:", command->rest_is_program ? "*:" : "*");
        make_completion_zsh_hint(out, command->hint);
        fputs("'\n    ;;\n", out);
    }
    fputs("  esac\n}\n\n_greenprof \"$@\"\n", out);
}

static void make_completion_fish_option(FILE *out, const gp_command_t *command, const gp_option_t *option)
{
    fprintf(out, "complete -c greenprof -n '__fish_seen_subcommand_from %s' -l %s", make_completion_names(command, " "),
            option->name);
    if (option->letter != '\0')
        fprintf(out, " -s %c", option->letter);
    if (make_completion_has_words(option)) {
        fputs(" -x -a '", out);
        gp_docs_words(out, option, ' ');
        fputs("'", out);
    } else if (option->hint == GP_HINT_FILE) {
        fputs(" -r -F", out);
    } else if (option->kind != GP_OPTION_FLAG) {
        fputs(" -x", out);
    }
    fputs(" -d '", out);
    make_completion_put_description(out, option->what, "\\");
    fputs("'\n", out);
}

static void make_completion_fish_operands(FILE *out, const gp_command_t *command)
{
    fprintf(out, "complete -c greenprof -n '__fish_seen_subcommand_from %s' ", make_completion_names(command, " "));
    switch (command->hint) {
    case GP_HINT_CAPTURE:
        fputs("-k -x -a '(__fish_complete_suffix .greenprof)'\n", out);
        break;
    case GP_HINT_PROGRAM:
        fputs("-x -a '(__fish_complete_subcommand --fcs-skip=2)'\n", out);
        break;
    case GP_HINT_COMMAND:
        fputs("-x -a '", out);
        make_completion_put_commands(out, " ");
        fputs("'\n", out);
        break;
    default:
        fputs("-F\n", out);
    }
}

void gp_docs_fish(FILE *out)
{
    fputs("# fish completion for greenprof; made from the tables of the command.\n"
          "complete -c greenprof -f\n"
          "complete -c greenprof -n __fish_use_subcommand -s h -l help -d 'Show help'\n"
          "complete -c greenprof -n __fish_use_subcommand -s V -l version -d 'Show the version'\n",
          out);
    for (const gp_command_t *command = gp_commands; command->name != NULL; command++) {
        fprintf(out, "complete -c greenprof -n __fish_use_subcommand -a %s -d '", command->name);
        make_completion_put_description(out, command->what, "\\");
        fputs("'\n", out);
    }
    for (const gp_command_t *command = gp_commands; command->name != NULL; command++) {
        for (const gp_option_t *option = gp_options; option->name != NULL; option++)
            if (gp_option_applies(option, command))
                make_completion_fish_option(out, command, option);
        make_completion_fish_operands(out, command);
    }
}
