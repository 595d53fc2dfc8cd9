#include "ops/recorder.h"

#include "base/fork.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/thread.h"
#include "genesis/history.h"
#include "ops/backend.h"
#include "ops/node.h"

#include <stdio.h>
#include <string.h>

enum {
    QUICK_MOST = 16384,            /* elements for which an interpreter's lock is not let go */
    WAITING_MOST = 4096,           /* nodes that wait, before the oldest is computed */
    WAITING_BYTES_LEAST = 1 << 30, /* they may keep alive this much memory, or the device's */
    WAITING_BYTES_SHARE = 8,       /* divided by this, whichever is more */
};

static struct {
    struct gni_lock lock;
    struct gni_mutex mutex; /* for `ended`; who has it does not take the lock */
    pthread_cond_t ended;   /* a work has ended */
    unsigned ended_count;   /* written with the lock and the mutex, read with either */
    unsigned waiter_count;  /* for that; this and the rest under the lock */
    unsigned work_count;    /* works that are open */
    bool is_off;
    _Atomic(uint64_t) failure_count; /* of programs that were refused */
} recorder = {.mutex = GNI_MUTEX_INIT, .ended = PTHREAD_COND_INITIALIZER};

static void *(*wait_begin)(void);
static void (*wait_end)(void *state);

/* ---- the lock -------------------------------------------------------------------------------- */

static void fork_prepare(void)
{
    gni_lock_fork_take(&recorder.lock);
    gni_mutex_fork_lock(&recorder.mutex);
}

/* In a forked child. Other threads are gone, so the child computes what they were computing. It cannot use a GPU: nodes of a
 * GPU leave the list, and asking for their values is an error. */
static void works_forget(void)
{
    recorder.work_count = 0;
    gni_list_each (link, &gni_nodes) {
        struct gni_node *node = gni_container_of(link, struct gni_node, link);
        node->is_running = node->is_running && node->runner == gni_thread_self();
        if (node->is_running)
            recorder.work_count = 1; /* this thread goes on with it, after a handler that forks */
        if (!gni_device_is_host(node->device)) {
            node->is_inherited = true;
            gni_node_leave(node);
        }
    }
    (void)pthread_cond_init(&recorder.ended, NULL);
    recorder.waiter_count = 0;
}

static void fork_done(bool is_child)
{
    if (is_child)
        works_forget();
    gni_mutex_fork_unlock(&recorder.mutex);
    gni_lock_fork_give(&recorder.lock);
}

static const struct gni_fork_handlers recorder_fork = {.prepare = fork_prepare, .done = fork_done};
static struct gni_once recorder_once = GNI_ONCE_INIT;

static void recorder_register(void)
{
    gni_fork_register(GNI_FORK_RECORDER, &recorder_fork);
}

static void lock_take(void)
{
    gni_once_run(&recorder_once, recorder_register);
    gni_lock_take(&recorder.lock);
}

static void lock_give(void)
{
    struct gni_storage *dead = gni_node_take_dead();
    gni_lock_give(&recorder.lock);
    while (dead != NULL) {
        struct gni_storage *next = dead->next_dead;
        gni_storage_destroy(dead);
        dead = next;
    }
}

void *gni_wait_begin(void)
{
    return wait_begin != NULL ? wait_begin() : NULL;
}

void gni_wait_end(void *state)
{
    if (state != NULL)
        wait_end(state);
}

/* Lets others go on until some work has ended. The interpreter's lock, if there is one, is taken again without ours:
 * who has it may be waiting for ours. */
static void lock_wait(void)
{
    unsigned seen = recorder.ended_count;
    recorder.waiter_count++;
    gni_lock_give(&recorder.lock);
    void *state = gni_wait_begin();
    gni_mutex_lock(&recorder.mutex);
    while (recorder.ended_count == seen) {
        int failed = pthread_cond_wait(&recorder.ended, &recorder.mutex.native);
        gni_assert(!failed);
        (void)failed;
    }
    gni_mutex_unlock(&recorder.mutex);
    gni_wait_end(state);
    gni_lock_take(&recorder.lock);
    recorder.waiter_count--;
}

/* With the lock: wakes those who wait. */
static void waiters_wake(void)
{
    gni_mutex_lock(&recorder.mutex);
    recorder.ended_count++;
    pthread_cond_broadcast(&recorder.ended);
    gni_mutex_unlock(&recorder.mutex);
}

void gn_set_wait_hooks(void *(*begin)(void), void (*end)(void *state))
{
    wait_begin = begin;
    wait_end = end;
}

/* ---- work ------------------------------------------------------------------------------------ */

/* Waits for a node that is running, unless this thread runs it: then it is in a handler that the memory manager
 * has called, and would wait for ever. */
static gn_status running_wait(const struct gni_node *node)
{
    if (node->runner == gni_thread_self())
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "a value that is being computed cannot be read by a handler that memory "
                         "for it has called");
    lock_wait();
    return GN_OK;
}

static const struct gni_node *running_find(const struct gni_node *node)
{
    if (node->is_running || node->is_done)
        return node->is_running ? node : NULL;
    for (int i = 0; i < node->arity; i++) {
        const struct gni_node *found = node->operands[i].kind == GNI_OPERAND_NODE
                                           ? running_find(node->operands[i].node)
                                           : NULL;
        if (found != NULL)
            return found;
    }
    return NULL;
}

/* Collects what a node needs when nobody else works on it; nothing, if that is computed meanwhile. The caller has
 * a reference to the node. */
static gn_status nodes_take(struct gni_work *work, struct gni_node *root)
{
    work->node_count = 0;
    while (!root->is_done && !gni_work_collect(work, root)) {
        work->node_count = 0;
        GN_TRY(running_wait(running_find(root)));
    }
    return GN_OK;
}

/* From here to the end the nodes are this thread's (R7), and the lock is free. */
static void work_open(struct gni_work *work)
{
    for (int n = 0; n < work->node_count; n++) {
        work->nodes[n]->references++;
        work->nodes[n]->is_running = true;
        work->nodes[n]->runner = gni_thread_self();
    }
    recorder.work_count += work->node_count > 0;
    lock_give();
}

static void work_close(struct gni_work *work)
{
    lock_take();
    recorder.work_count -= recorder.work_count > 0;
    for (int n = 0; n < work->node_count; n++)
        work->nodes[n]->is_running = false;
    if (recorder.waiter_count > 0)
        waiters_wake();
}

static void work_release(struct gni_work *work)
{
    for (int n = 0; n < work->node_count; n++)
        gni_node_release(work->nodes[n]);
}

/* Memory for the value of a node, as if the line that recorded it had asked for it now. */
static gn_status storage_create(const struct gni_node *node, gn_stream *stream,
                                struct gni_storage **storage)
{
    size_t nbytes = (size_t)node->count * gni_dtype_size(node->typing.dtype);
    if (node->site == 0)
        return gni_storage_create(node->device, nbytes, stream, storage);
    uint32_t site = gn_history_set_site(node->site);
    gn_status status = gni_storage_create(node->device, nbytes, stream, storage);
    (void)gn_history_set_site(site);
    return status;
}

/* Memory for every value that is needed; all or nothing. */
static gn_status storages_create(const struct gni_work *work, const bool *is_needed,
                                 struct gni_storage **storages)
{
    gn_status status = GN_OK;
    int n = 0;
    for (; n < work->node_count && status == GN_OK; n++) {
        const struct gni_node *node = work->nodes[n];
        storages[n] = NULL;
        if (is_needed[n])
            status = storage_create(node, work->stream, &storages[n]);
    }
    if (status != GN_OK)
        for (int i = 0; i < n; i++)
            gni_storage_release(storages[i]);
    return status;
}

static void output_add(struct gni_work *work, const struct gni_node *node,
                       struct gni_storage *storage, const gn_tensor *into)
{
    struct gni_program *program = &work->program;
    struct gni_output *output = &program->outputs[program->output_count++];
    output->value = node->value;
    output->data = into != NULL ? gni_tensor_data(into) : storage->data;
    output->dtype = into != NULL ? into->dtype : node->typing.dtype;
    output->is_strided = into != NULL && !into->is_contiguous;
    if (output->is_strided)
        memcpy(output->strides, into->strides, sizeof output->strides);
}

/* Without the lock: computes the values that are needed, and `into`. */
static gn_status work_run(struct gni_work *work, const bool *is_needed,
                          struct gni_storage **storages, gn_tensor *into)
{
    const struct gni_node *root = work->nodes[work->node_count - 1];
    GN_TRY(storages_create(work, is_needed, storages));
    for (int n = 0; n < work->node_count; n++)
        if (storages[n] != NULL)
            output_add(work, work->nodes[n], storages[n], NULL);
    if (into != NULL)
        output_add(work, root, NULL, into);
    /* What was made just now is the stream's already. */
    gn_status status = gni_program_order(&work->program, work->stream);
    if (status == GN_OK && into != NULL)
        status = gni_storage_order(gni_tensor_storage(into), work->stream, true);
    if (status == GN_OK)
        status = gni_backend_get(root->device)->run(&work->program, work->stream);
    for (int n = 0; n < work->node_count && status != GN_OK; n++)
        gni_storage_release(storages[n]);
    return status;
}

/* The same for a node that is late (R9). */
static gn_status late_run(const struct gni_node *node, struct gni_storage **storage)
{
    const struct gni_node_operand *operand = &node->operands[0];
    const char *from =
        operand->storage->data + operand->offset * (int64_t)gni_dtype_size(operand->dtype);
    struct gni_storage *made;
    GN_TRY(storage_create(node, NULL, &made));
    gn_status status = node->late->run(node->late, from, made->data);
    if (status == GN_OK)
        *storage = made;
    else
        gni_storage_release(made);
    return status;
}

static void flush_log(const struct gni_work *work, const bool *is_needed, const char *why)
{
    if (!gni_log_is_on(GNI_LOG_DEBUG))
        return;
    const struct gni_node *root = work->nodes[work->node_count - 1];
    int results = 0;
    for (int n = 0; n < work->node_count; n++)
        results += is_needed[n];
    gni_log(GNI_LOG_DEBUG, "flush: %d operation%s of shape %s on %s, %d result%s: %s",
            work->node_count, work->node_count == 1 ? "" : "s",
            gni_shape_text(root->ndim, root->sizes).text, gni_device_label(root->device).text,
            results, results == 1 ? "" : "s", why);
}

static gn_status node_flush(struct gni_node *root, const char *why);

/* Whether a program failed for what it is: its kernel does not compile, or the driver does not take it. Its operations
 * by themselves are other kernels. This is said when it happens first, and then ever more rarely. */
static bool is_refused(gn_status status)
{
    if (status != GN_ERROR_COMPILATION && status != GN_ERROR_DRIVER)
        return false;
    uint64_t count = atomic_fetch_add(&recorder.failure_count, 1) + 1;
    char reason[512]; /* in one line */
    (void)snprintf(reason, sizeof reason, "%s", gn_error_detail());
    for (char *end = strchr(reason, '\n'); end != NULL; end = strchr(end, '\n'))
        *end = ' ';
    gni_log((count & (count - 1)) == 0 ? GNI_LOG_WARNING : GNI_LOG_INFO,
            "operations that cannot be one kernel run one by one (failure number %llu): %s",
            (unsigned long long)count, reason);
    return true;
}

/* With the lock, which is free while it works: computes the nodes of a refused program one by one. What is computed stays
 * so when a later one fails. */
static gn_status nodes_flush_alone(const struct gni_work *work)
{
    gn_status status = GN_OK;
    for (int n = 0; n < work->node_count && status == GN_OK; n++)
        status = node_flush(work->nodes[n], "its kernel cannot be one with others");
    return status;
}

/*
 * With the lock, which is free while it works: computes a node and what it needs. Its value goes into new memory, or
 * where the node says (R11).
 */
static gn_status node_flush(struct gni_node *root, const char *why)
{
    gn_tensor *into = root->into;
    struct gni_work work;
    struct gni_storage *storages[GNI_PROGRAM_NODES_MOST];
    bool is_needed[GNI_PROGRAM_NODES_MOST];
    root->references++;
    gn_status status = nodes_take(&work, root);
    if (status == GN_OK && work.node_count > 0) {
        for (int n = 0; n < work.node_count; n++)
            is_needed[n] = work.nodes[n] == root ? into == NULL : gni_node_is_needed(work.nodes[n]);
        bool is_late = root->late != NULL;
        if (!is_late)
            gni_work_cut(&work, NULL);
        work_open(&work);
        flush_log(&work, is_needed, why);
        void *state = root->count > QUICK_MOST ? gni_wait_begin() : NULL;
        status = is_late ? late_run(root, storages) : work_run(&work, is_needed, storages, into);
        gni_wait_end(state);
        work_close(&work);
        for (int n = 0; n < work.node_count && status == GN_OK; n++)
            if (is_needed[n])
                gni_node_finish(work.nodes[n], storages[n]);
        for (int n = 0; n < work.node_count && status == GN_OK; n++)
            gni_node_forget(work.nodes[n]);
        if (status != GN_OK && work.node_count > 1 && is_refused(status))
            status = nodes_flush_alone(&work);
        work_release(&work);
    }
    gni_node_release(root);
    return status;
}

/* ---- flushing -------------------------------------------------------------------------------- */

/* Whether a node needs what this thread itself is computing: then it was called by a handler. */
static bool is_blocked(const struct gni_node *node)
{
    if (recorder.work_count == 0 || node->is_done)
        return false;
    bool found = node->is_running && node->runner == gni_thread_self();
    for (int i = 0; i < node->arity && !found; i++)
        found = node->operands[i].kind == GNI_OPERAND_NODE && is_blocked(node->operands[i].node);
    return found;
}

/* Climbs from a node to the newest that needs it, and so on: that takes it along when it is computed. The node itself, if
 * what this leads to is blocked. */
static struct gni_node *top_find(struct gni_node *node)
{
    struct gni_node *top = node;
    while (!gni_list_is_empty(&top->readers))
        top = gni_container_of(top->readers.prev, struct gni_node_operand, link)->reader;
    return is_blocked(top) ? node : top;
}

/* The oldest node up to a number that waits, and that this thread can compute; NULL: there is none. */
static struct gni_node *oldest_find(uint64_t number)
{
    for (struct gni_list *link = gni_nodes.next; link != &gni_nodes; link = link->next) {
        struct gni_node *node = gni_container_of(link, struct gni_node, link);
        if (node->number > number)
            return NULL;
        if (!is_blocked(node))
            return node;
    }
    return NULL;
}

/* The number of the newest node that waits; 0: none does. */
static uint64_t newest_number(void)
{
    return gni_list_is_empty(&gni_nodes)
               ? 0
               : gni_container_of(gni_nodes.prev, struct gni_node, link)->number;
}

/* With the lock: computes what was recorded until now, in time linear in that: each turn computes the oldest, and with
 * it what needs it. */
static gn_status nodes_flush(const char *why)
{
    struct gni_node *oldest;
    for (uint64_t number = newest_number(); (oldest = oldest_find(number)) != NULL;)
        GN_TRY(node_flush(top_find(oldest), why));
    return GN_OK;
}

/* A node up to a number that reads a storage; NULL: there is none. */
static struct gni_node *reader_find(const struct gni_storage *storage, uint64_t number)
{
    for (struct gni_list *link = storage->pending.next; link != &storage->pending;
         link = link->next) {
        struct gni_node *reader = gni_container_of(link, struct gni_node_operand, link)->reader;
        if (reader->number <= number)
            return reader;
    }
    return NULL;
}

/* With the lock: computes what was recorded until now and reads a storage. */
static gn_status readers_flush(const struct gni_storage *storage, const char *why)
{
    struct gni_node *reader;
    for (uint64_t number = newest_number(); (reader = reader_find(storage, number)) != NULL;) {
        if (is_blocked(reader))
            return gni_error(GN_ERROR_INVALID_VALUE,
                             "memory that is being computed with cannot be written to, or shown to "
                             "others, by a handler that memory for the result has called");
        GN_TRY(node_flush(top_find(reader), why));
    }
    return GN_OK;
}

/* How many bytes may be kept for what waits on a device; asked for when there are WAITING_BYTES_LEAST. */
static uint64_t waiting_bytes_most(gn_device *device)
{
    static struct {
        const gn_device *device;
        uint64_t bytes;
    } last; /* under the lock */
    gn_device_properties properties;
    if (last.device != device) {
        bool is_known = gn_device_get_properties(device, &properties) == GN_OK;
        last.device = device;
        last.bytes = is_known ? properties.total_memory / WAITING_BYTES_SHARE : 0;
        if (last.bytes < WAITING_BYTES_LEAST)
            last.bytes = WAITING_BYTES_LEAST;
    }
    return last.bytes;
}

/* True if waiting_bound() may compute a node: it has not failed before, its value is not larger than the bound, and no thread
 * is computing it or what it needs. */
static bool is_fit(const struct gni_node *top, gn_device *device)
{
    uint64_t bytes = (uint64_t)top->count * gni_dtype_size(top->typing.dtype);
    return !top->is_unfit && gni_device_is_host(top->device) == gni_device_is_host(device) &&
           bytes <= waiting_bytes_most(device) && !is_blocked(top) && running_find(top) == NULL;
}

static bool is_operand(const struct gni_node *node, int arity, const gn_operand *operands)
{
    for (int i = 0; i < arity; i++)
        if (operands[i].tensor != NULL && operands[i].tensor->node == node)
            return true;
    return false;
}

/*
 * With the lock, before an operation is recorded: if too many nodes wait, or they keep too much memory alive, computes the
 * oldest expression that is fit. The operands of the operation are not computed until there is twice too much memory. A
 * failure is not reported: whoever asks for the value gets the error.
 */
static void waiting_bound(int arity, const gn_operand *operands, gn_device *device)
{
    enum {
        LOOKS_MOST = 16
    };
    uint64_t bytes = *gni_node_bytes_of(device);
    bool is_many = atomic_load_explicit(&gni_node_count, memory_order_relaxed) >= WAITING_MOST;
    if (!is_many && (bytes < WAITING_BYTES_LEAST || bytes < waiting_bytes_most(device)))
        return;
    bool is_far = bytes >= WAITING_BYTES_LEAST && bytes / 2 >= waiting_bytes_most(device);
    int looks = 0;
    for (struct gni_list *link = gni_nodes.next; link != &gni_nodes && looks++ < LOOKS_MOST;
         link = link->next) {
        struct gni_node *top = top_find(gni_container_of(link, struct gni_node, link));
        if (!is_fit(top, device) || (is_operand(top, arity, operands) && !is_far))
            continue;
        top->references++;
        top->is_unfit = node_flush(top, "much waits") != GN_OK;
        gni_node_release(top);
        return;
    }
}

gn_status gni_recorder_flush(gn_tensor *tensor)
{
    lock_take();
    gn_status status =
        tensor->node != NULL ? node_flush(tensor->node, "its bytes are needed") : GN_OK;
    lock_give();
    return status;
}

gn_status gni_recorder_flush_readers(struct gni_storage *storage)
{
    lock_take();
    gn_status status =
        readers_flush(storage, "what it reads is about to be written to, or shown to others");
    lock_give();
    return status;
}

void gni_recorder_abandon(gn_tensor *tensor)
{
    lock_take();
    if (tensor->node != NULL) {
        tensor->node->owner = NULL;
        gni_node_release(tensor->node);
        tensor->node = NULL;
    }
    lock_give();
}

/* ---- recording ------------------------------------------------------------------------------- */

static bool reads_escaped(int arity, const gn_operand *operands)
{
    for (int i = 0; i < arity; i++) {
        const gn_tensor *tensor = operands[i].tensor;
        const struct gni_storage *storage = tensor != NULL ? gni_tensor_storage(tensor) : NULL;
        if (storage != NULL && atomic_load_explicit(&storage->is_escaped, memory_order_relaxed))
            return true;
    }
    return false;
}

/* Why a pending operand must be computed first; NULL: it need not. */
static const char *operand_refuse(const gn_tensor *tensor, const struct gni_shape *shape,
                                  bool is_ordered, const gn_stream *stream, unsigned weight)
{
    const struct gni_node *node = tensor->node;
    if (node->late != NULL)
        return "it is no elementwise operation";
    if (node->stream != stream)
        return "it is needed on another stream";
    if (!gni_shape_is_equal(tensor->ndim, tensor->sizes, shape->ndim, shape->sizes))
        return "it is needed in another shape";
    if (!tensor->is_contiguous && !is_ordered) /* in an order all operands have the same strides */
        return "it is needed in another order of dimensions";
    return weight + node->weight + 3 > GNI_PROGRAM_NODES_MOST ? "the program is long" : NULL;
}

/* Computes pending operands that cannot be part of a node. The lock may be free meanwhile, so everything is looked
 * at again after that. */
static gn_status operands_prepare(int arity, const gn_operand *operands,
                                  const struct gni_shape *shape, bool is_ordered,
                                  const gn_stream *stream)
{
    for (int i = 0, weight = 1; i < arity; i++) {
        struct gni_node *node = operands[i].tensor != NULL ? operands[i].tensor->node : NULL;
        if (node == NULL)
            continue;
        const char *why =
            operand_refuse(operands[i].tensor, shape, is_ordered, stream, (unsigned)weight);
        if (why == NULL && !node->is_running) {
            weight += (int)node->weight;
            continue;
        }
        if (node->is_running)
            GN_TRY(running_wait(node));
        else
            GN_TRY(node_flush(node, why));
        i = -1;
        weight = 1;
    }
    return GN_OK;
}

/* `order`: that of the node's dimensions; NULL: as they are. */
static gn_status node_record(const struct gni_typing *typing, int arity, const gn_operand *operands,
                             const struct gni_shape *shape, const int *order, gn_device *device,
                             struct gni_node **node)
{
    gn_stream *stream;
    GN_TRY(gni_stream_of(device, &stream));
    waiting_bound(arity, operands, device);
    GN_TRY(operands_prepare(arity, operands, shape, order != NULL, stream));
    return gni_node_create(typing, arity, operands, shape, order, device, stream, node);
}

/* Of operands with the result's shape the one that says how the result lies in memory: all of them have its strides.
 * NULL if they differ, or are contiguous. */
static const gn_tensor *model_find(int arity, const gn_operand *operands,
                                   const struct gni_shape *shape)
{
    const gn_tensor *model = NULL;
    for (int i = 0; i < arity; i++) {
        const gn_tensor *tensor = operands[i].tensor;
        if (tensor == NULL ||
            !gni_shape_is_equal(tensor->ndim, tensor->sizes, shape->ndim, shape->sizes))
            continue;
        if (tensor->is_contiguous ||
            (model != NULL &&
             !gni_shape_is_equal(shape->ndim, tensor->strides, shape->ndim, model->strides)))
            return NULL;
        model = tensor;
    }
    return model;
}

/* The dimensions of a tensor from the largest stride to the smallest. False unless it is contiguous in that order. */
static bool order_find(const gn_tensor *tensor, int *order)
{
    int64_t count = 1;
    for (int i = 0; i < tensor->ndim; i++) {
        int at = i;
        for (; at > 0 && tensor->strides[order[at - 1]] < tensor->strides[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        if (tensor->sizes[order[i]] != 1 && tensor->strides[order[i]] != count)
            return false;
        count *= tensor->sizes[order[i]];
    }
    return true;
}

/*
 * Where all operands of the result's shape are transposed in the same way, the result is, too: it has their strides, as in
 * NumPy and PyTorch, and memory is walked from one end to the other. Copies and conversions are contiguous always.
 */
static const int *result_order(const struct gni_typing *typing, int arity,
                               const gn_operand *operands, const struct gni_shape *shape,
                               gn_tensor *result, int *order)
{
    const gn_tensor *model = typing->is_identity ? NULL : model_find(arity, operands, shape);
    if (model == NULL || !order_find(model, order))
        return NULL;
    memcpy(result->strides, model->strides, sizeof *result->strides * (size_t)shape->ndim);
    result->is_contiguous = false;
    return order;
}

/* Gives a node to its tensor, and computes it where it must not wait; without the node on failure. */
static gn_status node_own(struct gni_node *node, int arity, const gn_operand *operands,
                          gn_tensor *tensor)
{
    gn_status status = GN_OK;
    node->owner = tensor;
    tensor->node = node;
    if (recorder.is_off || reads_escaped(arity, operands))
        status =
            node_flush(node, recorder.is_off ? "fusion is off" : "others can reach its operands");
    if (status != GN_OK) {
        node->owner = NULL;
        tensor->node = NULL;
        gni_node_release(node);
    }
    return status;
}

gn_status gni_record(const struct gni_typing *typing, int arity, const gn_operand *operands,
                     const struct gni_shape *shape, gn_device *device, gn_tensor **result)
{
    gn_tensor *tensor;
    struct gni_node *node;
    int room[GN_DIMENSIONS_MAX];
    GN_TRY(gni_tensor_prepare(typing->dtype, shape->ndim, shape->sizes, device, &tensor));
    const int *order = result_order(typing, arity, operands, shape, tensor, room);
    uint32_t site = gn_history_capture(); /* without the lock: an interpreter may be waited for */
    lock_take();
    gn_status status = node_record(typing, arity, operands, shape, order, device, &node);
    if (status == GN_OK) {
        node->site = site;
        status = node_own(node, arity, operands, tensor);
    }
    lock_give();
    if (status != GN_OK) {
        gni_host_free(tensor);
        return status;
    }
    *result = tensor;
    return GN_OK;
}

/* Exchanges a dimension of a tensor, which nobody knows yet, with the last one. */
static void dimension_exchange(gn_tensor *tensor, int dimension)
{
    int64_t *numbers[] = {tensor->sizes, tensor->strides};
    for (int i = 0; i < 2; i++) {
        int64_t number = numbers[i][dimension];
        numbers[i][dimension] = numbers[i][tensor->ndim - 1];
        numbers[i][tensor->ndim - 1] = number;
    }
    gni_tensor_measure(tensor);
}

gn_status gni_record_late(const struct gni_late *late, gn_tensor *operand, int dimension,
                          gn_dtype dtype, gn_tensor **result)
{
    struct gni_typing typing = {.is_identity = true, .computing = dtype, .dtype = dtype};
    gn_operand operands[] = {{.tensor = operand}};
    struct gni_shape shape = {.ndim = operand->ndim};
    gn_tensor *tensor;
    struct gni_node *node;
    memcpy(shape.sizes, operand->sizes, sizeof shape.sizes);
    struct gni_late *kept = gni_host_alloc(sizeof *kept);
    if (kept == NULL)
        return gni_error_host_memory(sizeof *kept);
    gn_status status = gni_tensor_prepare(dtype, shape.ndim, shape.sizes, operand->device, &tensor);
    if (status != GN_OK) {
        gni_host_free(kept);
        return status;
    }
    dimension_exchange(tensor, dimension);
    uint32_t site = gn_history_capture();
    lock_take();
    status = gni_node_create(&typing, 1, operands, &shape, NULL, operand->device, NULL, &node);
    if (status == GN_OK) {
        *kept = *late;
        node->late = kept;
        node->site = site;
        kept = NULL;
        status = node_own(node, 1, operands, tensor);
    }
    lock_give();
    if (status != GN_OK) {
        gni_host_free(kept);
        gni_host_free(tensor);
        return status;
    }
    *result = tensor;
    return GN_OK;
}

gn_status gni_record_into(const struct gni_typing *typing, int arity, const gn_operand *operands,
                          gn_tensor *out)
{
    struct gni_shape shape = {.ndim = out->ndim};
    struct gni_node *node;
    memcpy(shape.sizes, out->sizes, sizeof shape.sizes);
    lock_take();
    /* What reads the bytes that go, other than this operation itself, is computed first. */
    struct gni_storage *storage = gni_tensor_storage(out);
    gn_status status = readers_flush(storage, "what it reads is about to be written to");
    if (status == GN_OK)
        status = node_record(typing, arity, operands, &shape, NULL, out->device, &node);
    if (status == GN_OK) {
        node->into = out;
        status = node_flush(node, "it is written into memory");
        node->into = NULL; /* if that failed, and another thread computes it still */
        gni_node_release(node);
    }
    if (status == GN_OK)
        atomic_fetch_add(&storage->version, 1);
    lock_give();
    return status;
}

/* ---- programs for others --------------------------------------------------------------------- */

/* Whether computing a node once more costs less than memory does. */
static bool is_light(const struct gni_node *node)
{
    switch (node->typing.op) {
    case GNI_OP_ADD:
    case GNI_OP_SUBTRACT:
    case GNI_OP_MULTIPLY:
    case GNI_OP_MAXIMUM:
    case GNI_OP_MINIMUM:
    case GNI_OP_NEGATIVE:
    case GNI_OP_ABSOLUTE:
    case GNI_OP_SQUARE:
    case GNI_OP_RELU:
        return true;
    default:
        return node->typing.is_identity;
    }
}

/* Of collected nodes one that had better be in memory, because it is needed again; NULL: none. What is light, and made
 * of little memory, is made twice instead, once. */
static struct gni_node *node_to_keep(struct gni_work *work)
{
    enum {
        INPUTS_MOST = 2
    };
    struct gni_node *root = work->nodes[work->node_count - 1];
    bool is_twice = true;
    int inputs = 0;
    if (root->late != NULL)
        return root;
    for (int n = 0; n < work->node_count - 1; n++) {
        struct gni_node *node = work->nodes[n];
        is_twice &= is_light(node);
        for (int i = 0; i < node->arity; i++)
            inputs +=
                node->operands[i].kind == GNI_OPERAND_MEMORY ||
                (node->operands[i].kind == GNI_OPERAND_NODE && node->operands[i].node->is_done);
        if (!gni_node_is_needed(node))
            continue;
        if (!is_twice || inputs > INPUTS_MOST || node->is_reduced)
            return node;
    }
    return root->is_reduced ? root : NULL;
}

/* With the lock: collects what a pending tensor needs; what others need of it, too, is computed before. */
static gn_status work_take(struct gni_work *work, gn_tensor *tensor)
{
    work->node_count = 0;
    while (tensor->node != NULL && work->node_count == 0) {
        struct gni_node *root = tensor->node;
        root->references++;
        gn_status status = nodes_take(work, root);
        struct gni_node *kept = status == GN_OK && work->node_count > 0 ? node_to_keep(work) : NULL;
        if (kept != NULL) {
            work->node_count = 0;
            status = node_flush(kept, "a reduction and others need it");
        }
        gni_node_release(root);
        GN_TRY(status);
    }
    return GN_OK;
}

gn_status gni_work_begin(struct gni_work *work, gn_tensor *tensor, const int *order)
{
    gn_stream *stream;
    work->node_count = 0;
    GN_TRY(gni_stream_of(tensor->device, &stream));
    lock_take();
    gn_status status = work_take(work, tensor);
    const char *why = work->stream != stream   ? "it is needed on another stream"
                      : !tensor->is_contiguous ? "its dimensions are not in their order"
                                               : NULL;
    if (status == GN_OK && work->node_count > 0 && why != NULL) {
        status = node_flush(tensor->node, why);
        work->node_count = 0;
    }
    if (status != GN_OK) {
        lock_give();
        return status;
    }
    work->stream = stream;
    if (work->node_count > 0) {
        gni_work_cut(work, order);
        for (int n = 0; n < work->node_count; n++)
            work->nodes[n]->is_reduced = true;
    }
    work_open(work);
    if (work->node_count == 0) {
        int64_t strides[GN_DIMENSIONS_MAX];
        for (int i = 0; i < tensor->ndim; i++)
            strides[i] = tensor->strides[order[i]];
        gni_program_init(&work->program, tensor->ndim, tensor->sizes, order);
        work->value = gni_program_add_memory(&work->program, gni_tensor_storage(tensor),
                                             tensor->offset, tensor->dtype, strides);
    }
    status = gni_program_order(&work->program, stream);
    if (status != GN_OK)
        gni_work_end(work);
    return status;
}

void gni_work_end(struct gni_work *work)
{
    if (work->node_count == 0)
        return;
    work_close(work);
    work_release(work);
    lock_give();
}

bool gni_work_split(const struct gni_work *work, gn_tensor *tensor, gn_status *status)
{
    if (*status == GN_OK || work->node_count == 0 || !is_refused(*status))
        return false;
    *status = gni_tensor_flush(tensor);
    return *status == GN_OK;
}

/* ---- the switch ------------------------------------------------------------------------------ */

bool gn_is_pending(void)
{
    return atomic_load_explicit(&gni_node_count, memory_order_acquire) > 0;
}

gn_status gn_flush(void)
{
    if (!gn_is_pending())
        return GN_OK;
    lock_take();
    gn_status status = nodes_flush("a flush was asked for");
    lock_give();
    return status;
}

gn_status gn_set_fusion(bool is_on)
{
    lock_take();
    gn_status status = is_on ? GN_OK : nodes_flush("fusion is switched off");
    if (status == GN_OK)
        recorder.is_off = !is_on;
    lock_give();
    return status;
}

bool gn_get_fusion(void)
{
    lock_take();
    bool is_on = !recorder.is_off;
    lock_give();
    return is_on;
}

uint64_t gn_get_fusion_failures(void)
{
    return atomic_load(&recorder.failure_count);
}
