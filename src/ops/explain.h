/*
 * explain.h: what the operations tell about the work that they submit: genesis/explain.h.
 *
 * While a thread wants to know, gni_backends refers to copies of the backends' tables, whose functions note what they are
 * given and call the real ones. So nothing is paid otherwise, but for the few works that no table has: those call the
 * functions here.
 */
#ifndef GNI_OPS_EXPLAIN_H
#define GNI_OPS_EXPLAIN_H

#include "genesis/explain.h"
#include "ops/op.h"
#include "tensor/tensor.h"

struct gni_node;

/* Threads that want to know. */
extern atomic_uint gni_explain_count;

static inline bool gni_explain_is_on(void)
{
    return atomic_load_explicit(&gni_explain_count, memory_order_relaxed) > 0;
}

/* Why the next program of this thread runs, and which of its values are computed again later. */
void gni_explain_flush(const char *why, int resting_count, size_t resting_nbytes);

/* A work that runs no program: "resting", because all its nodes rest, or a deferred operation. */
void gni_explain_work(const char *kind, const struct gni_node *root);

/* Few elements were computed at once; bytes were copied between devices. */
void gni_explain_small(enum gni_op op, int arity, const gn_operand *operands, gn_tensor *result);
void gni_explain_copy(gn_tensor *from, gn_tensor *to);

#endif
