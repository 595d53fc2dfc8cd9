/*
 * python_memory_views.c: what a memory manager holds, has done and is told to do, as dicts.
 */
#include "module.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Puts a new reference, which it takes over, into a dict; -1 and no dict on failure. */
static int dict_put(PyObject **dict, const char *name, PyObject *value)
{
    if (value == NULL || PyDict_SetItemString(*dict, name, value) < 0)
        Py_CLEAR(*dict);
    Py_XDECREF(value);
    return *dict != NULL ? 0 : -1;
}

/* ---- counters ------------------------------------------------------------------------------- */

/* A counter of a structure. */
struct counter {
    const char *name;
    size_t offset;
};

#define STATISTIC(name)                             \
    {                                               \
#name, offsetof(gn_memory_statistics, name) \
    }

static const struct counter statistics[] = {
    STATISTIC(live_bytes),        STATISTIC(live_bytes_peak),     STATISTIC(live_count),
    STATISTIC(live_count_peak),   STATISTIC(requested_bytes),     STATISTIC(requested_bytes_peak),
    STATISTIC(reserved_bytes),    STATISTIC(reserved_bytes_peak), STATISTIC(cached_bytes),
    STATISTIC(pending_bytes),     STATISTIC(alloc_count),         STATISTIC(free_count),
    STATISTIC(alloc_bytes_total), STATISTIC(free_bytes_total),    STATISTIC(stream_hit_count),
    STATISTIC(global_hit_count),  STATISTIC(miss_count),          STATISTIC(out_of_memory_count),
    STATISTIC(retry_count),       STATISTIC(refused_count),       STATISTIC(driver_alloc_count),
    STATISTIC(driver_free_count), STATISTIC(driver_time_ns),      STATISTIC(event_count),
    STATISTIC(handover_count),    STATISTIC(limit_bytes),         STATISTIC(largest_free_bytes),
    STATISTIC(pending_count),     STATISTIC(active_bytes_peak),   STATISTIC(active_count_peak),
    STATISTIC(driver_count_peak), STATISTIC(driver_bytes_total),  STATISTIC(wait_count),
};

enum {
    STATISTIC_COUNT = sizeof statistics / sizeof statistics[0]
};
_Static_assert(STATISTIC_COUNT * sizeof(uint64_t) == sizeof(gn_memory_statistics),
               "every statistic is listed");

/*
 * Computes what is pending, so that figures mean what they say. What there is no memory for goes on waiting: who is
 * out of memory must be able to look.
 */
static gn_status figures_settle(void)
{
    gn_status status;
    CALL_ALLOCATING(status, gn_flush());
    return status == GN_ERROR_OUT_OF_MEMORY || status == GN_ERROR_OUT_OF_HOST_MEMORY ? GN_OK
                                                                                     : status;
}

PyObject *manager_statistics(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_memory_statistics now;
    gn_status status = figures_settle();
    if (status == GN_OK)
        status = gn_memory_get_statistics(manager_of(self)->manager, &now);
    if (status != GN_OK)
        return error_raise(manager_of(self)->state, status);
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < STATISTIC_COUNT; i++) {
        uint64_t value;
        memcpy(&value, (const char *)&now + statistics[i].offset, sizeof value);
        (void)dict_put(&dict, statistics[i].name, PyLong_FromUnsignedLongLong(value));
    }
    return dict;
}

/* The classes in memory that the caller frees. Their number may grow between two calls. */
static gn_status classes_read(gn_memory_manager *manager, gn_memory_class **classes, size_t *count)
{
    *classes = NULL;
    size_t capacity = 0;
    for (;;) {
        gn_status status = gn_memory_get_classes(manager, *classes, capacity, count);
        if (status != GN_OK || *count <= capacity)
            return status;
        free(*classes);
        capacity = *count;
        *classes = calloc(capacity, sizeof **classes);
        if (*classes == NULL)
            return GN_ERROR_OUT_OF_HOST_MEMORY;
    }
}

PyObject *manager_classes(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_memory_class *classes;
    size_t count;
    gn_status status = classes_read(manager_of(self)->manager, &classes, &count);
    PyObject *list = status == GN_OK ? PyList_New(0) : error_raise(manager_of(self)->state, status);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *item =
            Py_BuildValue("{sKsKsKsK}", "nbytes", (unsigned long long)classes[i].nbytes,
                          "alloc_count", (unsigned long long)classes[i].alloc_count, "hit_count",
                          (unsigned long long)classes[i].hit_count, "cached_count",
                          (unsigned long long)classes[i].cached_count);
        (void)list_append(&list, item);
    }
    free(classes);
    return list;
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* What a visit has seen: copied first, so that no Python object is made without the lock. */
struct visit {
    gn_memory_info *seen;
    size_t count, capacity;
    bool is_out_of_memory;
};

static bool visit_one(const gn_memory_info *info, void *context)
{
    struct visit *visit = context;
    if (visit->count == visit->capacity) {
        size_t capacity = visit->capacity * 2 + 64;
        gn_memory_info *grown = reallocarray(visit->seen, capacity, sizeof *grown);
        visit->is_out_of_memory = grown == NULL;
        if (grown == NULL)
            return false;
        visit->seen = grown;
        visit->capacity = capacity;
    }
    visit->seen[visit->count++] = *info;
    return true;
}

static PyObject *info_to_python(const gn_memory_info *info)
{
    static const char *const states[] = {
        [GN_MEMORY_LIVE] = "live",
        [GN_MEMORY_PENDING] = "pending",
        [GN_MEMORY_STREAM_CACHED] = "stream_cached",
        [GN_MEMORY_GLOBAL_CACHED] = "global_cached",
    };
#define NUMBER(name, value) #name, (unsigned long long)(value)
    return Py_BuildValue("{sKsKsKsKsKsKsssKsKsKsN}", NUMBER(segment_id, info->segment_id),
                         NUMBER(segment_address, (uintptr_t)info->segment_address),
                         NUMBER(segment_bytes, info->segment_bytes),
                         NUMBER(address, (uintptr_t)info->address), NUMBER(nbytes, info->nbytes),
                         NUMBER(requested, info->requested), "state", states[info->state],
                         NUMBER(stream_id, info->stream_id), NUMBER(number, info->number),
                         NUMBER(site, info->site), "age_ns",
                         info->age_ns == UINT64_MAX ? Py_NewRef(Py_None)
                                                    : PyLong_FromUnsignedLongLong(info->age_ns));
#undef NUMBER
}

PyObject *manager_blocks(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct visit visit = {0};
    gn_status status = figures_settle();
    if (status != GN_OK)
        return error_raise(manager_of(self)->state, status);
    CALL_UNLOCKED(status, gn_memory_visit(manager_of(self)->manager, visit_one, &visit));
    PyObject *list = NULL;
    if (visit.is_out_of_memory)
        PyErr_NoMemory();
    else if (status != GN_OK)
        error_raise(manager_of(self)->state, status);
    else
        list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < visit.count; i++)
        (void)list_append(&list, info_to_python(&visit.seen[i]));
    free(visit.seen);
    return list;
}

/* ---- configuration -------------------------------------------------------------------------- */

static const char *const strategies[] = {
    [GN_MEMORY_BEST_FIT] = "best_fit",
    [GN_MEMORY_FIRST_FIT] = "first_fit",
    [GN_MEMORY_DIRECT] = "direct",
};

static PyObject *limit_to_python(size_t limit)
{
    return limit == SIZE_MAX ? Py_NewRef(Py_None) : PyLong_FromSize_t(limit);
}

PyObject *manager_get_config(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_memory_config now;
    gn_status status = gn_memory_get_config(manager_of(self)->manager, &now);
    if (status != GN_OK)
        return error_raise(manager_of(self)->state, status);
    return Py_BuildValue("{sssNsNsNsNsdsdsdsN}", "strategy", strategies[now.strategy],
                         "segment_bytes", limit_to_python(now.segment_bytes), "cache_bytes",
                         limit_to_python(now.cache_bytes), "stream_cache_blocks",
                         limit_to_python(now.stream_cache_blocks), "global_cache_blocks",
                         limit_to_python(now.global_cache_blocks), "memory_fraction",
                         now.memory_fraction, "cleanup_threshold", now.cleanup_threshold,
                         "coalescing_threshold", now.coalescing_threshold,
                         "has_detailed_statistics", PyBool_FromLong(now.has_detailed_statistics));
}

static int strategy_from_python(PyObject *object, gn_memory_strategy *strategy)
{
    if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "an allocation strategy is a str, not %R",
                     (PyObject *)Py_TYPE(object));
        return -1;
    }
    for (int i = GN_MEMORY_BEST_FIT; i <= GN_MEMORY_DIRECT; i++) {
        if (PyUnicode_CompareWithASCIIString(object, strategies[i]) == 0) {
            *strategy = (gn_memory_strategy)i;
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError,
                 "%R is no allocation strategy: write \"best_fit\", \"first_fit\" or \"direct\"",
                 object);
    return -1;
}

static int limit_from_python(PyObject *object, const char *what, size_t *limit)
{
    if (object == Py_None) {
        *limit = SIZE_MAX;
        return 0;
    }
    return size_from_python(object, what, limit);
}

static int number_from_python(PyObject *object, double *number)
{
    double value = PyFloat_AsDouble(object);
    if (value == -1.0 && PyErr_Occurred())
        return -1;
    *number = value;
    return 0;
}

/* Changes one setting; the library judges its value. */
static int setting_apply(gn_memory_config *config, const char *name, PyObject *value)
{
#define IS(field) (strcmp(name, #field) == 0)
#define LIMIT(field) limit_from_python(value, #field, &config->field)
#define NUMBER(field) number_from_python(value, &config->field)
    if (IS(strategy))
        return strategy_from_python(value, &config->strategy);
    if (IS(segment_bytes))
        return size_from_python(value, "segment_bytes", &config->segment_bytes);
    if (IS(cache_bytes))
        return LIMIT(cache_bytes);
    if (IS(stream_cache_blocks))
        return LIMIT(stream_cache_blocks);
    if (IS(global_cache_blocks))
        return LIMIT(global_cache_blocks);
    if (IS(memory_fraction))
        return NUMBER(memory_fraction);
    if (IS(cleanup_threshold))
        return NUMBER(cleanup_threshold);
    if (IS(coalescing_threshold))
        return NUMBER(coalescing_threshold);
    if (IS(has_detailed_statistics)) {
        int is_on = PyObject_IsTrue(value);
        config->has_detailed_statistics = is_on > 0;
        return is_on < 0 ? -1 : 0;
    }
#undef IS
#undef LIMIT
#undef NUMBER
    PyErr_Format(PyExc_TypeError, "set_config() got an unexpected keyword argument '%s'", name);
    return -1;
}

PyObject *manager_set_config(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    struct manager_object *own = manager_of(self);
    if (PyTuple_Size(arguments) != 0) {
        PyErr_SetString(PyExc_TypeError, "set_config() takes its settings by name");
        return NULL;
    }
    gn_memory_config config;
    gn_status status = gn_memory_get_config(own->manager, &config);
    if (status != GN_OK)
        return error_raise(own->state, status);
    PyObject *name, *value;
    Py_ssize_t place = 0;
    while (keywords != NULL && PyDict_Next(keywords, &place, &name, &value)) {
        const char *text = text_from_python(name);
        if (text == NULL || setting_apply(&config, text, value) < 0)
            return NULL;
    }
    CALL_UNLOCKED(status, gn_memory_configure(own->manager, &config));
    manager_entry_refresh(own->entry);
    return none_or_raise(self, status);
}

/* ---- compaction ----------------------------------------------------------------------------- */

PyObject *manager_compact(PyObject *self, PyObject *unused)
{
    (void)unused;
    gn_memory_compaction done;
    gn_status status;
    CALL_UNLOCKED(status, gn_memory_compact(manager_of(self)->manager, &done));
    if (status != GN_OK)
        return error_raise(manager_of(self)->state, status);
    return Py_BuildValue("{sKsKsKsKsN}", "released_bytes", (unsigned long long)done.released_bytes,
                         "folded_pages", (unsigned long long)done.folded_pages, "moved_bytes",
                         (unsigned long long)done.moved_bytes, "skipped_bytes",
                         (unsigned long long)done.skipped_bytes, "can_fold",
                         PyBool_FromLong(done.can_fold));
}
