// SPDX-License-Identifier: MIT
// Recordings, of which several captures may be parts: coroutines go on from part to part, under the same number.
#include <stdlib.h>
#include <string.h>

#include "capture/read/part_name.h"
#include "capture/several/captures_private.h"

#define SLACK_NS UINT64_C(1000000) // clocks of two parts agree within that

static bool captures_recordings_has_session(const gp_file_header_t *header)
{
    static const uint8_t none[sizeof(header->session)];
    return memcmp(header->session, none, sizeof(none)) != 0;
}

static bool captures_recordings_is_of_one_process(const gp_capture_input_t *a, const gp_capture_input_t *b)
{
    return a->header.pid == b->header.pid && a->header.pid != 0 &&
           memcmp(a->header.session, b->header.session, sizeof(a->header.session)) == 0 &&
           (captures_recordings_has_session(&a->header) || gp_part_is_beside(a->path, b->path));
}

// A program that the process became by exec counts its coroutines and its parts anew. A part begins where the requests
// that are open did: not before the first part of its program.
static uint64_t captures_recordings_image_of(const gp_captures_t *captures, const gp_capture_input_t *input)
{
    uint64_t start_ns = input->header.start_monotonic_ns, found_ns = 0;
    for (size_t i = 0; i < captures->count; i++) {
        const gp_capture_input_t *other = &captures->inputs[i];
        uint64_t other_ns = other->header.start_monotonic_ns;
        if (other->header.part == 0 && captures_recordings_is_of_one_process(other, input) &&
            other_ns <= start_ns + SLACK_NS && other_ns > found_ns)
            found_ns = other_ns;
    }
    return found_ns;
}

// By the first of its captures.
static size_t captures_recordings_recording_of(const gp_captures_t *captures, size_t number)
{
    const gp_capture_input_t *input = &captures->inputs[number];
    for (size_t i = 0; i < number; i++)
        if (captures->inputs[i].image_ns == input->image_ns &&
            captures_recordings_is_of_one_process(&captures->inputs[i], input))
            return captures->inputs[i].recording;
    return number;
}

static int captures_recordings_by_part(const void *left, const void *right)
{
    const gp_capture_input_t *a = left, *b = right;
    if (a->recording != b->recording)
        return a->recording < b->recording ? -1 : 1;
    return a->header.part < b->header.part ? -1 : a->header.part > b->header.part;
}

static bool captures_recordings_comes_behind(const gp_capture_input_t *input, const gp_capture_input_t *before)
{
    return input->header.part > before->header.part &&
           input->header.start_monotonic_ns + SLACK_NS >= before->header.start_monotonic_ns;
}

// Number the recordings, once in order: a part that does not come behind the one before is of another recording.
static void captures_recordings_number_recordings(gp_captures_t *captures)
{
    size_t former = SIZE_MAX;
    captures->recordings = 0;
    for (size_t i = 0; i < captures->count; i++) {
        gp_capture_input_t *input = &captures->inputs[i];
        bool goes_on = i > 0 && input->recording == former && captures_recordings_comes_behind(input, input - 1);
        former = input->recording;
        captures->recordings += !goes_on;
        input->recording = captures->recordings;
    }
}

void gp_captures_find_recordings(gp_captures_t *captures)
{
    for (size_t i = 0; i < captures->count; i++)
        captures->inputs[i].image_ns = captures_recordings_image_of(captures, &captures->inputs[i]);
    for (size_t i = 0; i < captures->count; i++)
        captures->inputs[i].recording = captures_recordings_recording_of(captures, i);
    qsort(captures->inputs, captures->count, sizeof(*captures->inputs), captures_recordings_by_part);
    captures_recordings_number_recordings(captures);
}

bool gp_captures_goes_on(const gp_captures_t *captures, const gp_capture_input_t *input)
{
    return input > captures->inputs && input[-1].recording == input->recording;
}

bool gp_captures_is_last_part(const gp_captures_t *captures, const gp_capture_input_t *input)
{
    return input + 1 == captures->inputs + captures->count || input[1].recording != input->recording;
}
