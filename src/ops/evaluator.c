/*
 * evaluator.c: fills in what the tensor layer is offered: struct gni_evaluator in tensor/tensor.h.
 */
#include "ops/backend.h"
#include "ops/recorder.h"

static gn_status mask_places(gn_tensor *mask, const int64_t *strides, gn_tensor **places)
{
    return gni_backend_get(mask->device)->mask_places(mask, strides, places);
}

/* When the library is loaded. Not static, so that the linker can be told to take this file out of an archive. */
__attribute__((constructor)) void gni_evaluator_fill(void);

void gni_evaluator_fill(void)
{
    gni_evaluator = (struct gni_evaluator){
        .flush = gni_recorder_flush,
        .flush_readers = gni_recorder_flush_readers,
        .abandon = gni_recorder_abandon,
        .compact = gni_tensor_compact,
        .get_item = gn_tensor_get_item,
        .mask_places = mask_places,
    };
}
