#include "ops/cuda/block_join.h"

int gni_block_join_slot(gn_stream *stream)
{
    static _Atomic(uint64_t) owners[GNI_DEVICE_MAX][GNI_BLOCK_JOIN_SLOTS];
    uint64_t id;
    if ((stream->kind != GNI_STREAM_DEFAULT && stream->kind != GNI_STREAM_OWNED) ||
        gn_stream_get_id(stream, &id) != GN_OK)
        return -1;
    bool is_capturing = false;
    if (stream->kind == GNI_STREAM_OWNED &&
        (gn_stream_is_capturing(stream, &is_capturing) != GN_OK || is_capturing))
        return -1;
    for (int i = 0; i < GNI_BLOCK_JOIN_SLOTS; i++) {
        uint64_t owner = atomic_load(&owners[stream->device->index][i]);
        if (owner == 0 &&
            atomic_compare_exchange_strong(&owners[stream->device->index][i], &owner, id + 1))
            return i;
        if (owner == id + 1)
            return i;
    }
    return -1;
}
