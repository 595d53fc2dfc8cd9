/*
 * einsum.c: sums of products by the letters of dimensions.
 *
 *     "ij,jk->ik"     terms, one for each operand, and the result: a letter for each dimension
 *     "..."           the dimensions that have no letter, counted from the last one: they broadcast
 *
 * Operands are taken one after the other. Letters that occur in one operand alone, and not in the result, are summed
 * over at once. The next operand is then multiplied with the product so far, over the letters that nobody needs later:
 * element by element where there is no matrix in it, and as matrices in a batch otherwise.
 */
#include "base/host.h"
#include "base/text.h"
#include "ops/backend.h"
#include "tensor/tape.h"

#include <string.h>

enum {
    LETTERS = 52,                      /* A to Z, a to z, in this order */
    IDS = LETTERS + GN_DIMENSIONS_MAX, /* and what "..." stands for, from the last dimension on */
};

/* Dimensions, by the numbers of their letters. */
struct term {
    gn_tensor *tensor; /* a reference of its own, or NULL */
    int ndim;
    uint8_t ids[GN_DIMENSIONS_MAX];
};

struct equation {
    const char *given;
    char *text; /* without spaces */
    int count;
    struct term *terms; /* one for each operand */
    struct term result;
    int hidden;    /* the most dimensions that "..." stands for */
    int uses[IDS]; /* in all terms */
};

/* ---- parsing ----------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static uint8_t letter_id(char c)
{
    return (uint8_t)(c <= 'Z' ? c - 'A' : c - 'a' + LETTERS / 2);
}

struct id_text {
    char text[4];
};

static struct id_text id_text(uint8_t id)
{
    struct id_text made = {{(char)(id < LETTERS / 2 ? 'A' + id : 'a' + id - LETTERS / 2)}};
    if (id >= LETTERS)
        memcpy(made.text, "...", 4);
    return made;
}

/* Refuses what is no letter, no comma, no "..." and no arrow, or more than one of these. */
static gn_status text_check(const struct equation *equation)
{
    const char *arrow = strstr(equation->text, "->");
    for (const char *at = equation->text; *at != 0; at++) {
        int length = (unsigned char)*at < 0xc0 ? 1 : *at & 0x20 ? 3 + (*at >> 4 & 1) : 2;
        if (strncmp(at, "...", 3) == 0)
            at += 2;
        else if (!is_letter(*at) && strchr(",->", *at) == NULL)
            return gni_error(GN_ERROR_INVALID_VALUE, "einsum: '%.*s' cannot stand there in '%s'",
                             length, at, equation->given);
    }
    for (const char *at = equation->text; *at != 0; at++) {
        if (at == arrow)
            at++;
        else if (strchr("->", *at) != NULL)
            return gni_error(GN_ERROR_INVALID_VALUE, "einsum: '->' cannot stand there in '%s'",
                             equation->given);
    }
    if (arrow != NULL && strchr(arrow, ',') != NULL)
        return gni_error(GN_ERROR_INVALID_VALUE, "einsum: ',' cannot stand there in '%s'",
                         equation->given);
    return GN_OK;
}

/* The letters of a text, and `hidden` dimensions in place of "..."; which of the two there are. */
static gn_status letters_take(const struct equation *equation, const char *text, size_t length,
                              int hidden, struct term *term)
{
    bool is_hidden = false;
    term->ndim = 0;
    for (size_t i = 0; i < length; i++) {
        int added = text[i] == '.' ? hidden : 1;
        if (text[i] == '.' && is_hidden)
            return gni_error(GN_ERROR_INVALID_VALUE, "einsum: '...' cannot stand there in '%s'",
                             equation->given);
        if (term->ndim + added > GN_DIMENSIONS_MAX)
            return gni_error(GN_ERROR_SHAPE,
                             "einsum: '%s' has more letters than a tensor can have dimensions: %d",
                             equation->given, GN_DIMENSIONS_MAX);
        for (int k = added; text[i] == '.' && k > 0; k--)
            term->ids[term->ndim++] = (uint8_t)(LETTERS + k - 1);
        if (text[i] != '.') {
            term->ids[term->ndim++] = letter_id(text[i]);
            continue;
        }
        is_hidden = true;
        i += 2;
    }
    return GN_OK;
}

static gn_status term_parse(struct equation *equation, const char *text, size_t length, int rank,
                            struct term *term)
{
    int letters = 0;
    bool is_hidden = false;
    for (size_t i = 0; i < length; i++) {
        letters += text[i] != '.';
        is_hidden |= text[i] == '.';
    }
    int hidden = rank - letters;
    if (hidden < 0 || (hidden > 0 && !is_hidden))
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "einsum: '%.*s' of '%s' has %d letter%s, and its operand %d dimension%s",
                         (int)length, text, equation->given, letters, gni_plural((uint64_t)letters),
                         rank, gni_plural((uint64_t)rank));
    GN_TRY(letters_take(equation, text, length, hidden, term));
    if (is_hidden && hidden > equation->hidden)
        equation->hidden = hidden;
    for (int i = 0; i < term->ndim; i++)
        equation->uses[term->ids[i]]++;
    return GN_OK;
}

static gn_status terms_parse(struct equation *equation, gn_tensor *const *operands)
{
    const char *end = strstr(equation->text, "->"), *text = equation->text;
    size_t length = end != NULL ? (size_t)(end - text) : strlen(text);
    int count = 1;
    for (size_t i = 0; i < length; i++)
        count += text[i] == ',';
    if (count != equation->count)
        return gni_error(GN_ERROR_INVALID_VALUE, "einsum: '%s' is for %d operand%s, not %d",
                         equation->given, count, gni_plural((uint64_t)count), equation->count);
    end = text + length;
    for (int i = 0; i < count; i++) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        size_t own = (size_t)((comma != NULL ? comma : end) - text);
        GN_TRY(term_parse(equation, text, own, operands[i]->ndim, &equation->terms[i]));
        text += own + 1;
    }
    return GN_OK;
}

/* Without an arrow the result has what "..." stands for, and the letters that occur once, in the alphabet's order. */
static gn_status result_parse(struct equation *equation)
{
    const char *arrow = strstr(equation->text, "->");
    struct term *result = &equation->result;
    if (arrow != NULL) {
        GN_TRY(letters_take(equation, arrow + 2, strlen(arrow + 2), equation->hidden, result));
    } else {
        char once[LETTERS + 3] = "...";
        size_t length = 3;
        for (uint8_t id = 0; id < LETTERS; id++)
            if (equation->uses[id] == 1)
                once[length++] = id_text(id).text[0];
        GN_TRY(letters_take(equation, once, length, equation->hidden, result));
    }
    for (int i = 0; i < result->ndim; i++) {
        struct id_text letter = id_text(result->ids[i]);
        if (memchr(result->ids + i + 1, result->ids[i], (size_t)(result->ndim - i - 1)) != NULL)
            return gni_error(GN_ERROR_INVALID_VALUE, "einsum: the result of '%s' has '%s' twice",
                             equation->given, letter.text);
        if (equation->uses[result->ids[i]] == 0)
            return gni_error(GN_ERROR_INVALID_VALUE,
                             "einsum: '%s' in the result of '%s' is in no operand", letter.text,
                             equation->given);
    }
    return GN_OK;
}

static gn_status equation_parse(struct equation *equation, gn_tensor *const *operands)
{
    size_t length = 0;
    for (const char *at = equation->given; *at != 0; at++)
        if (*at != ' ')
            equation->text[length++] = *at;
    equation->text[length] = 0;
    GN_TRY(text_check(equation));
    GN_TRY(terms_parse(equation, operands));
    return result_parse(equation);
}

/* ---- one operand ------------------------------------------------------------------------------- */

static int id_find(const struct term *term, uint8_t id)
{
    const uint8_t *found = memchr(term->ids, id, (size_t)term->ndim);
    return found != NULL ? (int)(found - term->ids) : -1;
}

/* Puts another tensor, whose reference it takes over, in a term's place. */
static void term_replace(struct term *term, gn_tensor *tensor)
{
    gn_tensor_release(term->tensor);
    term->tensor = tensor;
}

/* The diagonals of letters that are there twice. */
static gn_status term_diagonals(struct term *term)
{
    const gn_tensor *tensor = term->tensor;
    int64_t sizes[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX];
    struct term made = {0};
    for (int i = 0; i < term->ndim; i++) {
        int at = id_find(&made, term->ids[i]);
        if (at >= 0 && sizes[at] != tensor->sizes[i])
            return gni_error(GN_ERROR_SHAPE, "einsum: '%s' stands for %lld and %lld elements",
                             id_text(term->ids[i]).text, (long long)sizes[at],
                             (long long)tensor->sizes[i]);
        if (at < 0) {
            at = made.ndim++;
            made.ids[at] = term->ids[i];
            sizes[at] = tensor->sizes[i];
            strides[at] = 0;
        }
        strides[at] += tensor->strides[i];
    }
    if (made.ndim == term->ndim)
        return GN_OK;
    gn_tensor *view;
    GN_TRY(gni_tensor_flush(term->tensor));
    GN_TRY(gni_tensor_alias_as(term->tensor, 0, made.ndim, sizes, strides, &view));
    term_replace(term, view);
    term->ndim = made.ndim;
    memcpy(term->ids, made.ids, sizeof term->ids);
    return GN_OK;
}

/* Sums over the letters that nobody needs. */
static gn_status term_sum(struct term *term, const bool *is_needed)
{
    uint32_t gone = 0;
    int left = 0;
    gn_tensor *summed;
    for (int i = 0; i < term->ndim; i++)
        gone |= is_needed[term->ids[i]] ? 0 : UINT32_C(1) << i;
    if (gone == 0)
        return GN_OK;
    GN_TRY(gn_reduce(GN_REDUCE_SUM, term->tensor, gone, false, &summed));
    term_replace(term, summed);
    for (int i = 0; i < term->ndim; i++)
        if ((gone >> i & 1) == 0)
            term->ids[left++] = term->ids[i];
    term->ndim = left;
    return GN_OK;
}

/* ---- two operands ------------------------------------------------------------------------------ */

/* What a letter of two operands is for. */
enum role {
    ROLE_BATCH,   /* in both, and needed later */
    ROLE_ROWS,    /* in the first one alone */
    ROLE_OVER,    /* in both, and summed over */
    ROLE_COLUMNS, /* in the second one alone */
    ROLES
};

struct pair {
    int64_t sizes[IDS];
    struct term by_role[ROLES];
    int64_t counts[ROLES]; /* elements of each */
};

/* Sizes of both, of which one may be 1. */
static gn_status pair_measure(struct pair *pair, const struct term *term, bool is_second)
{
    for (int i = 0; i < term->ndim; i++) {
        uint8_t id = term->ids[i];
        int64_t size = term->tensor->sizes[i], known = is_second ? pair->sizes[id] : -1;
        if (known >= 0 && known != size && known != 1 && size != 1)
            return gni_error(GN_ERROR_SHAPE,
                             "einsum: '%s' stands for %lld elements in one operand and for %lld in "
                             "another",
                             id_text(id).text, (long long)known, (long long)size);
        pair->sizes[id] = known < 0 || known == 1 ? size : known;
    }
    return GN_OK;
}

static void role_add(struct pair *pair, enum role role, uint8_t id)
{
    struct term *term = &pair->by_role[role];
    term->ids[term->ndim++] = id;
    pair->counts[role] *= pair->sizes[id];
}

static gn_status pair_init(struct pair *pair, const struct term *a, const struct term *b,
                           const bool *is_needed)
{
    for (int i = 0; i < IDS; i++)
        pair->sizes[i] = -1;
    for (int role = 0; role < ROLES; role++) {
        pair->by_role[role].ndim = 0;
        pair->counts[role] = 1;
    }
    GN_TRY(pair_measure(pair, a, false));
    GN_TRY(pair_measure(pair, b, true));
    for (int i = 0; i < a->ndim; i++) {
        bool is_both = id_find(b, a->ids[i]) >= 0;
        role_add(pair,
                 !is_both               ? ROLE_ROWS
                 : is_needed[a->ids[i]] ? ROLE_BATCH
                                        : ROLE_OVER,
                 a->ids[i]);
    }
    for (int i = 0; i < b->ndim; i++)
        if (id_find(a, b->ids[i]) < 0)
            role_add(pair, ROLE_COLUMNS, b->ids[i]);
    return GN_OK;
}

/* Dimensions of some roles, in their order. */
static gn_status roles_join(const struct pair *pair, int count, const enum role *roles,
                            struct term *joined)
{
    joined->ndim = 0;
    for (int i = 0; i < count; i++) {
        const struct term *role = &pair->by_role[roles[i]];
        if (joined->ndim + role->ndim > GN_DIMENSIONS_MAX)
            return gni_error(GN_ERROR_SHAPE,
                             "einsum: a product of two operands has more than %d dimensions",
                             GN_DIMENSIONS_MAX);
        memcpy(joined->ids + joined->ndim, role->ids, (size_t)role->ndim);
        joined->ndim += role->ndim;
    }
    return GN_OK;
}

/* A view of an operand with these dimensions. One that it has not is repeated: `has_missing` says whether with a size of 1
 * or with its own. */
static gn_status term_view(const struct pair *pair, const struct term *term,
                           const struct term *wanted, bool has_missing, gn_tensor **view)
{
    int64_t sizes[GN_DIMENSIONS_MAX], strides[GN_DIMENSIONS_MAX];
    gn_tensor *tensor = term->tensor;
    if (wanted->ndim == term->ndim && memcmp(wanted->ids, term->ids, (size_t)term->ndim) == 0) {
        bool is_whole = true;
        for (int i = 0; i < term->ndim; i++)
            is_whole &= has_missing || tensor->sizes[i] == pair->sizes[term->ids[i]];
        if (is_whole) {
            gn_tensor_retain(tensor);
            *view = tensor;
            return GN_OK;
        }
    }
    GN_TRY(gni_tensor_flush(tensor));
    for (int i = 0; i < wanted->ndim; i++) {
        int at = id_find(term, wanted->ids[i]);
        bool is_one = at < 0 || tensor->sizes[at] == 1;
        sizes[i] = is_one && has_missing ? 1 : pair->sizes[wanted->ids[i]];
        strides[i] = is_one ? 0 : tensor->strides[at];
    }
    return gni_tensor_alias_as(tensor, 0, wanted->ndim, sizes, strides, view);
}

/* Element by element, and summed over the last dimensions. Halves are multiplied and added as float32. */
static gn_status pair_multiply(const struct pair *pair, const struct term *a, const struct term *b,
                               const struct term *wanted, gn_dtype dtype, gn_tensor **result)
{
    gn_tensor *views[2] = {NULL}, *product = NULL, *summed = NULL;
    int over = pair->by_role[ROLE_OVER].ndim;
    uint32_t bits = ((UINT32_C(1) << over) - 1) << (wanted->ndim - over);
    gn_dtype computing = over > 0 ? gni_dtypes[dtype].compute : dtype;
    gn_status status = term_view(pair, a, wanted, true, &views[0]);
    if (status == GN_OK)
        status = term_view(pair, b, wanted, true, &views[1]);
    for (int i = 0; i < 2 && status == GN_OK; i++) {
        gn_tensor *cast;
        if (views[i]->dtype == computing)
            continue;
        status = gn_cast(views[i], computing, &cast);
        if (status != GN_OK)
            break;
        gn_tensor_release(views[i]);
        views[i] = cast;
    }
    gn_operand operands[] = {{.tensor = views[0]}, {.tensor = views[1]}};
    if (status == GN_OK)
        status = gn_elementwise(GN_OP_MULTIPLY, operands, &product);
    if (status == GN_OK && over > 0) {
        status = gn_reduce(GN_REDUCE_SUM, product, bits, false, &summed);
        gn_tensor_release(product);
        product = summed;
    }
    gn_tensor_release(views[0]);
    gn_tensor_release(views[1]);
    if (status != GN_OK || product->dtype == dtype) {
        *result = status == GN_OK ? product : NULL;
        return status;
    }
    status = gn_cast(product, dtype, result); /* sums of integers are int64 */
    gn_tensor_release(product);
    return status;
}

/* An operand as a batch of matrices; without letters of a batch as one, and a vector where `is_vector`. */
static gn_status matrix_make(const struct pair *pair, const struct term *term, gn_dtype dtype,
                             enum role rows, enum role columns, bool is_vector, gn_tensor **matrix)
{
    const enum role roles[] = {ROLE_BATCH, rows, columns};
    struct term wanted;
    gn_tensor *view, *cast;
    int64_t sizes[3];
    int ndim = 0;
    GN_TRY(roles_join(pair, 3, roles, &wanted));
    GN_TRY(term_view(pair, term, &wanted, false, &view));
    if (pair->by_role[ROLE_BATCH].ndim > 0)
        sizes[ndim++] = pair->counts[ROLE_BATCH];
    if (!is_vector || rows == ROLE_OVER)
        sizes[ndim++] = pair->counts[rows];
    if (!is_vector || columns == ROLE_OVER)
        sizes[ndim++] = pair->counts[columns];
    if (view->dtype != dtype) {
        gn_status status = gn_cast(view, dtype, &cast);
        gn_tensor_release(view);
        GN_TRY(status);
        view = cast;
    }
    gn_status status = gn_tensor_reshape(view, ndim, sizes, matrix);
    gn_tensor_release(view);
    return status;
}

static gn_status pair_product(const struct pair *pair, const struct term *a, const struct term *b,
                              const struct term *wanted, gn_dtype dtype, gn_tensor **result)
{
    bool has_batch = pair->by_role[ROLE_BATCH].ndim > 0;
    gn_tensor *left, *right, *product;
    int64_t sizes[GN_DIMENSIONS_MAX];
    GN_TRY(matrix_make(pair, a, dtype, ROLE_ROWS, ROLE_OVER,
                       !has_batch && pair->by_role[ROLE_ROWS].ndim == 0, &left));
    gn_status status = matrix_make(pair, b, dtype, ROLE_OVER, ROLE_COLUMNS,
                                   !has_batch && pair->by_role[ROLE_COLUMNS].ndim == 0, &right);
    if (status == GN_OK) {
        status = gn_matmul(left, right, &product);
        gn_tensor_release(right);
    }
    gn_tensor_release(left);
    GN_TRY(status);
    for (int i = 0; i < wanted->ndim; i++)
        sizes[i] = pair->sizes[wanted->ids[i]];
    status = gn_tensor_reshape(product, wanted->ndim, sizes, result);
    gn_tensor_release(product);
    return status;
}

/* The product of two operands, over the letters that nobody needs: in the place of the first. */
static gn_status pair_join(struct term *a, const struct term *b, const bool *is_needed)
{
    static const enum role of_result[] = {ROLE_BATCH, ROLE_ROWS, ROLE_COLUMNS, ROLE_OVER};
    const gn_operand operands[] = {{.tensor = a->tensor}, {.tensor = b->tensor}};
    struct pair pair;
    struct term wanted, whole;
    gn_dtype dtype;
    gn_tensor *made;
    GN_TRY(gn_result_type(2, operands, &dtype));
    GN_TRY(pair_init(&pair, a, b, is_needed));
    GN_TRY(roles_join(&pair, 3, of_result, &wanted));
    int over = pair.by_role[ROLE_OVER].ndim, batch = pair.by_role[ROLE_BATCH].ndim;
    bool has_matrix = pair.counts[ROLE_ROWS] != 1 || pair.counts[ROLE_COLUMNS] != 1;
    int64_t sums_most = gni_backend_get(a->tensor->device)->batch_sums_most;
    bool is_short = pair.counts[ROLE_BATCH] <= sums_most / (pair.counts[ROLE_OVER] + 1);
    bool is_by_elements = dtype != GN_BOOL &&
                          (over == 0 || (batch > 0 && !has_matrix && is_short)) &&
                          wanted.ndim + over <= GN_DIMENSIONS_MAX;
    if (is_by_elements) {
        GN_TRY(roles_join(&pair, 4, of_result, &whole));
        GN_TRY(pair_multiply(&pair, a, b, &whole, dtype, &made));
    } else {
        GN_TRY(pair_product(&pair, a, b, &wanted, dtype, &made));
    }
    term_replace(a, made);
    a->ndim = wanted.ndim;
    memcpy(a->ids, wanted.ids, sizeof a->ids);
    return GN_OK;
}

/* ---- all of them ------------------------------------------------------------------------------- */

/* The letters of the result, and of the operands from `first` on. */
static void needed_find(const struct equation *equation, int first, bool *is_needed)
{
    memset(is_needed, 0, sizeof *is_needed * IDS);
    for (int i = 0; i < equation->result.ndim; i++)
        is_needed[equation->result.ids[i]] = true;
    for (int t = first; t < equation->count; t++)
        for (int i = 0; i < equation->terms[t].ndim; i++)
            is_needed[equation->terms[t].ids[i]] = true;
}

/* `made` begins as the first operand. */
static gn_status operands_join(struct equation *equation, struct term *made)
{
    bool is_needed[IDS];
    for (int t = 0; t < equation->count; t++) {
        struct term *term = t == 0 ? made : &equation->terms[t];
        needed_find(equation, t + 1, is_needed);
        bool is_kept[IDS];
        memcpy(is_kept, is_needed, sizeof is_kept);
        for (int i = 0; t > 0 && i < made->ndim; i++)
            is_kept[made->ids[i]] = true;
        GN_TRY(term_diagonals(term));
        GN_TRY(term_sum(term, is_kept));
        if (t > 0)
            GN_TRY(pair_join(made, term, is_needed));
    }
    needed_find(equation, equation->count, is_needed);
    return term_sum(made, is_needed);
}

/* The dimensions in the result's order; a tensor of its own in any case. */
static gn_status result_show(const struct equation *equation, const struct term *made,
                             gn_tensor *const *operands, gn_tensor **result)
{
    int order[GN_DIMENSIONS_MAX];
    bool is_own = true, is_ordered = true;
    for (int i = 0; i < equation->count; i++)
        is_own &= made->tensor != operands[i];
    for (int i = 0; i < equation->result.ndim; i++) {
        order[i] = id_find(made, equation->result.ids[i]);
        is_ordered &= order[i] == i;
    }
    if (!is_own || !is_ordered)
        return gn_tensor_permute(made->tensor, order, result);
    gn_tensor_retain(made->tensor);
    *result = made->tensor;
    return GN_OK;
}

/* An operand, or a copy: gradients do not follow views of expanded tensors in all forms. */
static gn_status operand_take(gn_tensor *operand, gn_tensor **taken)
{
    if (gni_is_taped(operand) &&
        gni_strides_overlap(operand->ndim, operand->sizes, operand->strides))
        return gn_cast(operand, operand->dtype, taken);
    gn_tensor_retain(operand);
    *taken = operand;
    return GN_OK;
}

gn_status gn_einsum(const char *text, int count, gn_tensor *const *operands, gn_tensor **result)
{
    GN_CHECK_ARGUMENT(text != NULL && result != NULL && (operands != NULL || count == 0),
                      "text, operands and result must not be NULL");
    if (count < 1)
        return gni_error(GN_ERROR_INVALID_VALUE, "einsum: there must be an operand");
    struct equation equation = {.given = text, .count = count};
    size_t nbytes = (size_t)count * sizeof *equation.terms;
    equation.terms = gni_host_alloc(nbytes);
    equation.text = gni_host_alloc(strlen(text) + 1);
    gn_status status = GN_OK;
    if (equation.terms == NULL || equation.text == NULL)
        status = gni_error_host_memory(nbytes + strlen(text) + 1);
    int taken = 0;
    for (; taken < count && status == GN_OK; taken += status == GN_OK)
        status = operand_take(operands[taken], &equation.terms[taken].tensor);
    if (status == GN_OK)
        status = equation_parse(&equation, operands);
    if (status == GN_OK)
        status = operands_join(&equation, &equation.terms[0]);
    if (status == GN_OK)
        status = result_show(&equation, &equation.terms[0], operands, result);
    for (int i = 0; i < taken; i++)
        gn_tensor_release(equation.terms[i].tensor);
    gni_host_free(equation.terms);
    gni_host_free(equation.text);
    return status;
}
