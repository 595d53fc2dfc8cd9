/*
 * index_host.h: what a device leaves to the host of genesis/index.h: the operands are copied there, and the results
 * back. Each function does what the public one of its name does, for a tensor that is not on the host, whose own
 * arguments are checked.
 */
#ifndef GNI_OPS_INDEX_HOST_H
#define GNI_OPS_INDEX_HOST_H

#include "genesis/index.h"

/* The tensors of keys, and a value, on the host. */
struct gni_host_keys {
    int count;
    gn_key keys[GN_KEYS_MAX];
    gn_tensor *copies[GN_KEYS_MAX];
};

/* Borrows what is there, and copies what is not. To be deinited whatever comes out. */
gn_status gni_host_keys_init(struct gni_host_keys *host, int count,
                             const gn_key *keys) GN_NODISCARD;
void gni_host_keys_deinit(struct gni_host_keys *host);

gn_status gni_host_index_get(gn_tensor *tensor, int count, const gn_key *keys,
                             gn_tensor **result) GN_NODISCARD;
gn_status gni_host_index_set(gn_tensor *tensor, int count, const gn_key *keys, gn_operand value,
                             bool is_accumulated) GN_NODISCARD;

/* gn_gather() or gn_index_select(), and gn_scatter() or gn_index_put(). */
typedef gn_status (*gni_index_read)(gn_tensor *tensor, int dimension, gn_tensor *index,
                                    gn_tensor **result);
typedef gn_status (*gni_index_write)(gn_tensor *tensor, int dimension, gn_tensor *index,
                                     gn_operand value, bool is_accumulated);
gn_status gni_host_index_read(gni_index_read call, gn_tensor *tensor, int dimension,
                              gn_tensor *index, gn_tensor **result) GN_NODISCARD;
gn_status gni_host_index_write(gni_index_write call, gn_tensor *tensor, int dimension,
                               gn_tensor *index, gn_operand value,
                               bool is_accumulated) GN_NODISCARD;

gn_status gni_host_nonzero(gn_tensor *tensor, gn_tensor **result) GN_NODISCARD;
gn_status gni_host_searchsorted(gn_tensor *sequence, gn_tensor *values, bool is_right,
                                gn_tensor **result) GN_NODISCARD;
gn_status gni_host_bincount(gn_tensor *tensor, gn_tensor *weights, int64_t minimum,
                            gn_tensor **result) GN_NODISCARD;

#endif
