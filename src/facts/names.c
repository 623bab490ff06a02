// SPDX-License-Identifier: MIT
#include "facts/names.h"

#include <errno.h>

const char *gp_pseudo_name(uint64_t pseudo)
{
    static const char *const names[] = {
        [GP_PSEUDO_SWITCHING] = "[switching]",
        [GP_PSEUDO_TRUNCATED] = "[truncated]",
        [GP_PSEUDO_UNKNOWN] = "[incomplete]",
        [GP_PSEUDO_PARKED] = "[parked]",
        [GP_PSEUDO_READY] = "[ready]",
        [GP_PSEUDO_WAITING] = "[waiting]",
        [GP_PSEUDO_PREEMPTED] = "[preempted]",
        [GP_PSEUDO_BLOCKED] = "[blocked]",
        [GP_PSEUDO_TREE_FULL] = "[tree full]",
        [GP_PSEUDO_NOT_STARTED] = "[not started]",
        [GP_PSEUDO_SIGNAL_BLOCKED] = "[signal blocked]",
        [GP_PSEUDO_GIL] = "[gil]",
        [GP_PSEUDO_QUEUED] = "[queued]",
    };
    bool is_known = pseudo < sizeof(names) / sizeof(names[0]) && names[pseudo] != NULL;
    return is_known ? names[pseudo] : "[unknown]";
}

uint32_t gp_facts_module_number(gp_namer_t *namer, gp_loc_t loc)
{
    const gp_module_info_t *module = gp_facts_module(namer->facts, loc);
    size_t slot = GP_LOC_MODULE(loc) % GP_NAMER_MODULES;
    if (module == NULL)
        return GP_SYMBOLIZER_NO_MODULE;
    if (namer->modules[slot].path != module->path) {
        namer->modules[slot].path = module->path;
        namer->modules[slot].number = gp_symbolizer_module(namer->symbolizer, module->path, strlen(module->path),
                                                           module->build_id, module->build_id_len);
    }
    return namer->modules[slot].number;
}

// The symbolizer for code without a module: with a perf map of the process' own.
static gp_symbolizer_t *names_jit(gp_namer_t *namer)
{
    const gp_file_header_t *header = &namer->facts->header;
    if (!namer->is_shared)
        return namer->symbolizer;
    if (namer->jit == NULL) {
        namer->jit = gp_symbolizer_create();
        if (namer->jit != NULL)
            gp_symbolizer_process_perf_map(namer->jit, header->pid, header->start_realtime_ns, UINT64_MAX);
    }
    return namer->jit;
}

static void names_of_language(const gp_namer_t *namer, gp_loc_t loc, gp_name_t *name)
{
    const gp_function_info_t *function = gp_facts_function(namer->facts, loc);
    name->is_pseudo = function == NULL;
    name->made = (gp_symbol_t){.function = "[lost function]", .file = "", .module = ""};
    if (function != NULL)
        name->made = (gp_symbol_t){.function = function->name,
                                   .file = function->file,
                                   .line = GP_LANGUAGE_LINE(GP_LOC_OFFSET(loc)),
                                   .first_line = function->first_line,
                                   .module = ""};
    name->symbol = &name->made;
}

int gp_facts_name(gp_namer_t *namer, gp_loc_t loc, gp_name_t *name)
{
    name->is_pseudo = GP_LOC_MODULE(loc) == GP_MODULE_PSEUDO;
    if (name->is_pseudo) {
        name->made = (gp_symbol_t){.function = gp_pseudo_name(GP_LOC_OFFSET(loc)), .file = "", .module = ""};
        name->symbol = &name->made;
    } else if (GP_LOC_MODULE(loc) == GP_MODULE_LANGUAGE) {
        names_of_language(namer, loc, name);
    } else {
        uint32_t module = gp_facts_module_number(namer, loc);
        gp_symbolizer_t *symbolizer = module != GP_SYMBOLIZER_NO_MODULE ? namer->symbolizer : names_jit(namer);
        name->symbol = symbolizer != NULL ? gp_symbolizer_resolve(symbolizer, module, GP_LOC_OFFSET(loc)) : NULL;
    }
    return name->symbol != NULL ? 0 : -ENOMEM;
}

void gp_namer_forget(gp_namer_t *namer)
{
    if (namer->jit != NULL)
        gp_symbolizer_destroy(namer->jit);
    *namer = (gp_namer_t){.facts = namer->facts, .symbolizer = namer->symbolizer, .is_shared = namer->is_shared};
}
