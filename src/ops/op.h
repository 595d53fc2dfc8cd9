/*
 * op.h: the elementwise operations inside the library: genesis/ops.h has the list.
 */
#ifndef GNI_OPS_OP_H
#define GNI_OPS_OP_H

#include "genesis/ops.h"

#define GNI_OP_LIST GN_OP_LIST

enum gni_op {
#define GNI_OP_ENUM(NAME, ...) GNI_OP_##NAME,
    GNI_OP_LIST(GNI_OP_ENUM)
#undef GNI_OP_ENUM
    GNI_OP_COUNT
};

enum gni_domain {
    GNI_DOMAIN_NUMBER,
    GNI_DOMAIN_ANY,
    GNI_DOMAIN_FLOAT,
    GNI_DOMAIN_TEST,
    GNI_DOMAIN_INTEGER,
    GNI_DOMAIN_LOGIC,
    GNI_DOMAIN_SELECT,
};

/* What is known of an operation beside what it computes: promote.c. */
struct gni_op_info {
    const char *name;
    int arity;
    enum gni_domain domain;
};

extern const struct gni_op_info gni_ops[GNI_OP_COUNT];

/* "sum", "amax" and so on: reduce.c. */
const char *gni_reduction_name(gn_reduction reduction);

#endif
