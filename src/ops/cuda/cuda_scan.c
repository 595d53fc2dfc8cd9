/*
 * cuda_scan.c: cumulative sums, products, maxima and minima on a GPU: a kernel for each type, in one launch or two.
 */
#include "ops/cuda/fixed.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/kernel_list.h"
#include "ops/cuda/kernel_texts.h"

enum {
    ENOUGH_BLOCKS = 528, /* that keep a GPU busy: 4 for each of 132 multiprocessors */
    THREAD_MOST = 32,    /* elements of a row that a thread scans */
    WARP_MOST = 512,     /* that a warp scans */
    CHUNK_LEAST = 2048,  /* of a part of a row, */
    STRIDED_LEAST = 64,  /* that a thread has to itself */
    PARTS_MOST = 1024,
    PACK = 4,                /* elements that a thread takes at once: ITEMS in scan.cu */
    STRIDED_PARTS_MOST = 64, /* each thread adds up those before its own */
};

/* By [is_product][is_real]; products of double are by themselves. */
static const struct gni_fixed scans[2][2] = {
    {{"cumsum", {gni_text_scan}, "#define SCAN_SUM\ntypedef int64 result;\n"},
     {"cumsum", {gni_text_scan}, "#define SCAN_SUM\n#define SCAN_REAL\ntypedef element result;\n"}},
    {{"cumprod", {gni_text_scan}, "#define SCAN_PRODUCT\ntypedef int64 result;\n"},
     {"cumprod",
      {gni_text_scan},
      "#define SCAN_PRODUCT\n#define SCAN_REAL\ntypedef element result;\n"}},
};
static const struct gni_fixed double_product = {
    "cumprod",
    {gni_text_scan},
    "#define SCAN_PRODUCT\n#define SCAN_REAL\n#define SCAN_DOUBLE\ntypedef element result;\n"};

/* By [is_maximum][is_real]: where they are is the result. */
static const struct gni_fixed extremes[2][2] = {
    {{"cummin", {gni_text_scan}, "#define SCAN_MINIMUM\ntypedef int64 result;\n"},
     {"cummin",
      {gni_text_scan},
      "#define SCAN_MINIMUM\n#define SCAN_REAL\ntypedef int64 result;\n"}},
    {{"cummax", {gni_text_scan}, "#define SCAN_MAXIMUM\ntypedef int64 result;\n"},
     {"cummax",
      {gni_text_scan},
      "#define SCAN_MAXIMUM\n#define SCAN_REAL\ntypedef int64 result;\n"}},
};

struct arguments {
    const void *in;
    void *out;
    int64_t rows, length, inner, parts, chunk, threads, is_packed, is_total;
    void *totals;
    void *values; /* of extremes */
};

/* How the work is spread: by its shape alone. */
static int64_t scan_spread(struct arguments *arguments)
{
    int64_t length = arguments->length;
    bool is_strided = arguments->inner > 1;
    arguments->threads = is_strided || length <= THREAD_MOST ? 1 : length <= WARP_MOST ? 32 : 256;
    int64_t blocks = gni_divided_up(arguments->rows, GNI_FIXED_THREADS / arguments->threads);
    int64_t parts = 1;
    if (blocks < ENOUGH_BLOCKS) {
        int64_t wanted = gni_divided_up(ENOUGH_BLOCKS, blocks);
        int64_t cuts = gni_divided_up(length, is_strided ? STRIDED_LEAST : CHUNK_LEAST);
        int64_t most = is_strided ? STRIDED_PARTS_MOST : PARTS_MOST;
        parts = wanted < cuts ? wanted : cuts;
        parts = parts < most ? parts : most;
    }
    arguments->chunk = gni_divided_up(gni_divided_up(length, parts), PACK) * PACK;
    arguments->parts = gni_divided_up(length, arguments->chunk);
    return blocks;
}

/* `values` is NULL but for extremes; `total_bytes` is the size of a running in scan.cu. */
static gn_status scan_run(const struct gni_fixed *scan, size_t total_bytes, gn_tensor *tensor,
                          const struct gni_along *along, gn_tensor *result, gn_tensor *values,
                          gn_stream *stream)
{
    struct gni_storage *totals = NULL;
    struct arguments arguments = {
        .in = gni_tensor_data(tensor),
        .out = gni_tensor_data(result),
        .values = values != NULL ? gni_tensor_data(values) : NULL,
        .rows = along->outer * along->inner,
        .length = along->length,
        .inner = along->inner,
    };
    arguments.is_packed = along->length % PACK == 0 && (uintptr_t)arguments.in % 16 == 0 &&
                          (uintptr_t)arguments.out % 16 == 0;
    int64_t blocks = scan_spread(&arguments);
    GN_TRY(gni_storage_order(gni_tensor_storage(tensor), stream, false));
    GN_TRY(gni_storage_order(gni_tensor_storage(result), stream, true));
    if (values != NULL)
        GN_TRY(gni_storage_order(gni_tensor_storage(values), stream, true));
    if (arguments.parts == 1)
        return gni_fixed_launch(scan, tensor->dtype, blocks, 1, &arguments, stream);
    GN_TRY(gni_storage_create(
        stream->device, (size_t)(arguments.rows * arguments.parts) * total_bytes, stream, &totals));
    arguments.totals = totals->data;
    arguments.is_total = 1;
    gn_status status =
        gni_fixed_launch(scan, tensor->dtype, blocks, arguments.parts - 1, &arguments, stream);
    arguments.is_total = 0;
    if (status == GN_OK)
        status = gni_fixed_launch(scan, tensor->dtype, blocks, arguments.parts, &arguments, stream);
    gni_storage_release(totals);
    return status;
}

gn_status gni_cuda_cumulate(gn_tensor *tensor, const struct gni_along *along, bool is_product,
                            gn_tensor *result, gn_stream *stream)
{
    bool is_real = gni_dtype_kind(tensor->dtype) == GNI_KIND_FLOATING;
    const struct gni_fixed *scan =
        is_product && tensor->dtype == GN_FLOAT64 ? &double_product : &scans[is_product][is_real];
    return scan_run(scan, is_product && is_real ? 16 : 8, tensor, along, result, NULL, stream);
}

gn_status gni_cuda_cumulate_extreme(gn_tensor *tensor, const struct gni_along *along,
                                    bool is_maximum, gn_tensor *values, gn_tensor *indices,
                                    gn_stream *stream)
{
    bool is_real = gni_dtype_kind(tensor->dtype) == GNI_KIND_FLOATING;
    return scan_run(&extremes[is_maximum][is_real], 16, tensor, along, indices, values, stream);
}

void gni_cuda_scan_list(struct gni_kernel_list *list)
{
    for (int i = 0; i < 2; i++) {
        const unsigned is_kept =
            i == 1 ? GNI_TYPE(GN_FLOAT64) : 0; /* its products are by themselves */
        gni_kernel_list_add_fixed(list, &scans[i][0], GNI_TYPES_INTEGER);
        gni_kernel_list_add_fixed(list, &scans[i][1], GNI_TYPES_REAL & ~is_kept);
        gni_kernel_list_add_fixed(list, &extremes[i][0], GNI_TYPES_INTEGER);
        gni_kernel_list_add_fixed(list, &extremes[i][1], GNI_TYPES_REAL);
    }
    gni_kernel_list_add_fixed(list, &double_product, GNI_TYPE(GN_FLOAT64));
}
