/*
 * autocast_policies.c: the list of functions that autocast converts the tensors of, as PyTorch has it for the CPU and for CUDA.
 *
 * A function that is not listed takes the types that it is given. What PyTorch makes of listed operations is listed here with
 * the type that comes out of those: einsum() of products, normalize() of a norm.
 */
#include "autograd/autocast.h"

#include <string.h>

enum {
    NONE = GN_AUTOCAST_NONE,
    LOWER = GN_AUTOCAST_LOWER,
    FLOAT32 = GN_AUTOCAST_FLOAT32,
    WIDEST = GN_AUTOCAST_WIDEST,
    LIKE_FIRST = GN_AUTOCAST_LIKE_FIRST,
    REFUSED = GN_AUTOCAST_REFUSED,
};

static const struct row {
    const char *name;
    gn_autocast_rule rule; /* CPU, CUDA */
} rows[] = {
    /* products, and what is made of them */
    {"_recurrent", {{LOWER, LOWER}}}, /* of LSTM and its like */
    {"addbmm", {{LOWER, LOWER}}},
    {"addmm", {{LOWER, LOWER}}},
    {"addmv", {{NONE, LOWER}}},
    {"addr", {{NONE, LOWER}}},
    {"baddbmm", {{LOWER, LOWER}}},
    {"bmm", {{LOWER, LOWER}}},
    {"chain_matmul", {{LOWER, LOWER}}},
    {"conv1d", {{LOWER, LOWER}}},
    {"conv2d", {{LOWER, LOWER}}},
    {"conv3d", {{LOWER, LOWER}}},
    {"conv_tbc", {{LOWER, LOWER}}},
    {"conv_transpose1d", {{LOWER, LOWER}}},
    {"conv_transpose2d", {{LOWER, LOWER}}},
    {"conv_transpose3d", {{LOWER, LOWER}}},
    {"einsum", {{LOWER, LOWER}}},
    {"gru", {{LOWER, LOWER}}},
    {"gru_cell", {{LOWER, LOWER}}},
    {"inner", {{LOWER, WIDEST}}},
    {"linear", {{LOWER, LOWER}}},
    {"lstm", {{LOWER, LOWER}}},
    {"lstm_cell", {{LOWER, LOWER}}},
    {"matmul", {{LOWER, LOWER}}},
    {"mm", {{LOWER, LOWER}}},
    {"multi_dot", {{LOWER, LOWER}}},
    {"multi_head_attention_forward", {{LOWER, LOWER}}},
    {"mv", {{NONE, LOWER}}},
    {"prelu", {{LOWER, LOWER}}},
    {"rnn", {{LOWER, LOWER}}},
    {"rnn_relu", {{LOWER, LOWER}}},
    {"rnn_relu_cell", {{LOWER, LOWER}}},
    {"rnn_tanh", {{LOWER, LOWER}}},
    {"rnn_tanh_cell", {{LOWER, LOWER}}},
    {"scaled_dot_product_attention", {{LOWER, LOWER}}},
    {"tensordot", {{LOWER, WIDEST}}},
    {"vecdot", {{LOWER, LOWER}}},

    /* elements */
    {"acos", {{NONE, FLOAT32}}},
    {"addcdiv", {{NONE, WIDEST}}},
    {"addcmul", {{NONE, WIDEST}}},
    {"asin", {{NONE, FLOAT32}}},
    {"atan2", {{NONE, WIDEST}}},
    {"cosh", {{NONE, FLOAT32}}},
    {"erfinv", {{NONE, FLOAT32}}},
    {"exp", {{NONE, FLOAT32}}},
    {"expm1", {{NONE, FLOAT32}}},
    {"log", {{NONE, FLOAT32}}},
    {"log10", {{NONE, FLOAT32}}},
    {"log1p", {{NONE, FLOAT32}}},
    {"log2", {{NONE, FLOAT32}}},
    {"pow", {{NONE, FLOAT32}}},
    {"reciprocal", {{NONE, FLOAT32}}},
    {"rsqrt", {{NONE, FLOAT32}}},
    {"sinh", {{NONE, FLOAT32}}},
    {"softplus", {{NONE, FLOAT32}}},
    {"tan", {{NONE, FLOAT32}}},

    /* sums, norms and what is normalized */
    {"batch_norm", {{LIKE_FIRST, LIKE_FIRST}}},
    {"cdist", {{FLOAT32, FLOAT32}}},
    {"cosine_similarity", {{NONE, FLOAT32}}},
    {"cumprod", {{NONE, FLOAT32}}},
    {"cumsum", {{NONE, FLOAT32}}},
    {"dist", {{NONE, FLOAT32}}},
    {"group_norm", {{LIKE_FIRST, FLOAT32}}},
    {"gumbel_softmax", {{NONE, FLOAT32}}},
    {"instance_norm", {{LIKE_FIRST, LIKE_FIRST}}},
    {"layer_norm", {{LIKE_FIRST, FLOAT32}}},
    {"log_softmax", {{NONE, FLOAT32}}},
    {"logsumexp", {{NONE, FLOAT32}}},
    {"matrix_norm", {{NONE, FLOAT32}}},
    {"nanquantile", {{FLOAT32, NONE}}},
    {"norm", {{NONE, FLOAT32}}},
    {"normalize", {{NONE, FLOAT32}}},
    {"pairwise_distance", {{NONE, FLOAT32}}},
    {"pdist", {{NONE, FLOAT32}}},
    {"prod", {{FLOAT32, FLOAT32}}},
    {"quantile", {{FLOAT32, NONE}}},
    {"renorm", {{NONE, FLOAT32}}},
    {"rms_norm", {{LIKE_FIRST, FLOAT32}}},
    {"softmax", {{NONE, FLOAT32}}},
    {"softmin", {{NONE, FLOAT32}}},
    {"sum", {{NONE, FLOAT32}}},
    {"trace", {{FLOAT32, NONE}}},
    {"vector_norm", {{NONE, FLOAT32}}},

    /* losses */
    {"binary_cross_entropy", {{FLOAT32, REFUSED}}},
    {"binary_cross_entropy_with_logits", {{FLOAT32, FLOAT32}}},
    {"cosine_embedding_loss", {{FLOAT32, FLOAT32}}},
    {"cross_entropy", {{FLOAT32, FLOAT32}}},
    {"ctc_loss", {{FLOAT32, FLOAT32}}},
    {"gaussian_nll_loss", {{NONE, FLOAT32}}},
    {"hinge_embedding_loss", {{FLOAT32, FLOAT32}}},
    {"huber_loss", {{FLOAT32, FLOAT32}}},
    {"kl_div", {{FLOAT32, FLOAT32}}},
    {"l1_loss", {{FLOAT32, FLOAT32}}},
    {"margin_ranking_loss", {{FLOAT32, FLOAT32}}},
    {"mse_loss", {{FLOAT32, FLOAT32}}},
    {"multi_margin_loss", {{FLOAT32, FLOAT32}}},
    {"multilabel_margin_loss", {{FLOAT32, FLOAT32}}},
    {"nll_loss", {{FLOAT32, FLOAT32}}},
    {"poisson_nll_loss", {{FLOAT32, FLOAT32}}},
    {"smooth_l1_loss", {{FLOAT32, FLOAT32}}},
    {"soft_margin_loss", {{FLOAT32, FLOAT32}}},
    {"triplet_margin_loss", {{FLOAT32, FLOAT32}}},

    /* several tensors of one type */
    {"bilinear", {{NONE, WIDEST}}},
    {"cat", {{WIDEST, NONE}}},
    {"cross", {{NONE, WIDEST}}},
    {"dot", {{NONE, WIDEST}}},
    {"grid_sample", {{FLOAT32, WIDEST}}},
    {"index_copy", {{WIDEST, NONE}}},
    {"index_put", {{NONE, WIDEST}}},
    {"scatter_add", {{NONE, WIDEST}}},
    {"stack", {{WIDEST, NONE}}},
    {"vdot", {{NONE, WIDEST}}},

    /* pictures */
    {"adaptive_avg_pool3d", {{FLOAT32, NONE}}},
    {"adaptive_max_pool3d", {{FLOAT32, NONE}}},
    {"avg_pool3d", {{FLOAT32, NONE}}},
    {"interpolate", {{NONE, FLOAT32}}},
    {"max_pool3d", {{FLOAT32, NONE}}},
    {"max_unpool2d", {{FLOAT32, NONE}}},
    {"max_unpool3d", {{FLOAT32, NONE}}},
    {"upsample", {{NONE, FLOAT32}}},

    /* linear algebra, which knows no halves */
    {"cholesky", {{FLOAT32, FLOAT32}}},
    {"cholesky_ex", {{FLOAT32, FLOAT32}}},
    {"cholesky_inverse", {{FLOAT32, FLOAT32}}},
    {"cholesky_solve", {{FLOAT32, FLOAT32}}},
    {"cond", {{FLOAT32, FLOAT32}}},
    {"det", {{FLOAT32, FLOAT32}}},
    {"eigh", {{FLOAT32, FLOAT32}}},
    {"eigvalsh", {{FLOAT32, FLOAT32}}},
    {"householder_product", {{FLOAT32, FLOAT32}}},
    {"inv", {{FLOAT32, FLOAT32}}},
    {"inv_ex", {{FLOAT32, FLOAT32}}},
    {"lstsq", {{FLOAT32, FLOAT32}}},
    {"lu", {{FLOAT32, FLOAT32}}},
    {"lu_factor", {{FLOAT32, FLOAT32}}},
    {"lu_solve", {{FLOAT32, FLOAT32}}},
    {"matrix_rank", {{FLOAT32, FLOAT32}}},
    {"pinv", {{FLOAT32, FLOAT32}}},
    {"qr", {{FLOAT32, FLOAT32}}},
    {"slogdet", {{FLOAT32, FLOAT32}}},
    {"solve", {{FLOAT32, FLOAT32}}},
    {"solve_triangular", {{FLOAT32, FLOAT32}}},
    {"svd", {{FLOAT32, FLOAT32}}},
    {"svdvals", {{FLOAT32, FLOAT32}}},
    {"tensorinv", {{FLOAT32, FLOAT32}}},
    {"tensorsolve", {{FLOAT32, FLOAT32}}},
};

gn_autocast_rule gni_autocast_policy_find(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].rule;
    return (gn_autocast_rule){{NONE, NONE}};
}
