/*
 * bench_loader.c: a threaded data loader on the CPU's memory manager, beside malloc.
 *
 * Loader threads make batches and the main thread uses them up, as the data loaders of training programs do. For a
 * batch a loader allocates and fills samples of random length and a label for each, copies the samples into one buffer
 * that it allocates for the batch, and frees the samples. The main thread reads the buffer and the labels, and frees
 * them: it frees what other threads allocated.
 *
 * Both peers run in turns, `ROUNDS` times. It prints the medians of the time of a batch, and of the ratio in a round.
 *
 *     bench_loader [batches of a round]      the standard is 400
 */
#include "genesis/genesis.h"

#include "timing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 9,
    LOADERS = 2,
    SAMPLES = 16,
    SAMPLE_LEAST = 4 << 10,
    SAMPLE_MOST = 256 << 10,
    LABEL = 1 << 10,
    QUEUE = 8, /* batches that wait for the main thread */
    LINE = 64,
};

/* Memory of either peer: what frees it, and its address. */
struct buffer {
    gn_memory_block *block; /* NULL: malloc's */
    unsigned char *bytes;
    size_t nbytes;
};

struct batch {
    struct buffer data;
    struct buffer labels[SAMPLES];
};

struct loader {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct batch queue[QUEUE];
    size_t head, tail; /* batches that were put in, and taken out */
    size_t wanted;     /* batches that nobody has begun */
    bool is_genesis;
};

static gn_memory_manager *manager;
static atomic_uint sink; /* what was read is used */

static void fail(const char *what)
{
    fprintf(stderr, "bench_loader: %s: %s\n", what, gn_error_detail());
    exit(1);
}

static struct buffer buffer_make(bool is_genesis, size_t nbytes)
{
    struct buffer made = {.nbytes = nbytes};
    if (!is_genesis)
        made.bytes = malloc(nbytes);
    else if (gn_memory_block_alloc(manager, nbytes, NULL, &made.block) == GN_OK)
        made.bytes = gn_memory_block_get_address(made.block);
    if (made.bytes == NULL)
        fail("alloc");
    return made;
}

static void buffer_free(struct buffer buffer)
{
    if (buffer.block == NULL)
        free(buffer.bytes);
    else if (gn_memory_block_free(buffer.block) != GN_OK)
        fail("free");
}

/* xorshift: every peer gets the same sizes. */
static size_t random_below(uint64_t *state, size_t end)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (size_t)(*state % end);
}

static struct batch batch_make(bool is_genesis, uint64_t *state)
{
    struct batch batch;
    struct buffer samples[SAMPLES];
    size_t total = 0, at = 0;
    for (int i = 0; i < SAMPLES; i++) {
        size_t nbytes = SAMPLE_LEAST + random_below(state, SAMPLE_MOST - SAMPLE_LEAST);
        samples[i] = buffer_make(is_genesis, nbytes);
        memset(samples[i].bytes, i, nbytes);
        batch.labels[i] = buffer_make(is_genesis, LABEL);
        memset(batch.labels[i].bytes, i, LABEL);
        total += nbytes;
    }
    batch.data = buffer_make(is_genesis, total);
    for (int i = 0; i < SAMPLES; i++) {
        memcpy(batch.data.bytes + at, samples[i].bytes, samples[i].nbytes);
        at += samples[i].nbytes;
        buffer_free(samples[i]);
    }
    return batch;
}

static void batch_use(struct batch *batch)
{
    unsigned sum = 0;
    for (size_t at = 0; at < batch->data.nbytes; at += LINE)
        sum += batch->data.bytes[at];
    buffer_free(batch->data);
    for (int i = 0; i < SAMPLES; i++) {
        sum += batch->labels[i].bytes[0];
        buffer_free(batch->labels[i]);
    }
    atomic_fetch_add(&sink, sum);
}

static void *loader_run(void *context)
{
    struct loader *loader = context;
    static _Thread_local uint64_t state = 88172645463325252u;
    for (;;) {
        pthread_mutex_lock(&loader->mutex);
        bool is_last = loader->wanted == 0;
        loader->wanted -= !is_last;
        pthread_mutex_unlock(&loader->mutex);
        if (is_last)
            return NULL;
        struct batch batch = batch_make(loader->is_genesis, &state);
        pthread_mutex_lock(&loader->mutex);
        while (loader->head - loader->tail == QUEUE)
            pthread_cond_wait(&loader->changed, &loader->mutex);
        loader->queue[loader->head++ % QUEUE] = batch;
        pthread_cond_broadcast(&loader->changed);
        pthread_mutex_unlock(&loader->mutex);
    }
}

/* Microseconds for a batch. */
static double round_run(bool is_genesis, size_t count)
{
    static struct loader loader;
    pthread_t threads[LOADERS];
    loader = (struct loader){.mutex = PTHREAD_MUTEX_INITIALIZER,
                             .changed = PTHREAD_COND_INITIALIZER,
                             .wanted = count,
                             .is_genesis = is_genesis};
    double begin = now_ns();
    for (int i = 0; i < LOADERS; i++)
        if (pthread_create(&threads[i], NULL, loader_run, &loader) != 0)
            fail("pthread_create");
    for (size_t used = 0; used < count; used++) {
        pthread_mutex_lock(&loader.mutex);
        while (loader.head == loader.tail)
            pthread_cond_wait(&loader.changed, &loader.mutex);
        struct batch batch = loader.queue[loader.tail++ % QUEUE];
        pthread_cond_broadcast(&loader.changed);
        pthread_mutex_unlock(&loader.mutex);
        batch_use(&batch);
    }
    for (int i = 0; i < LOADERS; i++)
        pthread_join(threads[i], NULL);
    return (now_ns() - begin) / 1e3 / (double)count;
}

int main(int argument_count, char **arguments)
{
    gn_device *device;
    size_t count = argument_count > 1 ? strtoul(arguments[1], NULL, 10) : 400;
    double theirs[ROUNDS], ours[ROUNDS], ratios[ROUNDS];
    if (gn_device_get(GN_DEVICE_CPU, 0, &device) != GN_OK ||
        gn_memory_manager_get(device, &manager) != GN_OK)
        fail("the CPU's manager");
    for (int round = -1; round < ROUNDS; round++) { /* the first one faults memory in */
        double one = round_run(false, count), other = round_run(true, count);
        if (round < 0)
            continue;
        theirs[round] = one;
        ours[round] = other;
        ratios[round] = one / other;
    }
    printf(
        "| batch of %d samples, %d loader threads | malloc, us | Genesis, us | malloc / Genesis |\n"
        "|---|---|---|---|\n| | %.1f | %.1f | %.2f |\n",
        SAMPLES, LOADERS, quantile(theirs, ROUNDS, 0.5), quantile(ours, ROUNDS, 0.5),
        quantile(ratios, ROUNDS, 0.5));
    return 0;
}
