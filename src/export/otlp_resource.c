// SPDX-License-Identifier: MIT
#include "export/otlp_resource.h"

#include "export/otlp_fields.h"
#include "export/write/protobuf.h"

static void otlp_resource_put_pair(gp_text_t *message, unsigned field, const char *key, gp_text_t *value)
{
    gp_text_t pair = {0};
    gp_pb_text(&pair, KEY_VALUE_KEY, key);
    gp_pb_message(&pair, KEY_VALUE_VALUE, value);
    gp_pb_message(message, field, &pair);
    gp_text_free(value);
    gp_text_free(&pair);
}

void gp_otlp_put_text(gp_text_t *message, unsigned field, const char *key, const char *text)
{
    gp_text_t value = {0};
    gp_pb_text(&value, ANY_VALUE_STRING, text);
    otlp_resource_put_pair(message, field, key, &value);
}

void gp_otlp_put_number(gp_text_t *message, unsigned field, const char *key, uint64_t number)
{
    gp_text_t value = {0};
    gp_pb_uint(&value, ANY_VALUE_INT, number <= INT64_MAX ? number : INT64_MAX);
    otlp_resource_put_pair(message, field, key, &value);
}

void gp_otlp_put_resource(gp_text_t *resource, const char *service, const char *const *more)
{
    gp_otlp_put_text(resource, RESOURCE_ATTRIBUTES, "service.name", service);
    for (size_t i = 0; more != NULL && more[i] != NULL; i += 2)
        if (more[i + 1][0] != '\0')
            gp_otlp_put_text(resource, RESOURCE_ATTRIBUTES, more[i], more[i + 1]);
}
