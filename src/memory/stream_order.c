/*
 * stream_order.c: the order between streams: heaps, events, hand-over, and blocks that wait.
 *
 * What was freed on a stream may be used there again at once. Anyone else needs to know that the stream
 * has passed the free:
 *
 *     freed:      a b c  d e      f g        blocks of one heap, by the time of their free
 *     sequence:   7 7 7  8 8      9 9        `open` is 9
 *     marks:           ^7    ^8              events recorded in the stream
 *     complete: 7                            a, b and c may go to anyone
 *
 * A block whose sequence has a mark can be handed to another stream by letting that stream wait for the
 * mark's event, on the device. A block of the open sequence gets its mark then.
 *
 * Marks of a stream complete in their order, so each heap looks only at its oldest; heaps do not wait for
 * each other. The same holds for the uses of freed blocks on other streams.
 *
 * When a stream is destroyed, a last mark is recorded before (gn_stream_release calls us). A foreign
 * stream may go without notice: its marks are recorded at each free, and its handle is not touched
 * later. Where no mark can be had (a per-thread stream seen from another thread, a stream that is being
 * captured), only waiting for the whole device makes the blocks clean, or a later mark of the stream.
 */
#include "memory/pool.h"

#include "base/host.h"
#include "memory/history.h"
#include "memory/tile.h"

enum {
    OPEN_MOST = 32,          /* blocks of one sequence, where several streams share memory */
    WAIT_MOST_NS = 10000000, /* for work that uses idle memory, before memory grows */
};

/* ---- events --------------------------------------------------------------------------------- */

gn_status gni_event_take(struct gni_pool *pool, struct gni_mark **mark)
{
    struct gni_list *link = gni_list_pop_front(&pool->events);
    if (link != NULL) {
        *mark = gni_container_of(link, struct gni_mark, link);
        return GN_OK;
    }
    struct gni_mark *made = gni_host_alloc(sizeof *made);
    if (made == NULL)
        return gni_error_host_memory(sizeof *made);
    gn_status status = gn_event_create(pool->device, 0, &made->event);
    if (status != GN_OK) {
        gni_host_free(made);
        return status;
    }
    gni_list_init(&made->link);
    *mark = made;
    return GN_OK;
}

void gni_event_give(struct gni_pool *pool, struct gni_mark *mark)
{
    gni_assert(mark->event != NULL);
    gni_list_push_front(&pool->events, &mark->link);
}

/* ---- heaps ---------------------------------------------------------------------------------- */

gn_status gni_heap_create(struct gni_space *space, uint64_t key, const gn_stream *stream,
                          struct gni_heap **out)
{
    struct gni_heap *heap = gni_host_alloc(sizeof *heap);
    if (heap == NULL)
        return gni_error_host_memory(sizeof *heap);
    heap->space = space;
    heap->key = key;
    heap->open = 1;
    gni_list_init(&heap->marks);
    gni_list_init(&heap->held);
    gni_list_init(&heap->uses);
    if (stream != NULL) {
        gni_stream_init(&heap->stream, stream->device, stream->kind);
        heap->stream.flags = stream->flags;
        heap->stream.handle = stream->handle;
        heap->is_foreign =
            stream->kind == GNI_STREAM_FOREIGN || stream->kind == GNI_STREAM_PER_THREAD;
        gn_status status = gni_map_insert(&space->heaps_by_key, key, heap);
        if (status != GN_OK) {
            gni_host_free(heap);
            return status;
        }
    }
    gni_list_push_back(&space->heaps, &heap->link);
    *out = heap;
    return GN_OK;
}

/* What a stream is known by. One whose id cannot be read during its capture has its handle, which is not
 * given to another stream while it is being captured. */
static gn_status stream_key(gn_stream *stream, uint64_t *key)
{
    gn_status status = stream->device->ops->stream_id(stream, key);
    if (status == GN_ERROR_CAPTURE) {
        const void *name =
            stream->kind == GNI_STREAM_PER_THREAD ? gni_thread_self() : stream->handle;
        *key = (uint64_t)(uintptr_t)name | UINT64_C(1) << 62;
        return GN_OK;
    }
    return status;
}

gn_status gni_heap_get(struct gni_space *space, gn_stream *stream, struct gni_heap **out)
{
    uint64_t key;
    gni_assert(gni_pool_is_locked(space->pool));
    GN_TRY(stream_key(stream, &key));
    struct gni_heap *heap = gni_map_find(&space->heaps_by_key, key);
    if (heap == NULL)
        GN_TRY(gni_heap_create(space, key, stream, &heap));
    *out = heap;
    return GN_OK;
}

void gni_heap_destroy(struct gni_heap *heap)
{
    struct gni_pool *pool = heap->space->pool;
    gni_assert(heap->block_count == 0 && heap->use_count == 0);
    gni_list_each (link, &heap->marks) {
        gni_list_remove(link);
        gni_event_give(pool, gni_container_of(link, struct gni_mark, link));
    }
    if (gni_map_find(&heap->space->heaps_by_key, heap->key) == heap)
        (void)gni_map_take(&heap->space->heaps_by_key, heap->key, NULL);
    gni_list_remove(&heap->link);
    gni_host_free(heap);
}

void gni_heap_settle(struct gni_heap *heap)
{
    bool can_go = heap->is_dead || heap->is_foreign; /* whose end nobody tells: it is made again */
    gni_assert(gni_pool_is_locked(heap->space->pool));
    if (can_go && heap->block_count == 0 && heap->use_count == 0)
        gni_heap_destroy(heap);
}

/* ---- marks ---------------------------------------------------------------------------------- */

/* Is the heap's stream what its handle means in the calling thread? */
static bool heap_is_within_reach(struct gni_heap *heap)
{
    uint64_t key;
    if (heap->is_dead)
        return false;
    return heap->stream.kind != GNI_STREAM_PER_THREAD ||
           (heap->stream.device->ops->stream_id(&heap->stream, &key) == GN_OK && key == heap->key);
}

bool gni_heap_can_record(struct gni_heap *heap)
{
    if (!heap_is_within_reach(heap))
        return false;
    /* Always asked: the handle may have been taken since; and a record in the default stream would spoil
     * the capture of a stream that is joined with it, which the question does not. */
    bool is_capturing = false;
    gn_status status = heap->stream.device->ops->stream_is_capturing(&heap->stream, &is_capturing);
    return status == GN_OK && !is_capturing;
}

void gni_heap_close(struct gni_heap *heap)
{
    struct gni_pool *pool = heap->space->pool;
    gni_assert(gni_pool_is_locked(heap->space->pool));
    gni_assert(heap->complete < heap->open);
    if (heap->open_count == 0 || heap->is_dead || heap->is_unknown)
        return;
    struct gni_mark *mark;
    if (!gni_heap_can_record(heap) || gni_event_take(pool, &mark) != GN_OK) {
        heap->is_unknown = heap->is_foreign;
        return;
    }
    if (pool->device->ops->event_record(mark->event, &heap->stream) != GN_OK) {
        gni_event_give(pool, mark);
        heap->is_unknown = heap->is_foreign;
        return;
    }
    pool->counts.event_count++;
    mark->sequence = heap->open++;
    heap->open_count = 0;
    gni_list_push_back(&heap->marks, &mark->link);
}

void gni_heap_bury(struct gni_heap *heap)
{
    gni_assert(gni_pool_is_locked(heap->space->pool));
    if (!heap->space->is_private) {
        heap->open_count++; /* living blocks, too, are covered by the last mark */
        gni_heap_close(heap);
        heap->is_unknown = heap->open_count > 0;
    }
    heap->is_dead = true;
    (void)gni_map_take(&heap->space->heaps_by_key, heap->key, NULL);
    gni_heap_settle(heap);
}

static bool heap_is_alone(const struct gni_heap *heap)
{
    const struct gni_list *heaps = &heap->space->heaps; /* the clean one, ours, and? */
    return heaps->next->next == heaps || heaps->next->next->next == heaps;
}

void gni_heap_stamp(struct gni_heap *heap, gn_memory_block *block)
{
    gni_assert(block->heap == heap);
    gni_assert(heap->complete < heap->open);
    if (heap->space->is_private || heap->key == 0) {
        block->sequence = 0;
        return;
    }
    if (heap->is_dead && !heap->is_unknown) {
        block->sequence = heap->open - 1; /* of the last mark, behind which nothing came */
        return;
    }
    block->sequence = heap->open;
    heap->open_count++;
    if (heap->is_foreign || (heap->open_count >= OPEN_MOST && !heap_is_alone(heap)))
        gni_heap_close(heap);
}

void gni_heap_poll(struct gni_heap *heap)
{
    struct gni_pool *pool = heap->space->pool;
    gni_assert(gni_pool_is_locked(heap->space->pool));
    gni_list_each (link, &heap->marks) {
        struct gni_mark *mark = gni_container_of(link, struct gni_mark, link);
        if (pool->device->ops->event_query(mark->event) != GN_OK)
            return;
        heap->complete = mark->sequence;
        gni_list_remove(&mark->link);
        gni_event_give(pool, mark);
    }
}

void gni_space_poll(struct gni_space *space)
{
    gni_list_each (link, &space->heaps)
        gni_heap_poll(gni_container_of(link, struct gni_heap, link));
}

/* ---- sharing -------------------------------------------------------------------------------- */

/* Blocks up to this sequence are free for all. */
static uint64_t sequence_complete(const struct gni_heap *heap)
{
#ifdef GNI_MUTATE_COMPLETE /* a mistake that tests/sim/test_order.c must find */
    return heap->open;
#else
    return heap->complete;
#endif
}

/* One heap's; it may be gone then. */
static bool heap_retire(struct gni_heap *heap, unsigned ranges)
{
    bool is_any = false;
    gni_heap_poll(heap);
    for (int range = 0; range < GNI_RANGE_COUNT; range++) {
        if ((ranges >> range & 1) == 0)
            continue;
        gni_fit_each (block, &heap->fit[range]) {
            if (block->sequence > sequence_complete(heap))
                continue;
            gni_fit_remove(&heap->fit[range], block);
            gni_block_set_heap(block, heap->space->clean);
            block->sequence = 0;
            (void)gni_tile_merge(block);
            is_any = true;
        }
    }
    gni_heap_settle(heap);
    return is_any;
}

bool gni_space_retire(struct gni_space *space, const struct gni_heap *except, unsigned ranges)
{
    bool is_any = false;
    gni_assert(gni_pool_is_locked(space->pool));
    gni_list_each (link, &space->heaps) {
        struct gni_heap *heap = gni_container_of(link, struct gni_heap, link);
        if (heap != except && heap != space->clean)
            is_any |= heap_retire(heap, ranges);
    }
    return is_any;
}

void gni_space_tidy(struct gni_space *space)
{
    gni_list_each (link, &space->heaps) {
        struct gni_heap *heap = gni_container_of(link, struct gni_heap, link);
        if (!heap->is_dead)
            continue;
        gni_heap_poll(heap);
        if (!gni_list_is_empty(&heap->marks))
            break;
        (void)heap_retire(heap, GNI_RANGES_ALL);
    }
}

bool gni_heap_adopt(struct gni_heap *heap, enum gni_range range, bool is_all)
{
    struct gni_heap *clean = heap->space->clean;
    bool is_any = false;
    gni_assert(gni_pool_is_locked(heap->space->pool));
    gni_assert(heap != heap->space->clean);
    gni_fit_each (block, &clean->fit[range]) {
        if (!is_all && !gni_tile_is_free_of(block->before, heap) &&
            !gni_tile_is_free_of(block->after, heap))
            continue;
        gni_fit_remove(&clean->fit[range], block);
        gni_block_set_heap(block, heap);
        (void)gni_tile_merge(block);
        is_any = true;
    }
    return is_any;
}

/* The oldest mark that covers a block of the heap, recorded if need be; NULL if none can be had. */
static struct gni_mark *mark_find(struct gni_heap *heap, const gn_memory_block *block)
{
    if (block->sequence == heap->open)
        gni_heap_close(heap);
    gni_list_each (link, &heap->marks) {
        struct gni_mark *mark = gni_container_of(link, struct gni_mark, link);
        if (mark->sequence >= block->sequence)
            return mark;
    }
    return NULL;
}

/* What is submitted to the stream from now on comes after the mark. */
static gn_status stream_wait(gn_stream *stream, const struct gni_mark *mark)
{
#ifdef GNI_MUTATE_HANDOVER /* a mistake that tests/sim/test_order.c must find */
    (void)stream, (void)mark;
    return GN_OK;
#else
    return stream->device->ops->stream_wait_event(stream, mark->event);
#endif
}

gn_memory_block *gni_space_steal(struct gni_space *space, struct gni_need *need)
{
    struct gni_pool *pool = space->pool;
    gni_assert(gni_pool_is_locked(space->pool));
    gni_assert(need->heap->space == space);
    if (space->is_private)
        return NULL;
    gni_list_each (link, &space->heaps) {
        struct gni_heap *heap = gni_container_of(link, struct gni_heap, link);
        if (heap == need->heap)
            continue;
        gn_memory_block *block = gni_fit_best(&heap->fit[need->range], need->nbytes);
        if (block == NULL)
            continue;
        if (block->sequence > heap->complete) {
            /* What goes to the clean heap is for every stream, and no other waits. */
            struct gni_mark *mark = need->heap != space->clean ? mark_find(heap, block) : NULL;
            if (mark == NULL || stream_wait(need->stream, mark) != GN_OK)
                continue;
            pool->counts.handover_count++;
        }
        return gni_block_carve(block, need);
    }
    return NULL;
}

/* ---- blocks that wait for other streams ------------------------------------------------------ */

static void use_destroy(struct gni_pool *pool, struct gni_use *use)
{
    gni_assert(use->hold == NULL);
    gni_list_remove(&use->link);
    use->heap->use_count--; /* settled by whoever walks the heaps */
    if (use->mark != NULL)
        gni_event_give(pool, use->mark);
    gni_host_free(use);
}

/* Uses of a living block on streams that are gone end when these have done their work: what lives long is not to
 * remember every stream that ever was. */
static void uses_forget(gn_memory_block *block)
{
    struct gni_pool *pool = block->pool;
    for (struct gni_use **at = &block->uses; *at != NULL;) {
        struct gni_use *use = *at;
        struct gni_heap *heap = use->heap;
        if (use->hold != NULL || pool->device->ops->event_query(use->mark->event) != GN_OK) {
            at = &use->next;
            continue;
        }
        *at = use->next;
        use_destroy(pool, use);
        gni_heap_settle(heap);
    }
}

gn_status gni_block_use(gn_memory_block *block, gn_stream *stream)
{
    struct gni_pool *pool = block->pool;
    struct gni_heap *heap;
    gni_assert(gni_pool_is_locked(block->pool));
    gni_assert(gni_block_state(block) == GNI_BLOCK_LIVE);
    GN_TRY(gni_heap_get(block->heap->space, stream, &heap));
#ifdef GNI_MUTATE_USES /* a mistake that tests/sim/test_order.c must find */
    heap = block->heap;
#endif
    if (heap == block->heap)
        return GN_OK;
    for (struct gni_use *use = block->uses; use != NULL; use = use->next)
        if (use->heap == heap)
            return GN_OK;
    uses_forget(block);
    struct gni_use *use = gni_host_alloc(sizeof *use);
    struct gni_hold *hold = gni_host_alloc(sizeof *hold);
    gn_status status = use != NULL && hold != NULL ? gni_event_take(pool, &use->mark)
                                                   : gni_error_host_memory(sizeof *use);
    if (status != GN_OK) {
        gni_host_free(use);
        gni_host_free(hold);
        return status;
    }
    gni_stream_watch(stream);
    hold->stream = stream;
    gni_list_push_back(&heap->held, &use->link);
    use->block = block;
    use->heap = heap;
    heap->use_count++;
    use->hold = hold;
    use->next = block->uses;
    block->uses = use;
    gni_block_add_flags(block, GNI_BLOCK_SLOW);
    return GN_OK;
}

/* Records the event of a use whose stream is held, if that can be. */
static void use_record(struct gni_use *use)
{
    gn_stream *stream = use->hold->stream;
    use->is_recorded = gni_heap_can_record(use->heap) &&
                       stream->device->ops->event_record(use->mark->event, stream) == GN_OK;
    if (use->is_recorded)
        use->block->pool->counts.event_count++;
}

static void hold_take(struct gni_use *use, struct gni_hold **holds)
{
    use->hold->next = *holds;
    *holds = use->hold;
    use->hold = NULL;
}

struct gni_hold *gni_block_wait(gn_memory_block *block)
{
    struct gni_pool *pool = block->pool;
    struct gni_hold *holds = NULL;
    gni_assert(gni_pool_is_locked(block->pool));
    gni_assert(block->uses != NULL);
    gni_block_set_state(block, GNI_BLOCK_PENDING);
    pool->pending_bytes += block->nbytes;
    pool->pending_count++;
    block->wait_count = 0;
    for (struct gni_use *use = block->uses; use != NULL; use = use->next) {
        block->wait_count++;
        gni_list_remove(&use->link);
        gni_list_push_back(&use->heap->uses, &use->link);
        if (use->hold == NULL) /* recorded when the stream went */
            continue;
        use_record(use);
        hold_take(use, &holds);
    }
    return holds;
}

struct gni_hold *gni_heap_leave(struct gni_heap *heap)
{
    struct gni_hold *holds = NULL;
    gni_assert(gni_pool_is_locked(heap->space->pool));
    gni_list_each (link, &heap->held) {
        struct gni_use *use = gni_container_of(link, struct gni_use, link);
        use_record(use);
        if (!use->is_recorded)
            continue;
        gni_list_remove(link);
        hold_take(use, &holds);
    }
    return holds;
}

void gni_holds_let_go(struct gni_hold *holds)
{
    for (struct gni_hold *hold = holds, *next; hold != NULL; hold = next) {
        next = hold->next;
        gni_stream_unwatch(hold->stream);
        gni_host_free(hold);
    }
}

/* One use of a pending block is over. With the last one the block is free. */
static void use_end(struct gni_pool *pool, struct gni_use *use)
{
    gn_memory_block *block = use->block;
    gni_assert(use->block->wait_count > 0);
    gni_assert(gni_block_state(use->block) == GNI_BLOCK_PENDING);
    gni_list_remove(&use->link);
    if (--block->wait_count > 0)
        return;
    for (struct gni_use *done = block->uses, *next; done != NULL; done = next) {
        next = done->next;
        use_destroy(pool, done);
    }
    block->uses = NULL;
    pool->pending_bytes -= block->nbytes;
    pool->pending_count--;
    if (gni_history_is_on())
        gni_history_free_completed(pool->manager, block);
    gni_block_release(block);
}

/* Adds the streams that were held for them to a list. */
static void space_drop_uses(struct gni_space *space, struct gni_hold **holds)
{
    gni_list_each (link, &space->regions) {
        struct gni_region *region = gni_container_of(link, struct gni_region, link);
        for (gn_memory_block *block = region->first; block != NULL; block = block->after) {
            for (struct gni_use *use = block->uses, *next; use != NULL; use = next) {
                next = use->next;
                if (use->hold != NULL)
                    hold_take(use, holds);
                use_destroy(space->pool, use);
            }
            block->uses = NULL;
        }
    }
}

struct gni_hold *gni_pool_drop_uses(struct gni_pool *pool)
{
    struct gni_hold *holds = NULL;
    gni_assert(gni_pool_is_locked(pool));
    space_drop_uses(&pool->main, &holds);
    gni_list_each (link, &pool->private_spaces)
        space_drop_uses(gni_container_of(link, struct gni_space, link), &holds);
    pool->pending_bytes = 0;
    pool->pending_count = 0;
    return holds;
}

/* The oldest use of freed blocks on a heap's stream that has an event; NULL if none has. */
static struct gni_use *heap_oldest_recorded(struct gni_heap *heap)
{
    gni_list_each (link, &heap->uses) {
        struct gni_use *use = gni_container_of(link, struct gni_use, link);
        if (use->is_recorded)
            return use;
    }
    return NULL;
}

/* Ends the uses on a heap's stream up to one, or all of them. */
static void uses_end(struct gni_heap *heap, const struct gni_use *last)
{
    struct gni_pool *pool = heap->space->pool;
    for (bool is_last = false; !is_last && !gni_list_is_empty(&heap->uses);) {
        struct gni_use *use = gni_container_of(heap->uses.next, struct gni_use, link);
        is_last = use == last;
        use_end(pool, use);
    }
}

/* An event that is complete speaks for everything before it in its stream. */
static void space_pending_poll(struct gni_space *space)
{
    struct gni_use *use;
    gni_list_each (link, &space->heaps) {
        struct gni_heap *heap = gni_container_of(link, struct gni_heap, link);
        while ((use = heap_oldest_recorded(heap)) != NULL &&
               space->pool->device->ops->event_query(use->mark->event) == GN_OK)
            uses_end(heap, use);
    }
}

void gni_pool_pending_poll(struct gni_pool *pool)
{
    gni_assert(gni_pool_is_locked(pool));
    if (pool->pending_count == 0)
        return;
    pool->unpolled_count = 0;
    space_pending_poll(&pool->main);
    gni_list_each (link, &pool->private_spaces)
        space_pending_poll(gni_container_of(link, struct gni_space, link));
}

/* ---- waiting for everything ----------------------------------------------------------------- */

static void heap_complete(struct gni_heap *heap)
{
    struct gni_pool *pool = heap->space->pool;
    gni_list_each (link, &heap->marks) {
        gni_list_remove(link);
        gni_event_give(pool, gni_container_of(link, struct gni_mark, link));
    }
    heap->complete = heap->open;
    heap->open++;
    heap->open_count = 0;
    heap->is_unknown = false;
}

/* Nothing that was submitted is running: no block waits for it. */
static void spaces_pending_end(struct gni_pool *pool)
{
    gni_list_each (link, &pool->main.heaps)
        uses_end(gni_container_of(link, struct gni_heap, link), NULL);
    gni_list_each (link, &pool->private_spaces) {
        struct gni_space *space = gni_container_of(link, struct gni_space, link);
        gni_list_each (item, &space->heaps)
            uses_end(gni_container_of(item, struct gni_heap, link), NULL);
    }
}

/* Waits for the last event of a list of marks or uses. */
static void event_wait(struct gni_pool *pool, const struct gni_mark *mark)
{
    (void)pool->device->ops->event_synchronize(mark->event); /* a poll tells whether it is done */
}

/* Whether a heap has idle large blocks whose work is not known to be done. */
static bool has_large_waiting(const struct gni_heap *heap)
{
    if (gni_list_is_empty(&heap->marks))
        return false;
    gni_fit_each (block, &heap->fit[GNI_RANGE_LARGE])
        if (block->sequence > heap->complete)
            return true;
    return false;
}

bool gni_space_wait(struct gni_space *space)
{
    gni_assert(gni_pool_is_locked(space->pool));
    gni_list_each (link, &space->heaps) {
        struct gni_heap *heap = gni_container_of(link, struct gni_heap, link);
        if (!has_large_waiting(heap))
            continue;
        uint64_t before = heap->complete, begin = gni_time_ns();
        for (int looks = 0; heap->complete == before && gni_time_ns() - begin < WAIT_MOST_NS;
             looks++) {
            gni_heap_poll(heap);
            if (heap->complete == before)
                gni_thread_wait(looks);
        }
        if (heap->complete > before)
            return true;
    }
    return false;
}

void gni_pool_drain(struct gni_pool *pool)
{
    gni_assert(gni_pool_is_locked(pool));
    gni_list_each (link, &pool->main.heaps) {
        struct gni_heap *heap = gni_container_of(link, struct gni_heap, link);
        gni_heap_close(heap);
        if (!gni_list_is_empty(&heap->marks))
            event_wait(pool, gni_container_of(heap->marks.prev, struct gni_mark, link));
        gni_heap_poll(heap);
        struct gni_use *use = NULL;
        while ((use = heap_oldest_recorded(heap)) != NULL) {
            event_wait(pool, use->mark);
            if (pool->device->ops->event_query(use->mark->event) != GN_OK)
                break;
            uses_end(heap, use);
        }
    }
}

gn_status gni_pool_synchronize(struct gni_pool *pool)
{
    gni_assert(gni_pool_is_locked(pool));
    if (gni_pool_is_capturing(pool))
        return gni_error(GN_ERROR_CAPTURE,
                         "%s cannot be waited for while a graph is being captured",
                         gni_device_label(pool->device).text);
    GN_TRY(pool->device->ops->synchronize(pool->device));
    pool->counts.wait_count++;
    gni_list_each (link, &pool->main.heaps)
        heap_complete(gni_container_of(link, struct gni_heap, link));
    spaces_pending_end(pool);
    return GN_OK;
}
