// SPDX-License-Identifier: MIT
// Parts of a report that only some exporters want: labels of rows, mappings of addresses.
#include "report/report_builder.h"

#include <errno.h>
#include <string.h>

static bool report_detail_same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool report_detail_same_label(const void *owner, uint32_t number, const void *key)
{
    const gp_label_t *a = &((const gp_builder_t *)owner)->labels[number], *b = key;
    return a->coroutine_id == b->coroutine_id && a->thread_id == b->thread_id && a->request == b->request &&
           report_detail_same_text(a->coroutine, b->coroutine) && report_detail_same_text(a->thread, b->thread) &&
           report_detail_same_text(a->trace, b->trace);
}

static uint64_t report_detail_hash_label(const gp_label_t *label)
{
    uint64_t hash = gp_hash_more(gp_hash_u64(label->coroutine_id), (uint64_t)label->request << 32 | label->thread_id);
    return label->trace ? gp_hash_more(hash, gp_hash_bytes(label->trace, strlen(label->trace))) : hash;
}

// Returns whether it worked; NULL stays NULL.
static bool report_detail_keep_text(gp_builder_t *builder, const char **text)
{
    if (*text != NULL)
        *text = gp_arena_text(&builder->arena, *text, strlen(*text));
    return *text != NULL;
}

static bool report_detail_keep_label(gp_builder_t *builder, gp_label_t *label)
{
    return (label->coroutine == NULL || report_detail_keep_text(builder, &label->coroutine)) &&
           (label->thread == NULL || report_detail_keep_text(builder, &label->thread)) &&
           (label->trace == NULL || report_detail_keep_text(builder, &label->trace));
}

uint32_t gp_builder_label(gp_builder_t *builder, const gp_label_t *label)
{
    uint64_t hash = report_detail_hash_label(label);
    uint32_t number = gp_index_find(&builder->label_index, hash, report_detail_same_label, builder, label);
    if (number == GP_INDEX_NONE) {
        gp_label_t copy = *label;
        number = (uint32_t)builder->label_count;
        if (!report_detail_keep_label(builder, &copy) ||
            gp_grow(&builder->labels, &builder->label_capacity, number, sizeof(*builder->labels)) < 0 ||
            gp_index_add(&builder->label_index, hash, number) < 0)
            return 0;
        builder->labels[builder->label_count++] = copy;
    }
    return number + 1;
}

static bool report_detail_same_module(const void *owner, uint32_t number, const void *key)
{
    return ((const gp_builder_t *)owner)->mapping_modules[number].module == *(const uint32_t *)key;
}

uint32_t gp_builder_mapping_find(const gp_builder_t *builder, uint32_t module)
{
    uint32_t number =
        gp_index_find(&builder->mapping_index, gp_hash_u64(module), report_detail_same_module, builder, &module);
    return number == GP_INDEX_NONE ? 0 : number + 1;
}

static const char *report_detail_hex_text(gp_arena_t *arena, const uint8_t *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    char *text = gp_arena_alloc(arena, 2 * len + 1);
    for (size_t i = 0; i < len && text != NULL; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    return text;
}

int gp_builder_mapping(gp_builder_t *builder, uint32_t module, uint64_t bias, const gp_report_mapping_t *mapping,
                       const uint8_t *build_id, size_t build_id_len)
{
    size_t number = builder->mapping_count;
    gp_report_mapping_t copy = *mapping;
    if (!(builder->wants & GP_WANT_ADDRESSES) || module == GP_SYMBOLIZER_NO_MODULE ||
        gp_builder_mapping_find(builder, module) != 0)
        return 0;
    copy.build_id = report_detail_hex_text(&builder->arena, build_id, build_id_len);
    if (!report_detail_keep_text(builder, &copy.path) || copy.build_id == NULL ||
        gp_grow(&builder->mappings, &builder->mapping_capacity, number, sizeof(*builder->mappings)) < 0 ||
        gp_grow(&builder->mapping_modules, &builder->mapping_module_capacity, number,
                sizeof(*builder->mapping_modules)) < 0 ||
        gp_index_add(&builder->mapping_index, gp_hash_u64(module), (uint32_t)number) < 0)
        return -ENOMEM;
    builder->mappings[number] = copy;
    builder->mapping_modules[number] = (gp_builder_mapping_t){module, bias};
    builder->mapping_count++;
    return 0;
}
