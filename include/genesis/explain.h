/*
 * genesis/explain.h: which work operations become: what runs, what it reads and writes, and why it ran then.
 *
 *     gn_explain_begin();
 *     ...                             operations of this thread, and gn_flush()
 *     gn_explain_end(take, NULL);     take() is called with a JSON text
 *
 * The text is a list of works, in the order in which they were submitted:
 *
 *     {"kind": "elementwise", "why": "its bytes are needed", "device": "cuda:0", "shape": [4096, 1024],
 *      "memory": [{"address": 140183, "bytes": 16777216, "dtype": "float32", "shape": [4096, 1024], "is_written": false}, ...],
 *      "inputs": [{"memory": 0}, {"number": 2.0}],
 *      "steps": [{"op": "mul", "in": [0, 1], "dtype": "float32", "is_row": false}, ...],
 *      "outputs": [{"value": 2, "memory": 1}],
 *      "resting": 1, "resting_bytes": 16777216, "launches": ["mul_exp"]}
 *
 * `kind` is "elementwise", "rows" (reductions of rows, with the elementwise operations around them), "list", "at once" (few
 * elements, computed without waiting), "resting" (nothing runs: all values are computed in the backward pass, if they are
 * needed), or the name of another operation: "reduction", "softmax", "product", "sort", "gather", "copy" and others. A program has
 * `inputs`, `steps` and `outputs`: values are numbered, the inputs first. `why` is null for work that is submitted when it is
 * called. Bytes are those of the elements that are read or written, each once. `launches` names the kernels on a GPU.
 *
 * Threads: a thread sees the works that it submits itself; gn_flush() submits what all threads have recorded. Others are not
 * slowed down by more than a call.
 */
#ifndef GENESIS_EXPLAIN_H
#define GENESIS_EXPLAIN_H

#include "genesis/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Notes the works of the calling thread from now on. GN_ERROR_INVALID_VALUE if it does already. */
GN_API gn_status gn_explain_begin(void) GN_NODISCARD;

/* Ends that. `take` gets the text, which lives as long as the call; NULL: nobody wants it. GN_ERROR_INVALID_VALUE if nothing
 * was begun; GN_ERROR_OUT_OF_HOST_MEMORY if there was no memory for the text. */
GN_API gn_status gn_explain_end(void (*take)(void *context, const char *json, size_t length),
                                void *context) GN_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
