// SPDX-License-Identifier: MIT
#include "record/session_size.h"

#include "capture/write/writer_file.h"
#include "record/rotation.h"
#include "record/session_records.h"
#include "record/session_report.h"

enum {
    LAST_BYTES = 4096, // of what is written at the end; and for each live coroutine:
    LAST_CORO_BYTES = 64,
    KNOWN_BYTES = 256 << 10, // of records after which it is known how small they become in the file
};

// Traces and stacks have numbers of 32 bits: after days of 10,000 traces a second there are only as many left as two
// flushes may need.
#define LAST_NUMBER (UINT32_MAX - (1u << 22))

static bool is_refused; // the next part, by the file system

// Bytes of the file with pending records, and with the records at its end.
static uint64_t session_size_expected_bytes(const gp_recording_t *recording)
{
    const gp_writer_t *writer = &recording->writer;
    uint64_t pending = gp_writer_pending(writer), packed = pending / 4;
    if (gp_session_handed_over_bytes() > KNOWN_BYTES && 2 * writer->bytes < gp_session_handed_over_bytes() / 2)
        packed = (uint64_t)((unsigned __int128)pending * 2 * writer->bytes / gp_session_handed_over_bytes());
    return writer->bytes + packed + LAST_BYTES + gp_session_live_coros() * LAST_CORO_BYTES;
}

bool gp_session_is_nearly_full(const gp_recording_t *recording)
{
    const gp_writer_t *writer = &recording->writer;
    uint32_t numbers =
        recording->traces.last > recording->stacks.last ? recording->traces.last : recording->stacks.last;
    return numbers > LAST_NUMBER || (writer->max_bytes != 0 && !gp_writer_is_turning(writer) &&
                                     session_size_expected_bytes(recording) > writer->max_bytes);
}

bool gp_session_is_time_to_turn(const gp_recording_t *recording, uint64_t now)
{
    const gp_writer_t *writer = &recording->writer;
    bool is_due = writer->is_regular && writer->lent == 0 && !gp_writer_is_turning(writer) &&
                  gp_rotation_is_due(session_size_expected_bytes(recording), now);
    if (is_due)
        is_refused = !gp_writer_file_may_turn(writer);
    return is_due && !is_refused;
}

bool gp_session_turn_is_refused(void)
{
    return is_refused;
}
