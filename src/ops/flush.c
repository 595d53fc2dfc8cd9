/*
 * flush.c: computes pending nodes. A flush collects the nodes that a value needs into a work, makes their program, and runs
 * it without the recorder's lock. What makes a flush happen stands in its `why`, which the log shows.
 */
#include "ops/node.h"

#include "base/fork.h"
#include "base/host.h"
#include "base/log.h"
#include "base/thread.h"
#include "genesis/history.h"
#include "ops/backend.h"
#include "ops/explain.h"

#include <stdio.h>
#include <string.h>

enum {
    QUICK_MOST = 16384,      /* elements for which an interpreter's lock is not let go */
    WAITING_BYTES_SHARE = 8, /* of the device's memory that nodes may keep alive: total / 8 */
};

static struct {
    struct gni_mutex mutex; /* for `ended`; who has it does not take the recorder's lock */
    pthread_cond_t ended;   /* a work has ended */
    unsigned ended_count;   /* written with the lock and the mutex, read with either */
    unsigned waiter_count;  /* threads that wait for `ended`; this and the next under the lock */
    unsigned work_count;    /* works that are open */
    _Atomic(uint64_t) failure_count; /* of programs that were refused */
} works = {.mutex = GNI_MUTEX_INIT, .ended = PTHREAD_COND_INITIALIZER};

static void *(*wait_begin)(void);
static void (*wait_end)(void *state);

/* ---- waiting --------------------------------------------------------------------------------- */

void gni_works_fork_prepare(void)
{
    gni_mutex_fork_lock(&works.mutex);
}

static void nodes_forget(const struct gni_list *nodes)
{
    gni_list_each (link, nodes) {
        struct gni_node *node = gni_container_of(link, struct gni_node, link);
        node->is_running = node->is_running && node->runner == gni_thread_self();
        if (node->is_running)
            works.work_count = 1; /* this thread goes on with it, after a handler that forks */
        if (node->device->ops->is_lost_in_fork)
            gni_node_disown(node);
    }
}

/* In a forked child. Other threads are gone, so the child computes what they were computing. It cannot use a GPU: nodes of a
 * GPU leave the list, and asking for their values is an error. */
static void works_forget(void)
{
    works.work_count = 0;
    nodes_forget(&gni_nodes);
    nodes_forget(&gni_resting);
    (void)pthread_cond_init(&works.ended, NULL);
    works.waiter_count = 0;
}

void gni_works_fork_done(bool is_child)
{
    if (is_child)
        works_forget();
    gni_mutex_fork_unlock(&works.mutex);
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

/* Waits, without the recorder's lock, until some work has ended. The interpreter's lock is taken before ours: a thread that
 * holds it may be waiting for ours. */
static void lock_wait(void)
{
    unsigned seen = works.ended_count;
    works.waiter_count++;
    gni_recorder_unlock();
    void *state = gni_wait_begin();
    gni_mutex_lock(&works.mutex);
    while (works.ended_count == seen) {
        int failed = pthread_cond_wait(&works.ended, &works.mutex.native);
        gni_assert(!failed);
        (void)failed;
    }
    gni_mutex_unlock(&works.mutex);
    gni_wait_end(state);
    gni_recorder_lock();
    works.waiter_count--;
}

/* With the lock: wakes the threads that wait for works. */
static void waiters_wake(void)
{
    gni_mutex_lock(&works.mutex);
    works.ended_count++;
    pthread_cond_broadcast(&works.ended);
    gni_mutex_unlock(&works.mutex);
}

void gn_set_wait_hooks(void *(*begin)(void), void (*end)(void *state))
{
    wait_begin = begin;
    wait_end = end;
}

/* ---- work ------------------------------------------------------------------------------------ */

/* This thread itself runs the node if a handler is called that the memory manager calls when memory runs out: it would wait
 * for ever. */
gn_status gni_running_wait(const struct gni_node *node)
{
    if (node->runner == gni_thread_self())
        return gni_error(GN_ERROR_INVALID_VALUE,
                         "a value that is being computed cannot be read by a handler that memory "
                         "for it has called");
    lock_wait();
    return GN_OK;
}

/* A running node among a node and those below it; NULL: there is none. */
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

/* Collects what a node needs, after the works that compute parts of it. Collects nothing if the node is computed
 * meanwhile. The caller has a reference to the node. */
static gn_status nodes_take(struct gni_work *work, struct gni_node *root)
{
    work->node_count = 0;
    while (!root->is_done && !gni_work_collect(work, root)) {
        work->node_count = 0;
        GN_TRY(gni_running_wait(running_find(root)));
    }
    return GN_OK;
}

/* Begins a work: its nodes belong to this thread until work_close() (N7). Releases the lock. */
static void work_open(struct gni_work *work)
{
    for (int n = 0; n < work->node_count; n++) {
        gni_assert(!work->nodes[n]->is_running && !work->nodes[n]->is_done);
        work->nodes[n]->references++;
        work->nodes[n]->is_running = true;
        work->nodes[n]->runner = gni_thread_self();
    }
    works.work_count += work->node_count > 0;
    gni_recorder_unlock();
}

/* Takes the lock again. */
static void work_close(struct gni_work *work)
{
    gni_recorder_lock();
    works.work_count -= works.work_count > 0;
    for (int n = 0; n < work->node_count; n++)
        work->nodes[n]->is_running = false;
    if (works.waiter_count > 0)
        waiters_wake();
}

static void work_release(struct gni_work *work)
{
    for (int n = 0; n < work->node_count; n++)
        gni_node_release(work->nodes[n]);
}

/* Memory for the value of a node. The history shows the line that recorded the node. */
static gn_status storage_create(const struct gni_node *node, gn_stream *stream,
                                struct gni_storage **storage)
{
    size_t nbytes = (size_t)node->count * gni_dtypes[node->typing.dtype].size;
    if (node->site == 0)
        return gni_storage_create(node->device, nbytes, stream, storage);
    uint32_t site = gn_history_set_site(node->site);
    gn_status status = gni_storage_create(node->device, nbytes, stream, storage);
    (void)gn_history_set_site(site);
    return status;
}

static void storages_release(const struct gni_work *work, struct gni_storage **storages)
{
    for (int n = 0; n < work->node_count; n++)
        gni_storage_release(storages[n]);
}

/* Memory for every value that is needed and has none yet: memory of an input (reuse.c). All or nothing. */
static gn_status storages_create(const struct gni_work *work, const enum gni_fate *fates,
                                 struct gni_storage **storages)
{
    gn_status status = GN_OK;
    for (int n = 0; n < work->node_count && status == GN_OK; n++) {
        if (storages[n] != NULL && work->stream != NULL)
            status = gni_storage_order(storages[n], work->stream, true);
        else if (storages[n] == NULL && fates[n] != GNI_FATE_GONE)
            status = storage_create(work->nodes[n], work->stream, &storages[n]);
    }
    if (status != GN_OK)
        storages_release(work, storages);
    return status;
}

static gn_dtype operand_dtype(const struct gni_node_operand *operand)
{
    return operand->kind == GNI_OPERAND_NODE ? operand->node->typing.dtype : operand->dtype;
}

static void output_add(struct gni_work *work, const struct gni_node *node, const gn_tensor *into)
{
    struct gni_program *program = &work->program;
    struct gni_output *output = &program->outputs[program->output_count++];
    output->value = node->value;
    output->data = into != NULL ? gni_tensor_data(into) : NULL;
    output->dtype = into != NULL ? into->dtype : node->typing.dtype;
    output->is_column = node->is_column;
    output->is_narrowed = node->is_column && operand_dtype(&node->operands[0]) == GN_FLOAT32 &&
                          gni_dtype_is_half(node->typing.dtype);
    output->is_row = !node->is_column && node->count != program->count;
    output->is_strided = into != NULL && !into->is_contiguous;
    gni_assert(node->count == (output->is_column ? program->columns
                               : output->is_row  ? program->count / program->columns
                                                 : program->count));
    if (output->is_strided)
        memcpy(output->strides, into->strides, sizeof output->strides);
}

/* Adds the values that are stored as outputs, in the order of their nodes, and what is written into `into`. They get their
 * memory when there is some. */
static void outputs_add(struct gni_work *work, const enum gni_fate *fates, const gn_tensor *into)
{
    for (int n = 0; n < work->node_count; n++)
        if (fates[n] != GNI_FATE_GONE)
            output_add(work, work->nodes[n], NULL);
    if (into != NULL)
        output_add(work, work->root, into);
}

/* Without the lock: computes the values that are needed into new storages, and the last one into `into`. */
static gn_status work_run(struct gni_work *work, const enum gni_fate *fates,
                          struct gni_storage **storages, gn_tensor *into)
{
    const struct gni_node *root = work->root;
    GN_TRY(storages_create(work, fates, storages));
    for (int n = 0, used = 0; n < work->node_count; n++)
        if (fates[n] != GNI_FATE_GONE)
            work->program.outputs[used++].data = storages[n]->data;
    /* New storages belong to the stream already. */
    gn_status status = GN_OK;
    if (work->stream != NULL)
        status = gni_program_order(&work->program, work->stream);
    if (status == GN_OK && into != NULL)
        status = gni_storage_order(gni_tensor_storage(into), work->stream, true);
    if (status == GN_OK)
        status = gni_backend_get(root->device)->run(&work->program, work->stream);
    if (status != GN_OK)
        storages_release(work, storages);
    return status;
}

/* The same for a node that is deferred (N9). */
static gn_status deferred_run(const struct gni_node *node, struct gni_storage **storage)
{
    const struct gni_node_operand *operand = &node->operands[0];
    const char *from =
        operand->storage->data + operand->offset * (int64_t)gni_dtypes[operand->dtype].size;
    struct gni_storage *made;
    GN_TRY(storage_create(node, NULL, &made));
    gn_status status = node->deferred->run(node->deferred, from, made->data);
    if (status == GN_OK)
        *storage = made;
    else
        gni_storage_release(made);
    return status;
}

static void flush_log(const struct gni_work *work, const enum gni_fate *fates, const char *why)
{
    if (!gni_log_is_on(GNI_LOG_DEBUG))
        return;
    const struct gni_node *root = work->root;
    int results = 0;
    for (int n = 0; n < work->node_count; n++)
        results += fates[n] != GNI_FATE_GONE;
    gni_log(GNI_LOG_DEBUG, "flush: %d operation%s of shape %s on %s, %d result%s: %s",
            work->node_count, work->node_count == 1 ? "" : "s",
            gni_shape_text(root->ndim, root->sizes).text, gni_device_label(root->device).text,
            results, results == 1 ? "" : "s", why);
}

/* True if a program's kernel did not compile, or the driver refused it: then its operations can still run one by one, in
 * other kernels. Logs a warning for failures 1, 2, 4, 8 and so on. */
static bool is_refused(gn_status status)
{
    if (status != GN_ERROR_COMPILATION && status != GN_ERROR_DRIVER)
        return false;
    uint64_t count = atomic_fetch_add(&works.failure_count, 1) + 1;
    char reason[512]; /* in one line */
    (void)snprintf(reason, sizeof reason, "%s", gn_error_detail());
    for (char *end = strchr(reason, '\n'); end != NULL; end = strchr(end, '\n'))
        *end = ' ';
    gni_log((count & (count - 1)) == 0 ? GNI_LOG_WARNING : GNI_LOG_INFO,
            "operations that cannot be one kernel run one by one (failure number %llu): %s",
            (unsigned long long)count, reason);
    return true;
}

enum flush_mode {
    FLUSH_SPARE, /* the node is not stored if its tensor is spare */
    FLUSH_ASKED, /* it is */
    FLUSH_ALONE, /* it is, and nothing joins it */
};

static gn_status node_flush(struct gni_node *root, enum flush_mode mode, const char *why);

/* Computes the nodes of a refused program one by one. Nodes that are computed stay computed if a later one fails. */
static gn_status nodes_flush_alone(const struct gni_work *work)
{
    gn_status status = GN_OK;
    for (int n = 0; n < work->node_count && status == GN_OK; n++)
        status = node_flush(work->nodes[n], FLUSH_ALONE, "its kernel cannot be one with others");
    return status;
}

/* True if nothing is left to be computed: all rest. */
static bool is_all_gone(const struct gni_work *work, const enum gni_fate *fates)
{
    for (int n = 0; n < work->node_count; n++)
        if (fates[n] != GNI_FATE_GONE)
            return false;
    return true;
}

/* Tells why the work runs, and what of it is not stored although somebody may ask for it (genesis/explain.h). */
static void explain(const struct gni_work *work, const enum gni_fate *fates, const gn_tensor *into,
                    const char *why)
{
    int count = 0;
    size_t nbytes = 0;
    for (int n = 0; n < work->node_count; n++) {
        const struct gni_node *node = work->nodes[n];
        if (fates[n] != GNI_FATE_GONE || node->owner == NULL)
            continue;
        count++;
        nbytes += (size_t)node->count * gni_dtypes[node->typing.dtype].size;
    }
    gni_explain_flush(why, count, nbytes);
    if (into == NULL && is_all_gone(work, fates))
        gni_explain_work("resting", work->root);
    else if (work->root->deferred != NULL)
        gni_explain_work("sort", work->root);
}

/*
 * A node of a row program that others read as memory once it is computed: the newest row value that the rest of the work
 * needs. NULL: the program is no row program.
 */
static struct gni_node *row_node_find(const struct gni_work *work)
{
    if (!gni_work_has_rows(work))
        return NULL;
    struct gni_node *root = work->root;
    for (int n = work->node_count - 1; n >= 0 && !root->is_column; n--)
        if (work->nodes[n]->is_row &&
            (work->nodes[n]->count != root->count || work->nodes[n] == root))
            return work->nodes[n];
    return root;
}

/* The same for a row value that is the root: the newest one before it. */
static struct gni_node *row_node_before(const struct gni_work *work)
{
    for (int n = work->node_count - 1; n >= 0; n--)
        if (work->nodes[n]->is_row && work->nodes[n] != work->root)
            return work->nodes[n];
    return NULL;
}

/* What is written into memory may be read by the same program: then row values are computed before. So they are where the
 * memory is strided: a row program stores the values of its rows one behind the other. */
static gn_status rows_part(struct gni_work *work, struct gni_node *root)
{
    struct gni_node *row = NULL;
    while (root->into != NULL && work->node_count > 0 && (row = row_node_find(work)) != NULL) {
        if (row == root && (root->into->is_contiguous || (row = row_node_before(work)) == NULL))
            break;
        work->node_count = 0;
        GN_TRY(gni_node_flush(row, "a row of what is written reads it"));
        GN_TRY(nodes_take(work, root));
    }
    return GN_OK;
}

/* Computes a node, with the sums of columns that read the same. */
static gn_status node_flush(struct gni_node *root, enum flush_mode mode, const char *why)
{
    gn_tensor *into = root->into;
    struct gni_work work;
    struct gni_storage *storages[GNI_PROGRAM_NODES_MOST];
    enum gni_fate fates[GNI_PROGRAM_NODES_MOST];
    root->references++;
    gn_status status = nodes_take(&work, root);
    if (status == GN_OK)
        status = rows_part(&work, root);
    if (status == GN_OK && work.node_count > 0 && mode != FLUSH_ALONE)
        gni_columns_join(&work);
    if (status == GN_OK && work.node_count > 0)
        gni_work_decide(&work, into, mode != FLUSH_SPARE, fates);
    if (status == GN_OK && work.node_count > 0 && gni_explain_is_on())
        explain(&work, fates, into, why);
    if (status == GN_OK && work.node_count > 0 && into == NULL && is_all_gone(&work, fates)) {
        gni_work_settle(&work, fates, storages);
    } else if (status == GN_OK && work.node_count > 0) {
        bool is_deferred = root->deferred != NULL;
        if (!is_deferred) {
            gni_work_build_program(&work, NULL);
            outputs_add(&work, fates, into);
        }
        gni_work_reuse(&work, fates, storages);
        work_open(&work);
        flush_log(&work, fates, why);
        void *state = root->count > QUICK_MOST ? gni_wait_begin() : NULL;
        status =
            is_deferred ? deferred_run(root, storages) : work_run(&work, fates, storages, into);
        gni_wait_end(state);
        work_close(&work);
        if (status == GN_OK)
            gni_work_settle(&work, fates, storages);
        if (status != GN_OK && work.node_count > 1 && is_refused(status))
            status = nodes_flush_alone(&work);
        work_release(&work);
    }
    gni_node_release(root);
    return status;
}

gn_status gni_node_flush(struct gni_node *root, const char *why)
{
    return node_flush(root, FLUSH_ASKED, why);
}

/* ---- flushing -------------------------------------------------------------------------------- */

/* True if a node needs what this thread itself is computing: a handler of the memory manager asks. */
static bool is_blocked(const struct gni_node *node)
{
    if (works.work_count == 0 || node->is_done)
        return false;
    bool found = node->is_running && node->runner == gni_thread_self();
    for (int i = 0; i < node->arity && !found; i++)
        found = node->operands[i].kind == GNI_OPERAND_NODE && is_blocked(node->operands[i].node);
    return found;
}

/* The newest reader of a node, but a sum of columns only if there are no others: those join whatever is computed. NULL:
 * none. */
static struct gni_node *newest_reader(const struct gni_node *node)
{
    struct gni_node *newest = NULL;
    for (struct gni_list *link = node->readers.prev; link != &node->readers; link = link->prev) {
        struct gni_node *reader = gni_container_of(link, struct gni_node_operand, link)->reader;
        if (!reader->is_column)
            return reader;
        newest = newest == NULL ? reader : newest;
    }
    return newest;
}

/* Goes from a node to its newest reader, and on to that one's, to the end: computing the last one computes them all. The
 * node itself, if the last one is blocked. */
static struct gni_node *top_find(struct gni_node *node)
{
    struct gni_node *top = node;
    for (struct gni_node *reader; (reader = newest_reader(top)) != NULL;)
        top = reader;
    return is_blocked(top) ? node : top;
}

/* The oldest pending node with at most this number that this thread can compute; NULL: there is none. What ends in a sum of
 * columns comes after all else, which that may join. */
static struct gni_node *oldest_find(uint64_t number)
{
    struct gni_node *column = NULL;
    for (struct gni_list *link = gni_nodes.next; link != &gni_nodes; link = link->next) {
        struct gni_node *node = gni_container_of(link, struct gni_node, link);
        if (node->number > number)
            return column;
        if (is_blocked(node))
            continue;
        if (!top_find(node)->is_column)
            return node;
        column = column == NULL ? node : column;
    }
    return column;
}

/* The number of the newest pending node; 0: there is none. */
static uint64_t newest_number(void)
{
    return gni_list_is_empty(&gni_nodes)
               ? 0
               : gni_container_of(gni_nodes.prev, struct gni_node, link)->number;
}

/* Linear in what was recorded until now: each turn computes the oldest node, together with what needs it. */
gn_status gni_nodes_flush(const char *why)
{
    struct gni_node *oldest;
    for (uint64_t number = newest_number(); (oldest = oldest_find(number)) != NULL;)
        GN_TRY(node_flush(top_find(oldest), FLUSH_SPARE, why));
    return GN_OK;
}

gn_status gni_resting_flush(bool (*is_chosen)(const struct gni_node *node, const void *context),
                            const void *context, const char *why)
{
    uint64_t number = gni_node_last_number();
    for (struct gni_list *link = gni_resting.next; link != &gni_resting;) {
        struct gni_node *node = gni_container_of(link, struct gni_node, link);
        if (node->number > number || is_blocked(node) || !is_chosen(node, context)) {
            link = link->next;
            continue;
        }
        if (!gni_recipe_forget(node))
            GN_TRY(gni_node_flush(node, why));
        link = gni_resting.next; /* the lock was free meanwhile */
    }
    return GN_OK;
}

/* A node with at most this number that reads a storage; NULL: there is none. */
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

gn_status gni_readers_flush(const struct gni_storage *storage, const char *why)
{
    struct gni_node *reader;
    for (uint64_t number = gni_node_last_number();
         (reader = reader_find(storage, number)) != NULL;) {
        if (is_blocked(reader))
            return gni_error(GN_ERROR_INVALID_VALUE,
                             "memory that is being computed with cannot be written to, or shown to "
                             "others, by a handler that memory for the result has called");
        if (gni_recipe_forget(reader))
            continue;
        /* With others it would rest again. */
        GN_TRY(gni_node_flush(reader->is_resting ? reader : top_find(reader), why));
    }
    return GN_OK;
}

/* The bytes that pending nodes may keep alive on a device. */
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
        if (last.bytes < GNI_WAITING_BYTES_LEAST)
            last.bytes = GNI_WAITING_BYTES_LEAST;
    }
    return last.bytes;
}

/* True if waiting_bound() may compute a node: it has not failed before, its value is not larger than the bound, and no thread
 * is computing it or what it needs. */
static bool is_fit(const struct gni_node *top, gn_device *device)
{
    uint64_t bytes = (uint64_t)top->count * gni_dtypes[top->typing.dtype].size;
    return !top->is_unfit && top->device->type == device->type &&
           bytes <= waiting_bytes_most(device) && !is_blocked(top) && running_find(top) == NULL;
}

static bool is_operand(const struct gni_node *node, int arity, const gn_operand *operands)
{
    for (int i = 0; i < arity; i++)
        if (operands[i].tensor != NULL && operands[i].tensor->node == node)
            return true;
    return false;
}

/* The operands of the operation are not computed until there is twice too much memory. A failure is not reported: whoever
 * asks for the value gets the error. */
void gni_waiting_bound(int arity, const gn_operand *operands, gn_device *device, uint64_t bytes)
{
    enum {
        LOOKS_MOST = 16
    };
    bool is_many = atomic_load_explicit(&gni_node_count, memory_order_relaxed) >= GNI_WAITING_MOST;
    if (!is_many && bytes < waiting_bytes_most(device))
        return;
    bool is_far = bytes >= GNI_WAITING_BYTES_LEAST && bytes / 2 >= waiting_bytes_most(device);
    int looks = 0;
    for (struct gni_list *link = gni_nodes.next; link != &gni_nodes && looks++ < LOOKS_MOST;
         link = link->next) {
        struct gni_node *top = top_find(gni_container_of(link, struct gni_node, link));
        if (!is_fit(top, device) || (is_operand(top, arity, operands) && !is_far))
            continue;
        top->references++;
        top->is_unfit = node_flush(top, FLUSH_SPARE, "much waits") != GN_OK;
        gni_node_release(top);
        return;
    }
}

gn_status gni_recorder_flush(gn_tensor *tensor)
{
    gni_recorder_lock();
    gn_status status =
        tensor->node != NULL ? gni_node_flush(tensor->node, "its bytes are needed") : GN_OK;
    gni_recorder_unlock();
    return status;
}

gn_status gni_recorder_flush_readers(struct gni_storage *storage)
{
    gni_recorder_lock();
    gn_status status =
        gni_readers_flush(storage, "what it reads is about to be written to, or shown to others");
    gni_recorder_unlock();
    return status;
}

/* ---- programs for others --------------------------------------------------------------------- */

/* True if computing a node twice costs less than storing its value. */
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

/* A collected node whose value is needed again, and is therefore computed and stored first; NULL: none. A light node that
 * reads little memory is computed twice instead, but not three times. */
static struct gni_node *node_to_keep(struct gni_work *work)
{
    enum {
        INPUTS_MOST = 2
    };
    struct gni_node *root = work->nodes[work->node_count - 1];
    bool is_twice = true;
    int inputs = 0;
    if (root->deferred != NULL)
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

/* With the lock: collects what a pending tensor needs. Nodes that are needed again are computed before. */
static gn_status work_take(struct gni_work *work, gn_tensor *tensor)
{
    work->node_count = 0;
    while (tensor->node != NULL && work->node_count == 0) {
        struct gni_node *root = tensor->node;
        root->references++;
        gn_status status = nodes_take(work, root);
        bool has_nodes = status == GN_OK && work->node_count > 0;
        struct gni_node *row = has_nodes ? row_node_find(work) : NULL;
        struct gni_node *kept = has_nodes && row == NULL ? node_to_keep(work) : NULL;
        if (row != NULL || kept != NULL) {
            work->node_count = 0;
            status = row != NULL ? gni_node_flush(row, "a value of rows is needed otherwise")
                                 : gni_node_flush(kept, "a reduction and others need it");
        }
        gni_node_release(root);
        GN_TRY(status);
    }
    return GN_OK;
}

gn_status gni_work_begin(struct gni_work *work, gn_tensor *tensor, const int *order)
{
    gn_stream *stream = NULL;
    work->node_count = 0;
    if (!tensor->device->ops->is_immediate)
        GN_TRY(gni_stream_of(tensor->device, &stream));
    gni_recorder_lock();
    gn_status status = work_take(work, tensor);
    const char *why = work->stream != stream   ? "it is needed on another stream"
                      : !tensor->is_contiguous ? "its dimensions are not in their order"
                                               : NULL;
    if (status == GN_OK && work->node_count > 0 && why != NULL) {
        status = gni_node_flush(tensor->node, why);
        work->node_count = 0;
    }
    if (status != GN_OK) {
        gni_recorder_unlock();
        return status;
    }
    work->stream = stream;
    if (work->node_count > 0) {
        gni_work_build_program(work, order);
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
    if (stream == NULL)
        return GN_OK;
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
    gni_recorder_unlock();
}

bool gni_work_split(const struct gni_work *work, gn_tensor *tensor, gn_status *status)
{
    if (*status == GN_OK || work->node_count == 0 || !is_refused(*status))
        return false;
    *status = gni_tensor_flush(tensor);
    return *status == GN_OK;
}

uint64_t gn_get_fusion_failures(void)
{
    return atomic_load(&works.failure_count);
}

/* ---- what the tensor layer is offered: struct gni_evaluator in tensor/tensor.h ---------------- */

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
        .rest = gni_recorder_rest,
        .forget_recipe = gni_recorder_forget_recipe,
        .unsaved = gni_recorder_unsaved,
        .unlast = gni_recorder_unlast,
        .meet = gni_recorder_meet,
        .compact = gni_tensor_compact,
        .get_item = gn_tensor_get_item,
        .mask_places = mask_places,
    };
}
