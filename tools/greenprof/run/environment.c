// SPDX-License-Identifier: MIT
#include "environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/signal_name.h"
#include "command.h"
#include "message.h"
#include "model/budget.h"
#include "model/rotation.h"
#include "model/size_limit.h"
#include "model/variables.h"

static const struct {
    const char *name, *value;
    double low, high;
    const char *standard, *sentence;
} settings[] = {
#define ROW(id, value, low, high, standard, sentence) {"GREENPROF_" #id, value, low, high, standard, sentence},
    GP_SETTINGS(ROW)};

enum { SETTINGS = sizeof(settings) / sizeof(settings[0]) };

static int check_number(size_t i, const char *text)
{
    const char *end;
    double number = gp_number_read(text, &end);
    if (end != text && *end == '\0' && number >= settings[i].low && number <= settings[i].high)
        return 0;
    return gp_fail(settings[i].name, "%s: must be a number from %.10g to %.10g", text, settings[i].low,
                   settings[i].high);
}

int gp_environment_check(void)
{
    int status = 0;
    uint64_t bytes;
    uint32_t ppm;
    gp_rotation_t rotation;
    for (size_t i = 0; i < SETTINGS && status == 0; i++) {
        const char *text = getenv(settings[i].name), *value = settings[i].value;
        if (text == NULL || text[0] == '\0')
            continue;
        if (settings[i].high > 0)
            status = check_number(i, text);
        else if (strchr(value, '|') != NULL && !gp_option_is_choice(value, text))
            status = gp_fail(settings[i].name, "%s: must be %s", text, gp_option_choices(value));
        else if (strcmp(value, "SIGNAL") == 0 && gp_signal_by_name(text) < 0)
            status = gp_fail(settings[i].name, "%s: cannot be used for %s; use one of %s", text,
                             strcmp(settings[i].name, "GREENPROF_SIGNAL") == 0 ? "sampling" : "this", GP_SIGNAL_NAMES);
        else if (strcmp(settings[i].name, "GREENPROF_BUDGET") == 0 && !gp_budget_parse(text, &ppm))
            status = gp_fail(settings[i].name, "%s: must be %s", text, GP_BUDGET_WORDS);
        else if ((strcmp(settings[i].name, "GREENPROF_MAX_SIZE") == 0 ||
                  strcmp(settings[i].name, "GREENPROF_KEEP_SIZE") == 0) &&
                 !gp_size_limit_parse(text, &bytes))
            status = gp_fail(settings[i].name, "%s: must be %s", text, GP_SIZE_LIMIT_WORDS);
        else if (strcmp(settings[i].name, "GREENPROF_MEMORY_LIMIT") == 0 &&
                 (!gp_size_limit_parse(text, &bytes) || bytes < GP_MEMORY_LIMIT_LEAST))
            status = gp_fail(settings[i].name, "%s: must be %s", text, GP_MEMORY_LIMIT_WORDS);
        else if (strcmp(settings[i].name, "GREENPROF_ROTATE") == 0 && !gp_rotation_parse(text, &rotation))
            status = gp_fail(settings[i].name, "%s: must be %s", text, GP_ROTATION_WORDS);
    }
    return status;
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
