#include "ops/cpu/column_sums.h"

#include "base/checked.h"
#include "base/host.h"
#include "ops/cpu/plan.h"

#include <string.h>

enum {
    WIDTH_MOST = 2048,        /* columns that make a chunk have fewer rows */
    CHUNK_ELEMENTS = 1 << 19, /* of a chunk, at least */
};

int64_t gni_column_chunk_rows(int64_t columns)
{
    int64_t width = columns < WIDTH_MOST ? columns : WIDTH_MOST;
    return (CHUNK_ELEMENTS + width - 1) / width;
}

int gni_column_sums_count(const struct gni_program *program)
{
    int count = 0;
    for (int i = 0; i < program->output_count; i++)
        count += program->outputs[i].is_column;
    return count;
}

gn_status gni_column_sums_init(struct gni_column_sums *sums, const struct gni_program *program)
{
    *sums = (struct gni_column_sums){.program = program,
                                     .rows = program->count / program->columns,
                                     .columns = program->columns,
                                     .chunk_rows = gni_column_chunk_rows(program->columns),
                                     .reducer = gni_row_reducer_find()};
    sums->chunks = (sums->rows + sums->chunk_rows - 1) / sums->chunk_rows;
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].is_column) {
            gni_assert(sums->count < GNI_COLUMN_SUMS_MOST &&
                       gni_program_held(program, program->outputs[i].value) == GN_FLOAT32);
            sums->outputs[sums->count++] = (short)i;
        }
    size_t nbytes = (size_t)(sums->chunks * sums->count * sums->columns) * sizeof(double);
    sums->totals = gni_host_alloc(nbytes); /* zeros */
    return sums->totals != NULL ? GN_OK : gni_error_host_memory(nbytes);
}

void gni_column_sums_deinit(struct gni_column_sums *sums)
{
    gni_host_free(sums->totals);
}

static double *totals_of(const struct gni_column_sums *sums, int64_t chunk, int n)
{
    return sums->totals + (chunk * sums->count + n) * sums->columns;
}

bool gni_column_chunk_init(struct gni_column_chunk *chunk, const struct gni_column_sums *sums,
                           int64_t number)
{
    int64_t rows = (int64_t)sums->count * GNI_REDUCE_ROWS;
    chunk->sums = sums;
    chunk->number = number;
    chunk->copies = gni_host_alloc((size_t)((rows + 1) * sums->columns) * sizeof(float));
    if (chunk->copies == NULL)
        return false;
    chunk->nothing = chunk->copies + rows * sums->columns;
    for (int64_t i = 0; i < sums->columns; i++)
        chunk->nothing[i] = -0.0f;
    return true;
}

static void group_add(struct gni_column_chunk *chunk, int n)
{
    const struct gni_column_sums *sums = chunk->sums;
    sums->reducer(totals_of(sums, chunk->number, n), chunk->rows[n], (size_t)sums->columns);
}

int gni_column_chunk_group(const struct gni_column_chunk *chunk, int64_t row)
{
    return (int)((row - chunk->number * chunk->sums->chunk_rows) % GNI_REDUCE_ROWS);
}

float *gni_column_chunk_place(const struct gni_column_chunk *chunk, int n, int64_t row,
                              size_t column)
{
    int64_t number = (int64_t)n * GNI_REDUCE_ROWS + gni_column_chunk_group(chunk, row);
    return chunk->copies + number * chunk->sums->columns + column;
}

void gni_column_chunk_add(struct gni_column_chunk *chunk, int n, int64_t row, size_t column,
                          const float *elements, size_t count, bool is_lasting)
{
    const struct gni_column_sums *sums = chunk->sums;
    int place = gni_column_chunk_group(chunk, row);
    if (is_lasting) {
        if (column == 0)
            chunk->rows[n][place] = elements;
    } else {
        float *copy = gni_column_chunk_place(chunk, n, row, column);
        if (elements != copy)
            memcpy(copy, elements, count * sizeof *elements);
        chunk->rows[n][place] = copy - column;
    }
    if (place == GNI_REDUCE_ROWS - 1 && (int64_t)(column + count) == sums->columns)
        group_add(chunk, n);
}

void gni_column_chunk_deinit(struct gni_column_chunk *chunk)
{
    const struct gni_column_sums *sums = chunk->sums;
    int64_t first = chunk->number * sums->chunk_rows, rows = sums->rows - first;
    rows = rows < sums->chunk_rows ? rows : sums->chunk_rows;
    for (int n = 0; n < sums->count && rows % GNI_REDUCE_ROWS != 0; n++) {
        for (int64_t place = rows % GNI_REDUCE_ROWS; place < GNI_REDUCE_ROWS; place++)
            chunk->rows[n][place] = chunk->nothing;
        group_add(chunk, n);
    }
    gni_host_free(chunk->copies);
}

/* Some elements of an output, from their totals. */
static void output_store(const struct gni_output *output, int64_t column, const double *totals,
                         size_t count)
{
    float narrowed[GNI_TILE_MOST];
    const void *in[] = {totals};
    gn_dtype from = GN_FLOAT64;
    if (output->is_narrowed) {
        gni_loop_convert(GN_FLOAT64, GN_FLOAT32)(narrowed, in, count);
        in[0] = narrowed;
        from = GN_FLOAT32;
    }
    gni_loop_convert(from, output->dtype)(
        output->data + (size_t)column * gni_dtypes[output->dtype].size, in, count);
}

void gni_column_sums_finish(struct gni_column_sums *sums)
{
    for (int n = 0; n < sums->count; n++) {
        const struct gni_output *output = &sums->program->outputs[sums->outputs[n]];
        double *all = totals_of(sums, 0, n);
        for (int64_t chunk = 1; chunk < sums->chunks; chunk++) {
            const double *totals = totals_of(sums, chunk, n);
            for (int64_t i = 0; i < sums->columns; i++)
                all[i] += totals[i];
        }
        for (int64_t column = 0; column < sums->columns; column += GNI_TILE_MOST) {
            int64_t left = sums->columns - column;
            output_store(output, column, all + column,
                         (size_t)(left < GNI_TILE_MOST ? left : GNI_TILE_MOST));
        }
    }
}
