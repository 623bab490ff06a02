// SPDX-License-Identifier: MIT
#include "record/span_stack.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collect/functions.h"
#include "collect/modules.h"
#include "collect/spawn_locate.h"
#include "coro/spawn.h"

enum { LINE_SIZE = 256 };

static const char *span_stack_file(uint32_t module)
{
    size_t count;
    const gp_module_t *modules = gp_modules_all(&count);
    for (size_t i = 0; i < count; i++)
        if (modules[i].id == module && modules[i].path != NULL) {
            const char *slash = strrchr(modules[i].path, '/');
            return slash != NULL ? slash + 1 : modules[i].path;
        }
    return "?";
}

// Returns the length; 0 = a frame that says nothing.
static size_t span_stack_line(gp_loc_t loc, char line[LINE_SIZE])
{
    uint64_t offset = GP_LOC_OFFSET(loc);
    int len = 0;
    if (GP_LOC_MODULE(loc) == GP_MODULE_LANGUAGE) {
        const gp_function_name_t *function = gp_functions_at(GP_LANGUAGE_FUNCTION(offset));
        len = snprintf(line, LINE_SIZE, "%s", function != NULL ? function->name : "?");
    } else if (GP_LOC_MODULE(loc) == GP_MODULE_PSEUDO) {
        bool is_cut = offset == GP_PSEUDO_TRUNCATED;
        len = snprintf(line, LINE_SIZE, "%s", is_cut ? "[truncated]" : "[incomplete]");
    } else {
        len = snprintf(line, LINE_SIZE, "%s+0x%" PRIx64, span_stack_file(GP_LOC_MODULE(loc)), offset);
    }
    return len < LINE_SIZE ? (size_t)len : LINE_SIZE - 1;
}

const char *gp_span_stack_text(uint32_t site, char text[GP_SPAN_STACK_TEXT])
{
    char line[LINE_SIZE];
    size_t at = GP_SPAN_STACK_TEXT - 1;
    if (site == 0)
        return NULL;
    gp_spawn_locate();
    const gp_spawn_site_t *found = gp_spawn_site_at(site);
    text[at] = '\0';
    for (uint32_t i = 0; i < found->loc_depth; i++) { // from the end of the text
        size_t len = span_stack_line(found->locs[i], line);
        bool is_last = text[at] == '\0';
        if (at < len + 1)
            break;
        if (!is_last)
            text[--at] = '\n';
        at -= len;
        memcpy(text + at, line, len);
    }
    return text[at] != '\0' ? text + at : NULL;
}
