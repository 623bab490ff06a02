// SPDX-License-Identifier: MIT
#include "settings.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/number.h"

enum { ROOM_BYTES = 8192 };

#define ROW(id, value, low, high, standard, sentence) {"GREENPROF_" #id, standard, low, high},
static const struct {
    const char *name, *standard;
    double low, high;
} settings[GP_SETTING_COUNT] = {GP_SETTINGS(ROW)};

static const char *values[GP_SETTING_COUNT];
static bool are_read;

// Programs overwrite the memory that their environment is in, to show a title there. Not on the heap: some hooks are
// loaded before the program's allocator. Text without room is left where it is.
static const char *settings_keep(const char *text)
{
    static char room[ROOM_BYTES];
    static size_t used;
    size_t size = strlen(text) + 1;
    if (size > sizeof(room) - used)
        return text;
    char *kept = memcpy(room + used, text, size);
    used += size;
    return kept;
}

static void settings_read_all(void)
{
    for (int i = 0; i < GP_SETTING_COUNT; i++) {
        const char *value = secure_getenv(settings[i].name);
        values[i] = value != NULL && value[0] != '\0' ? settings_keep(value) : NULL;
    }
    are_read = true;
}

const char *gp_setting(gp_setting_t setting)
{
    if (!are_read)
        settings_read_all();
    return values[setting];
}

bool gp_setting_is(gp_setting_t setting, const char *value)
{
    const char *found = gp_setting(setting);
    return strcmp(found != NULL ? found : settings[setting].standard, value) == 0;
}

double gp_setting_number(gp_setting_t setting)
{
    const char *text = gp_setting(setting), *standard = settings[setting].standard;
    const char *end;
    double number = text != NULL ? gp_number_read(text, &end) : 0;
    if (text != NULL && *end == '\0' && number >= settings[setting].low && number <= settings[setting].high)
        return number;
    return standard != NULL ? gp_number_read(standard, &end) : 0;
}

static void settings_give(char *line)
{
    char *value = strchr(line, '=');
    if (value == NULL)
        return;
    *value++ = '\0';
    for (int i = 0; i < GP_SETTING_COUNT; i++)
        if (strcmp(settings[i].name + strlen("GREENPROF_"), line) == 0)
            values[i] = value[0] != '\0' ? value : NULL;
}

void gp_settings_give(char *text)
{
    if (!are_read)
        settings_read_all();
    for (char *line = text, *end; line[0] != '\0'; line = end) {
        end = line + strcspn(line, "\n");
        if (*end != '\0')
            *end++ = '\0';
        settings_give(line);
    }
}

bool gp_settings_are_refused(void)
{
    return getauxval(AT_SECURE) != 0;
}
