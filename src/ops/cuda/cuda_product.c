/*
 * cuda_product.c: matrix products on a GPU: by cuBLASLt, or by a kernel of matmul.cu, of which there is one for each type
 * and size of tiles.
 *
 * The tile is chosen by the shape alone: large ones read less, but there must be enough of them to go around; and where
 * long sums make few elements, there are none, and a block computes an element.
 */
#include "ops/cuda/cuda_ops.h"

#include "jit/kernel.h"
#include "ops/cuda/cuda_blas.h"
#include "ops/cuda/generate.h"
#include "ops/cuda/kernel_list.h"
#include "ops/cuda/kernel_texts.h"

#include <string.h>

enum {
    EDGE_NONE = 0, /* rows and columns of a tile */
    EDGE_SMALL = 64,
    EDGE_LARGE = 128,
    ENOUGH_TILES = 132, /* that keep a GPU busy */
    LONG_INNER = 256,   /* products that are worth a block */
    NARROW = 4,         /* rows or columns of which a tile would be mostly empty */
    GRID_MOST = 1 << 30,
};

/* As matmul.cu has it. */
struct arguments {
    const char *a, *b;
    char *c;
    int64_t rows, columns, inner;
    int64_t a_row, a_column, b_row, b_column, c_row, c_column;
    int64_t batch_count, batch_ndim;
    int64_t sizes[GN_DIMENSIONS_MAX];
    int64_t a_steps[GN_DIMENSIONS_MAX];
    int64_t b_steps[GN_DIMENSIONS_MAX];
    int64_t c_steps[GN_DIMENSIONS_MAX];
};

/* How a type is summed. Integers are, as unsigned ones, which wrap. */
struct arithmetic {
    const char *accumulator, *add, *sum, *result;
};

static struct arithmetic arithmetic_of(gn_dtype dtype)
{
    switch (dtype) {
    case GN_FLOAT64:
        return (struct arithmetic){"double", "((s) + (x))", "fma(x, y, s)", "(s)"};
    case GN_FLOAT16:
    case GN_BFLOAT16:
    case GN_FLOAT32:
        return (struct arithmetic){"float", "((s) + (x))", "fmaf(x, y, s)", "convert<element>(s)"};
    case GN_UINT64:
    case GN_INT64:
        return (struct arithmetic){"uint64", "((s) + (x))", "((s) + (x) * (y))", "(element)(s)"};
    case GN_BOOL:
        return (struct arithmetic){"unsigned", "((s) | (x))", "((s) | ((x) & (y)))",
                                   "(memory_type)(s)"};
    default:
        return (struct arithmetic){"unsigned", "((s) + (x))", "((s) + (x) * (y))", "(element)(s)"};
    }
}

static void text_make(gn_dtype dtype, int edge, struct gni_builder *text)
{
    struct arithmetic arithmetic = arithmetic_of(dtype);
    gni_builder_add(text, gni_text_elements, strlen(gni_text_elements));
    gni_builder_print(text, "\ntypedef %s element;\ntypedef %s accumulator;\n",
                      gni_cuda_type(dtype), arithmetic.accumulator);
    gni_builder_print(text,
                      "#define ADD(s, x) %s\n#define SUM(s, x, y) %s\n#define RESULT(s) %s\n"
                      "#define EDGE %d\n#define DIMENSIONS %d\n",
                      arithmetic.add, arithmetic.sum, arithmetic.result, edge, GN_DIMENSIONS_MAX);
    gni_builder_add(text, gni_text_matmul, strlen(gni_text_matmul));
}

/* Large tiles are for types of up to 4 bytes: edge_of(). */
void gni_cuda_product_list(struct gni_kernel_list *list)
{
    static const int edges[] = {EDGE_NONE, EDGE_SMALL, EDGE_LARGE};
    for (int dtype = 0; dtype < GN_DTYPE_COUNT; dtype++)
        for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
            struct gni_builder text = {.text = NULL};
            if (edges[i] == EDGE_LARGE && gni_dtype_size((gn_dtype)dtype) == 8)
                continue;
            text_make((gn_dtype)dtype, edges[i], &text);
            gni_kernel_list_add(list, "matmul_kernel", &text);
        }
}

static gn_status kernel_get(gn_device *device, gn_dtype dtype, int edge, struct gni_kernel **kernel)
{
    const unsigned char signature[] = {'m', (unsigned char)dtype, (unsigned char)edge};
    *kernel = gni_kernel_find(device, signature, sizeof signature);
    if (*kernel != NULL)
        return GN_OK;
    struct gni_builder text = {.text = NULL};
    text_make(dtype, edge, &text);
    return gni_kernel_build_general(device, "matmul_kernel", &text, signature, sizeof signature,
                                    kernel);
}

/* How many tiles, or elements, there are; as much as can be told if there are more. */
static int64_t tiles_of(const struct gni_product *product, int edge)
{
    int64_t high = edge == EDGE_NONE ? 1 : edge;
    int64_t tiles, down = (product->rows - 1) / high + 1, along = (product->columns - 1) / high + 1;
    if (__builtin_mul_overflow(down, along, &tiles) ||
        __builtin_mul_overflow(tiles, product->batch_count, &tiles))
        return INT64_MAX;
    return tiles;
}

/* Whether threads that take products side by side also read side by side. */
static bool is_deep(int64_t depth_stride)
{
    return depth_stride == 1 || depth_stride == 0;
}

static bool suits_elements(const struct gni_product *product)
{
    bool is_narrow = (product->columns <= NARROW && is_deep(product->a.column_stride)) ||
                     (product->rows <= NARROW && is_deep(product->b.row_stride));
    return product->inner >= LONG_INNER &&
           (is_narrow || tiles_of(product, EDGE_NONE) <= ENOUGH_TILES);
}

static int edge_of(const struct gni_product *product)
{
    if (suits_elements(product))
        return EDGE_NONE;
    return product->rows > EDGE_SMALL && product->columns > EDGE_SMALL &&
                   gni_dtype_size(product->dtype) < 8 &&
                   tiles_of(product, EDGE_LARGE) >= ENOUGH_TILES
               ? EDGE_LARGE
               : EDGE_SMALL;
}

static void arguments_make(const struct gni_product *product, struct arguments *arguments)
{
    *arguments = (struct arguments){
        .a = product->a.data,
        .b = product->b.data,
        .c = product->c.data,
        .rows = product->rows,
        .columns = product->columns,
        .inner = product->inner,
        .a_row = product->a.row_stride,
        .a_column = product->a.column_stride,
        .b_row = product->b.row_stride,
        .b_column = product->b.column_stride,
        .c_row = product->c.row_stride,
        .c_column = product->c.column_stride,
        .batch_count = product->batch_count,
        .batch_ndim = product->batch_ndim,
    };
    size_t nbytes = sizeof(int64_t) * (size_t)product->batch_ndim;
    memcpy(arguments->sizes, product->batch_sizes, nbytes);
    memcpy(arguments->a_steps, product->a_steps, nbytes);
    memcpy(arguments->b_steps, product->b_steps, nbytes);
    memcpy(arguments->c_steps, product->c_steps, nbytes);
}

static gn_status kernel_multiply(const struct gni_product *product, gn_stream *stream)
{
    struct arguments arguments;
    struct gni_kernel *kernel;
    int edge = edge_of(product);
    int64_t tiles = tiles_of(product, edge);
    GN_TRY(kernel_get(stream->device, product->dtype, edge, &kernel));
    arguments_make(product, &arguments);
    void *addresses[] = {&arguments};
    struct gni_launch launch = {.grid = {tiles < GRID_MOST ? (unsigned)tiles : GRID_MOST, 1, 1},
                                .block = {GNI_CUDA_BLOCK, 1, 1},
                                .arguments = addresses,
                                .waits = true};
    return gni_kernel_launch(kernel, stream, &launch);
}

gn_status gni_cuda_product(const struct gni_product *product, gn_device *device, gn_stream *stream)
{
    struct gni_product joined;
    bool is_done = false;
    if (product->batch_ndim > 1) {
        joined = *product;
        gni_product_join(&joined);
        product = &joined;
    }
    if (gni_cublas_suits(product, device))
        GN_TRY(gni_cublas_multiply(product, NULL, stream, &is_done));
    return is_done ? GN_OK : kernel_multiply(product, stream);
}

gn_status gni_cuda_product_add(const struct gni_product *product, const struct gni_matrix *addend,
                               gn_device *device, gn_stream *stream, bool *is_done)
{
    *is_done = false;
    return gni_cublas_suits(product, device) ? gni_cublas_multiply(product, addend, stream, is_done)
                                             : GN_OK;
}

unsigned gni_cuda_product_copies(const struct gni_product *product, gn_device *device)
{
    return gni_cublas_suits(product, device) ? gni_cublas_copies(product) : 0;
}
