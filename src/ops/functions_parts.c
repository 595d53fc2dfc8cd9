/*
 * functions_parts.c: a tensor cut into views along a dimension.
 */
#include "base/host.h"
#include "ops/functions.h"
#include "tensor/tape.h"

#include <stdio.h>
#include <string.h>

enum {
    PARTS_MOST =
        1 << 20, /* views that one call makes, beyond those that have elements of their own */
};

/* Refuses more views than the tensor has elements in memory: a number alone would fill it. */
static void check_parts(struct gni_scope *s, const gn_tensor *x, int64_t count)
{
    int64_t held = 1;
    if (!gni_scope_is_ok(s) || count <= PARTS_MOST)
        return;
    for (int i = 0; i < x->ndim; i++)
        if (x->strides[i] != 0 || x->sizes[i] == 0) /* repeated elements are there once */
            held *= x->sizes[i];
    if (count > held || count > INT32_MAX)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "%lld parts of %lld elements: at most %d can be empty", (long long)count,
                       (long long)held, (int)PARTS_MOST);
}

/* A dimension of a tensor that has some; `dim` counts from the end if negative. */
static int part_dim(struct gni_scope *s, const gn_tensor *x, const gn_argument *dim)
{
    int64_t at = dim->operand.scalar.integer;
    if (x->ndim == 0)
        gni_scope_fail(s, GN_ERROR_SHAPE, "a tensor without dimensions has no parts");
    if (gni_scope_is_ok(s) && (at < -x->ndim || at >= x->ndim))
        gni_scope_fail(s, GN_ERROR_INDEX, "dimension %lld is out of range for shape %s",
                       (long long)at, gni_shape_text(x->ndim, x->sizes).text);
    return !gni_scope_is_ok(s) ? 0 : (int)(at < 0 ? at + x->ndim : at);
}

/* The parts that are made between these two are one step on the tape: the tensor's gradient is made of theirs at once. */
static bool parts_begin(const struct gni_scope *s, const gn_tensor *x)
{
    return gni_scope_is_ok(s) && gni_tape_enter(x);
}

static gn_status parts_give(struct gni_scope *s, bool is_taped, const char *name, gn_tensor *x,
                            struct gni_parts_details details, int count, gn_tensor **parts,
                            gn_results *results)
{
    const gn_operand input = {.tensor = x};
    gni_tape_is_paused &= !is_taped;
    if (is_taped && gni_scope_is_ok(s) && count > 0)
        s->status = gni_tape.record(&(struct gni_tape_step){.rule = GNI_RULE_PARTS,
                                                            .name = name,
                                                            .input_count = 1,
                                                            .inputs = &input,
                                                            .result_count = count,
                                                            .results = parts,
                                                            .details = &details,
                                                            .detail_bytes = sizeof details});
    return gni_scope_give_list(s, count, parts, results);
}

static gn_status unbind_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int dim = part_dim(&s, x, &a[1]);
    int64_t count = gni_scope_is_ok(&s) ? x->sizes[dim] : 0;
    check_parts(&s, x, count);
    gn_tensor **parts = gni_scope_list(&s, count);
    bool is_taped = parts_begin(&s, x);
    for (int64_t i = 0; i < count && gni_scope_is_ok(&s); i++)
        parts[i] = gni_select(&s, x, dim, i);
    return parts_give(&s, is_taped, "unbind", x, (struct gni_parts_details){dim, true}, (int)count,
                      parts, results);
}

/* Gives parts of one size; the last may be smaller. */
static gn_status give_pieces(struct gni_scope *s, gn_tensor *x, int dim, int64_t size,
                             gn_results *results)
{
    int64_t length = gni_scope_is_ok(s) ? x->sizes[dim] : 0;
    int64_t count = length > 0 ? (length - 1) / size + 1 : 1;
    check_parts(s, x, count);
    gn_tensor **parts = gni_scope_list(s, count);
    bool is_taped = parts_begin(s, x);
    for (int64_t i = 0, left = length; i < count && gni_scope_is_ok(s); i++) {
        int64_t own = left < size ? left : size;
        parts[i] = gni_narrow(s, x, dim, length - left, own);
        left -= own;
    }
    return parts_give(s, is_taped, "split", x, (struct gni_parts_details){dim, false}, (int)count,
                      parts, results);
}

/* Integers as text: "[1, 2]", the first of many. */
struct list_text {
    char text[256];
};

static struct list_text list_text(const gn_argument *list)
{
    struct list_text shown;
    int most = GN_DIMENSIONS_MAX, count = list->count < most ? list->count : most;
    struct gni_shape_text text = gni_shape_text(count, list->integers);
    size_t length = strcspn(text.text + 1, count == 1 ? ",)" : ")");
    (void)snprintf(shown.text, sizeof shown.text, "[%.*s%s]", (int)length, text.text + 1,
                   list->count > most ? ", ..." : "");
    return shown;
}

static gn_status split_by_sizes(struct gni_scope *s, gn_tensor *x, int dim, const gn_argument *list,
                                int64_t named_dim, gn_results *results)
{
    int64_t total = 0, begin = 0;
    for (int i = 0; i < list->count; i++) {
        if (list->integers[i] < 0)
            gni_scope_fail(s, GN_ERROR_SHAPE, "a size is not negative: %s", list_text(list).text);
        if (__builtin_add_overflow(total, list->integers[i], &total))
            total = -1;
    }
    if (gni_scope_is_ok(s) && total != x->sizes[dim])
        gni_scope_fail(
            s, GN_ERROR_SHAPE, "the sizes %s are %lld elements in all, and dimension %lld has %lld",
            list_text(list).text, (long long)total, (long long)named_dim, (long long)x->sizes[dim]);
    gn_tensor **parts = gni_scope_list(s, list->count);
    bool is_taped = parts_begin(s, x);
    for (int i = 0; i < list->count && gni_scope_is_ok(s); i++) {
        parts[i] = gni_narrow(s, x, dim, begin, list->integers[i]);
        begin += list->integers[i];
    }
    return parts_give(s, is_taped, "split", x, (struct gni_parts_details){dim, false}, list->count,
                      parts, results);
}

static gn_status split_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int dim = part_dim(&s, x, &a[2]);
    if (!a[1].is_single)
        return split_by_sizes(&s, x, dim, &a[1], a[2].operand.scalar.integer, results);
    if (a[1].integers[0] < 1)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "a part has at least 1 element");
    return give_pieces(&s, x, dim, gni_scope_is_ok(&s) ? a[1].integers[0] : 1, results);
}

static gn_status chunk_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    int64_t count = a[1].operand.scalar.integer;
    if (count < 1)
        gni_scope_fail(&s, GN_ERROR_INVALID_VALUE, "there is at least 1 part");
    int dim = part_dim(&s, x, &a[2]);
    if (!gni_scope_is_ok(&s) || x->sizes[dim] > 0)
        return give_pieces(&s, x, dim, gni_scope_is_ok(&s) ? (x->sizes[dim] - 1) / count + 1 : 1,
                           results);
    check_parts(&s, x, count); /* as many as are asked for, all empty */
    gn_tensor **parts = gni_scope_list(&s, count);
    for (int64_t i = 0; i < count && gni_scope_is_ok(&s); i++)
        parts[i] = gni_narrow(&s, x, dim, 0, 0);
    return gni_scope_give_list(&s, (int)count, parts, results);
}

/* An index as a slice takes it: from the end if negative, and within the dimension. */
static int64_t cut_at(int64_t index, int64_t length)
{
    int64_t at = index < 0 ? index + length : index;
    return at < 0 ? 0 : at > length ? length : at;
}

/* Gives parts of about one size, or those between indices. `is_even`: parts must have one size. */
static gn_status give_cuts(struct gni_scope *s, gn_tensor *x, int dim, const gn_argument *cuts,
                           bool is_even, gn_results *results)
{
    int64_t length = gni_scope_is_ok(s) ? x->sizes[dim] : 0;
    int64_t count = cuts->is_single ? cuts->integers[0] : (int64_t)cuts->count + 1;
    if (count < 1)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE, "there is at least 1 part, not %lld",
                       (long long)count);
    else if (is_even && cuts->is_single && length % count != 0)
        gni_scope_fail(s, GN_ERROR_INVALID_VALUE,
                       "dimension %d of %lld elements has no %lld parts of one size", dim,
                       (long long)length, (long long)count);
    check_parts(s, x, count);
    gn_tensor **parts = gni_scope_list(s, count);
    int64_t least = count > 0 ? length / count : 0, larger = count > 0 ? length % count : 0;
    for (int64_t i = 0, begin = 0; i < count && gni_scope_is_ok(s); i++) {
        int64_t end = i + 1 == count    ? length
                      : cuts->is_single ? begin + least + (i < larger)
                                        : cut_at(cuts->integers[i], length);
        parts[i] = gni_narrow(s, x, dim, begin, end > begin ? end - begin : 0);
        begin = end;
    }
    return gni_scope_give_list(s, (int)count, parts, results);
}

static gn_status tensor_split_call(const gn_argument *a, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    return give_cuts(&s, x, part_dim(&s, x, &a[2]), &a[1], false, results);
}

/* hsplit(), vsplit(), dsplit(): of tensors that have at least `ndim` dimensions. */
static gn_status split_along(const gn_argument *a, int ndim, int dim, gn_results *results)
{
    struct gni_scope s = {0};
    gn_tensor *x = a[0].operand.tensor;
    if (x->ndim < ndim)
        gni_scope_fail(&s, GN_ERROR_SHAPE, "the tensor has at least %d dimension%s, not shape %s",
                       ndim, ndim == 1 ? "" : "s", gni_shape_text(x->ndim, x->sizes).text);
    return give_cuts(&s, x, dim, &a[1], true, results);
}

static gn_status hsplit_call(const gn_argument *a, gn_results *results)
{
    return split_along(a, 1, a[0].operand.tensor->ndim > 1, results);
}

static gn_status vsplit_call(const gn_argument *a, gn_results *results)
{
    return split_along(a, 2, 0, results);
}

static gn_status dsplit_call(const gn_argument *a, gn_results *results)
{
    return split_along(a, 3, 2, results);
}

const gn_function gni_functions_parts[] = {
    {"unbind", NULL, "input: Tensor, dim: dim = 0 -> tensors", GN_FORM_METHOD, unbind_call,
     "Views of each index of a dimension.",
     ">>> [row.tolist() for row in genesis.unbind(genesis.tensor([[1, 2], [3, 4]]))]\n"
     "[[1, 2], [3, 4]]"},
    {"split", NULL, "input: Tensor, split_size_or_sections: sizes, dim: dim = 0 -> tensors",
     GN_FORM_METHOD, split_call,
     "Views of parts along a dimension: of so many elements each, or of these sizes.",
     ">>> [part.tolist() for part in genesis.split(genesis.arange(5), 2)]\n"
     "[[0, 1], [2, 3], [4]]"},
    {"chunk", NULL, "input: Tensor, chunks: int, dim: dim = 0 -> tensors", GN_FORM_METHOD,
     chunk_call, "Views of at most so many parts of one size; the last may be smaller.",
     ">>> [part.tolist() for part in genesis.chunk(genesis.arange(5), 2)]\n[[0, 1, 2], [3, 4]]"},
    {"tensor_split", NULL, "input: Tensor, indices_or_sections: sizes, dim: dim = 0 -> tensors",
     GN_FORM_METHOD, tensor_split_call,
     "Views of so many parts of about one size, or of those that indices cut.",
     ">>> [part.tolist() for part in genesis.tensor_split(genesis.arange(5), 2)]\n"
     "[[0, 1, 2], [3, 4]]"},
    {"hsplit", NULL, "input: Tensor, indices_or_sections: sizes -> tensors", GN_FORM_METHOD,
     hsplit_call,
     "Views of parts along the second dimension, of a vector along the first: so many of one size, "
     "or those that indices cut.",
     ">>> [part.tolist() for part in genesis.hsplit(genesis.tensor([[1, 2], [3, 4]]), 2)]\n"
     "[[[1], [3]], [[2], [4]]]"},
    {"vsplit", NULL, "input: Tensor, indices_or_sections: sizes -> tensors", GN_FORM_METHOD,
     vsplit_call,
     "Views of parts along the first dimension: so many of one size, or those that indices cut.",
     ">>> [part.tolist() for part in genesis.vsplit(genesis.tensor([[1, 2], [3, 4]]), 2)]\n"
     "[[[1, 2]], [[3, 4]]]"},
    {"dsplit", NULL, "input: Tensor, indices_or_sections: sizes -> tensors", GN_FORM_METHOD,
     dsplit_call,
     "Views of parts along the third dimension: so many of one size, or those that indices cut.",
     ">>> [part.shape for part in genesis.dsplit(genesis.zeros(2, 3, 4), 2)]\n"
     "[(2, 3, 2), (2, 3, 2)]"},
    {0},
};
