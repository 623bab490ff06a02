// SPDX-License-Identifier: MIT
// Fuzz target: an untrusted capture, through the reader, the report and every exporter.
// Built for libFuzzer, and with tests/fuzz/replay.c.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "facts/dataset.h"
#include "fuzz.h"
#include "report/report_options.h"

static void export_all(const gp_dataset_t *dataset, gp_by_t by, unsigned wants)
{
    // No symbols: the module paths in the input are the fuzzer's, and it shall not read the files
    // of this machine.
    gp_symbolizer_t *symbolizer = gp_symbolizer_create();
    const gp_report_options_t options = {
        .by = by,
        .stitch = by != GP_BY_NONE,
        .measure = wants & GP_WANT_LABELS ? GP_MEASURE_WALL : GP_MEASURE_CPU,
        .wants = wants,
    };
    gp_report_t *report = gp_report_from_capture(dataset, &options, symbolizer);
    uint64_t sum = 0;
    if (report == NULL)
        abort();
    for (uint32_t i = 0; i < report->row_count; i++)
        sum += report->rows[i].weight_ns;
    if (sum != report->total_ns)
        abort();
    for (const gp_exporter_t *exporter = gp_exporter_table(); exporter->name; exporter++) {
        FILE *out = fopen("/dev/null", "w");
        int expected = exporter->wants & GP_WANT_TIMELINE && report->timeline == NULL ? -ENOTSUP : 0;
        if (out == NULL || exporter->write(report, out) != expected)
            abort();
        fclose(out);
    }
    gp_report_free(report);
    gp_symbolizer_destroy(symbolizer);
}

// Checksums keep a fuzzer out: make them right wherever a chunk may begin.
static void heal(uint8_t *data, size_t size)
{
    gp_chunk_header_t chunk;
    if (size >= sizeof(gp_file_header_t))
        memset(data + offsetof(gp_file_header_t, checksum), 0, 8);
    for (size_t at = sizeof(gp_file_header_t); at + sizeof(chunk) <= size; at += 8) {
        memcpy(&chunk, data + at, sizeof(chunk));
        if (chunk.magic != GP_CHUNK_MAGIC || chunk.payload_len > size - at - sizeof(chunk))
            continue;
        chunk.checksum =
            XXH64(data + at + sizeof(chunk), chunk.payload_len, GP_CHUNK_SEED(chunk.type, chunk.flags, chunk.sequence));
        memcpy(data + at, &chunk, sizeof(chunk));
    }
}

static void read_capture(const uint8_t *data, size_t size, unsigned wants)
{
    char error[GP_READER_ERROR_SIZE];
    int fd = memfd_create("capture", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0)
        abort();
    gp_dataset_t *dataset = gp_dataset_load_fd(fd, GP_KEEP_HOGS | (wants == 0 ? GP_KEEP_PLAIN : 0u), error);
    close(fd);
    if (dataset == NULL)
        return;
    for (size_t i = 0; i < dataset->facts.modules.count; i++)
        dataset->facts.modules.items[i].path = "module";
    export_all(dataset, GP_BY_NONE, wants);
    if (wants & GP_WANT_LABELS) {
        export_all(dataset, GP_BY_COROUTINE, wants);
        export_all(dataset, GP_BY_TRACE, GP_WANT_HEAVIEST);
    }
    gp_dataset_free(dataset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *healed = malloc(size + 1);
    memcpy(healed, data, size);
    heal(healed, size);
    read_capture(healed, size, GP_WANT_LABELS | GP_WANT_TIMELINE | GP_WANT_ADDRESSES);
    read_capture(healed, size, 0);
    read_capture(data, size, 0);
    free(healed);
    return 0;
}
