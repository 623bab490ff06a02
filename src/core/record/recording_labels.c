// SPDX-License-Identifier: MIT
// Names of a process from its surroundings, for its capture: labels of its environment, and its control group.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/descriptors.h"
#include "record/recording.h"
#include "settings.h"

// As the environment was when the program was executed: to read it now would need the host's lock.
static void recording_labels_add_variables(gp_recording_t *recording)
{
    static const char *const names[] = {"OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"};
    FILE *file = gp_settings_are_refused() ? NULL : gp_descriptor_file("/proc/self/environ");
    char *text = NULL;
    size_t room = 0;
    while (file != NULL && getdelim(&text, &room, '\0', file) > 0) {
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            size_t len = strlen(names[i]);
            if (strncmp(text, names[i], len) == 0 && text[len] == '=' && text[len + 1] != '\0')
                gp_recording_text(recording, names[i], text + len + 1, strlen(text + len + 1));
        }
    }
    free(text);
    if (file != NULL)
        fclose(file);
}

void gp_recording_labels(gp_recording_t *recording)
{
    char text[2048];
    const char *labels = gp_setting(GP_SETTING_LABELS);
    if (labels != NULL)
        gp_recording_text(recording, "GREENPROF_LABELS", labels, strlen(labels));
    recording_labels_add_variables(recording);
    FILE *file = gp_descriptor_file("/proc/self/cgroup");
    size_t got = file != NULL ? fread(text, 1, sizeof(text), file) : 0;
    if (got > 0)
        gp_recording_text(recording, "cgroup", text, got);
    if (file != NULL)
        fclose(file);
}
