// pstats: one marshalled dict in cProfile's shape,
//   (file, first line, function) -> (primitive calls, calls, own seconds, cumulative seconds,
//   callers) callers: (file, first line, function) -> (calls, primitive calls, own seconds,
//   cumulative seconds)
// The first two of a caller's tuple are the other way round. Source: Lib/cProfile.py
// snapshot_stats(), Lib/pstats.py print_call_line() of CPython 3.11.
//
// A sampler counts no calls: the counts are numbers of samples (function_table.h), and a row that
// says so is part of the file.
#include "export/formats.h"

#include <errno.h>

#include "export/function_table.h"
#include "export/marshal.h"

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static void write_key(FILE *out, const gp_frame_t *frame)
{
    gp_marshal_tuple(out, 3);
    gp_marshal_text(out, frame->file);
    gp_marshal_int(out, frame->first_line);
    gp_marshal_text(out, frame->function);
}

static void write_function(FILE *out, const gp_function_table_t *table, const gp_function_t *item)
{
    write_key(out, item->frame);
    gp_marshal_tuple(out, 5);
    gp_marshal_int(out, item->primitive_calls);
    gp_marshal_int(out, item->calls);
    gp_marshal_float(out, seconds(item->self_ns));
    gp_marshal_float(out, seconds(item->total_ns));
    gp_marshal_dict_begin(out);
    for (uint32_t i = 0; i < item->caller_count; i++) {
        const gp_function_pair_t *pair = &table->pairs[item->first_caller + i];
        write_key(out, table->functions[pair->caller].frame);
        gp_marshal_tuple(out, 4);
        gp_marshal_int(out, pair->calls);
        gp_marshal_int(out, pair->primitive_calls);
        gp_marshal_float(out, seconds(pair->self_ns));
        gp_marshal_float(out, seconds(pair->total_ns));
    }
    gp_marshal_dict_end(out);
}

// A row without time; it also keeps a profile without samples from being an empty dict, which
// pstats refuses.
static void write_note(FILE *out, const char *text)
{
    const gp_frame_t frame = {.function = text, .file = "~"};

    write_key(out, &frame);
    gp_marshal_tuple(out, 5);
    gp_marshal_int(out, 0);
    gp_marshal_int(out, 0);
    gp_marshal_float(out, 0);
    gp_marshal_float(out, 0);
    gp_marshal_dict_begin(out);
    gp_marshal_dict_end(out);
}

size_t gp_pstats_notes(const gp_report_t *report, const char **notes)
{
    size_t count = 0;

    if (!report->exact_calls)
        notes[count++] = "[call counts are numbers of samples]";
    else if (report->row_count == 0)
        notes[count++] = "[no samples]";
    if (report->basis != GP_BASIS_EXACT)
        notes[count++] = "[times are those of the samples]";
    return count;
}

int gp_pstats_write(const gp_report_t *report, FILE *out)
{
    gp_function_table_t *table = gp_function_table_create(report);
    const char *notes[GP_PSTATS_NOTES_MAX];

    if (table == NULL)
        return -ENOMEM;
    gp_marshal_dict_begin(out);
    for (uint32_t i = 0; i < table->function_count; i++)
        // Frames of rows that were given up on have no samples; "[no samples]" has none but has the
        // time.
        if (table->functions[i].calls > 0 || table->functions[i].total_ns > 0)
            write_function(out, table, &table->functions[i]);
    size_t count = gp_pstats_notes(report, notes);
    for (size_t i = 0; i < count; i++)
        write_note(out, notes[i]);
    gp_marshal_dict_end(out);
    gp_function_table_free(table);
    return 0;
}
