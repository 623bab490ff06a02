// SPDX-License-Identifier: MIT
// Field numbers of OpenTelemetry profiles and spans. Source: opentelemetry-proto v1.10 (v1.11 has the same).
//
// Versions before 1.10 had other numbers, and a reader of those misreads a newer file without an
// error: these numbers change together, with PROTO_VERSION.
#pragma once

#define PROTO_VERSION "1.10"

enum data_field { DATA_RESOURCE_PROFILES = 1, DATA_DICTIONARY = 2 };
enum resource_profiles_field { RESOURCE_PROFILES_RESOURCE = 1, RESOURCE_PROFILES_SCOPE_PROFILES = 2 };
enum scope_profiles_field { SCOPE_PROFILES_SCOPE = 1, SCOPE_PROFILES_PROFILES = 2 };
enum resource_field { RESOURCE_ATTRIBUTES = 1 };
enum scope_field { SCOPE_NAME = 1, SCOPE_ATTRIBUTES = 3 };
enum key_value_field { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };
enum any_value_field { ANY_VALUE_STRING = 1, ANY_VALUE_INT = 3 };
enum dictionary_field {
    DICTIONARY_MAPPING_TABLE = 1,
    DICTIONARY_LOCATION_TABLE = 2,
    DICTIONARY_FUNCTION_TABLE = 3,
    DICTIONARY_LINK_TABLE = 4,
    DICTIONARY_STRING_TABLE = 5,
    DICTIONARY_ATTRIBUTE_TABLE = 6,
    DICTIONARY_STACK_TABLE = 7,
};
enum profile_field {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLES = 2,
    PROFILE_TIME_UNIX_NANO = 3, // fixed64
    PROFILE_DURATION_NANO = 4,
    PROFILE_PERIOD_TYPE = 5,
    PROFILE_PERIOD = 6,
    PROFILE_PROFILE_ID = 7,
    PROFILE_ATTRIBUTE_INDICES = 11,
};
enum sample_field {
    SAMPLE_STACK_INDEX = 1,
    SAMPLE_ATTRIBUTE_INDICES = 2,
    SAMPLE_LINK_INDEX = 3,
    SAMPLE_VALUES = 4,
};
enum value_type_field { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum link_field { LINK_TRACE_ID = 1, LINK_SPAN_ID = 2 };
enum stack_field { STACK_LOCATION_INDICES = 1 };
enum location_field { LOCATION_MAPPING_INDEX = 1, LOCATION_ADDRESS = 2, LOCATION_LINES = 3 };
enum line_field { LINE_FUNCTION_INDEX = 1, LINE_LINE = 2 };
enum function_field {
    FUNCTION_NAME = 1,
    FUNCTION_FILENAME = 3,
    FUNCTION_START_LINE = 4,
};
enum mapping_field {
    MAPPING_MEMORY_START = 1,
    MAPPING_MEMORY_LIMIT = 2,
    MAPPING_FILENAME = 4,
    MAPPING_ATTRIBUTE_INDICES = 5,
};
enum attribute_field { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2, ATTRIBUTE_UNIT = 3 };

// Spans, which have not changed since version 1.0.
enum trace_data_field { TRACE_DATA_RESOURCE_SPANS = 1 };
enum resource_spans_field { RESOURCE_SPANS_RESOURCE = 1, RESOURCE_SPANS_SCOPE_SPANS = 2 };
enum scope_spans_field { SCOPE_SPANS_SCOPE = 1, SCOPE_SPANS_SPANS = 2 };
enum span_field {
    SPAN_TRACE_ID = 1,
    SPAN_SPAN_ID = 2,
    SPAN_PARENT_SPAN_ID = 4,
    SPAN_NAME = 5,
    SPAN_KIND = 6,
    SPAN_START_UNIX_NANO = 7, // fixed64
    SPAN_END_UNIX_NANO = 8,   // fixed64
    SPAN_ATTRIBUTES = 9,
    SPAN_STATUS = 15,
};
enum span_kind { SPAN_KIND_INTERNAL = 1, SPAN_KIND_SERVER = 2, SPAN_KIND_CLIENT = 3 };
enum status_field { STATUS_CODE = 3 };
enum status_code { STATUS_CODE_ERROR = 2 };

// A receiver's answer to profiles and to spans.
enum export_response_field { EXPORT_RESPONSE_PARTIAL_SUCCESS = 1 };
enum partial_success_field { PARTIAL_SUCCESS_REJECTED = 1, PARTIAL_SUCCESS_MESSAGE = 2 };
