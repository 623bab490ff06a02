// SPDX-License-Identifier: MIT
#include "environment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/signal_name.h"
#include "command.h"
#include "message.h"
#include "model/budget.h"
#include "model/clients.h"
#include "model/rotation.h"
#include "model/size_limit.h"
#include "model/variables.h"

#define PREFIX "GREENPROF_"

static const struct setting {
    const char *name, *value;
    double low, high;
    const char *standard, *sentence;
} settings[] = {
#define ROW(id, value, low, high, standard, sentence) {PREFIX #id, value, low, high, standard, sentence},
    GP_SETTINGS(ROW)};

enum { SETTINGS = sizeof(settings) / sizeof(settings[0]) };

static const char *environment_wanted_clients(const char *list)
{
    static char words[GP_CLIENTS_LIST_SIZE];
    uint64_t bits = 0;
    size_t len, used = 0;
    if (list[0] == '@' || (strlen(list) < sizeof(words) && gp_clients_obey(list, &bits, &len) == NULL))
        return NULL;
    for (int i = 0; i < GP_CLIENTS_COUNT; i++)
        used += (size_t)snprintf(words + used, sizeof(words) - used, "%s, ", gp_client_names[i]);
    snprintf(words + used, sizeof(words) - used, "-NAME of these, all, none, or @FILE");
    return words;
}

// The words behind "must be" for an invalid text; NULL where it is valid. Until the next call.
static const char *environment_wanted(const struct setting *setting, const char *text)
{
    static char range[64];
    const char *value = setting->value, *end;
    uint64_t bytes;
    uint32_t ppm;
    gp_rotation_t rotation;
    if (setting->high > 0) {
        double number = gp_number_read(text, &end);
        snprintf(range, sizeof(range), "a number from %.10g to %.10g", setting->low, setting->high);
        return end != text && *end == '\0' && number >= setting->low && number <= setting->high ? NULL : range;
    }
    if (strcmp(value, "PERCENT") == 0)
        return gp_budget_parse(text, &ppm) ? NULL : GP_BUDGET_WORDS;
    if (strcmp(value, "SIZE") == 0 && setting->low > 0)
        return gp_size_limit_parse(text, &bytes) && (double)bytes >= setting->low ? NULL : GP_MEMORY_LIMIT_WORDS;
    if (strcmp(value, "SIZE") == 0)
        return gp_size_limit_parse(text, &bytes) ? NULL : GP_SIZE_LIMIT_WORDS;
    if (strcmp(value, "SIZE|TIME") == 0)
        return gp_rotation_parse(text, &rotation) ? NULL : GP_ROTATION_WORDS;
    if (strcmp(value, "CLIENT[,...]") == 0)
        return environment_wanted_clients(text);
    if (strcmp(value, "SIGNAL") == 0)
        return gp_signal_by_name(text) >= 0 ? NULL : "one of " GP_SIGNAL_NAMES;
    return strchr(value, '|') == NULL || gp_option_is_choice(value, text) ? NULL : gp_option_choices(value);
}

int gp_environment_check(void)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        const char *text = getenv(settings[i].name), *words;
        if (text != NULL && text[0] != '\0' && (words = environment_wanted(&settings[i], text)) != NULL)
            return gp_fail(settings[i].name, "%s: must be %s", text, words);
    }
    return 0;
}

const char *gp_environment_wanted(const char *id, const char *text)
{
    for (size_t i = 0; i < SETTINGS; i++)
        if (strcmp(settings[i].name + strlen(PREFIX), id) == 0)
            return environment_wanted(&settings[i], text);
    return NULL;
}

void gp_environment_set(const gp_arguments_t *arguments)
{
    for (const gp_option_t *option = gp_options; option->name != NULL; option++) {
        char name[64], number[32];
        const void *field = (const char *)arguments + option->offset;
        const char *text = NULL;
        if (option->setting == NULL || !gp_option_applies(option, arguments->command))
            continue;
        if (option->kind == GP_OPTION_FLAG && *(const bool *)field)
            text = option->set_to;
        else if (option->kind == GP_OPTION_TEXT)
            text = *(const char *const *)field;
        else if (option->kind == GP_OPTION_NUMBER && *(const uint64_t *)field != 0) {
            snprintf(number, sizeof(number), "%" PRIu64, *(const uint64_t *)field);
            text = number;
        }
        snprintf(name, sizeof(name), PREFIX "%s", option->setting);
        if (text != NULL)
            setenv(name, text, 1);
    }
}

int gp_environment_help(void)
{
    printf("What libgreenprof-core reads from the environment of a program, as it is loaded:\n\n");
    for (size_t i = 0; i < SETTINGS; i++) {
        char text[512], head[128];
        snprintf(head, sizeof(head), "  %s=%s", settings[i].name, settings[i].value);
        snprintf(text, sizeof(text), "%s%s%s%s", settings[i].sentence, settings[i].standard ? " Default: " : "",
                 settings[i].standard ? settings[i].standard : "", settings[i].standard ? "." : "");
        gp_help_entry(head, text);
    }
    printf("\nA program that gains rights by being executed obeys none of them.\n");
    return gp_finish_stdout();
}
