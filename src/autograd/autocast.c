/*
 * autocast.c: the settings of autocast, conversions of arguments, and the leaves that were converted: genesis/autocast.h.
 *
 * Invariants:
 *   AC1  a converted leaf is used while the leaf has the memory and the version that it was made from, and if it has a record
 *        where the tape is on;
 *   AC2  leaves are kept only between gn_autocast_enter() and the last gn_autocast_leave() of a thread.
 *
 * It lies here, and not beside the operations, since it asks what is a leaf.
 */
#include "autograd/autocast.h"

#include "autograd/autograd.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/host.h"
#include "base/thread.h"
#include "ops/expression.h"
#include "tensor/tape.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum {
    TYPES = 2, /* of devices */
    PARAMETERS_MOST = 16,
    IS_FOUND = 8, /* a bit above that of any policy */
};

/* A leaf that was converted. */
struct kept {
    gn_tensor *leaf, *made; /* references */
    uint64_t version;       /* of the leaf's storage, then */
    uint16_t life;          /* gn_tensor.life of the leaf, then */
    bool is_taped;
};

static _Thread_local struct {
    unsigned char enabled; /* bit: gn_device_type */
    unsigned char dtypes[TYPES];
    bool is_cache_off;
    int depth;
} settings = {.dtypes = {GN_BFLOAT16, GN_FLOAT16}};

/* A thread's converted leaves, leaf: struct kept, are a struct gni_map under this key; room for thread-local variables is
 * scarce (src/device/device.h). Without the key nothing is kept. */
static pthread_key_t cache_key;
static atomic_bool has_key;
static struct gni_once key_once = GNI_ONCE_INIT;

/* Threads that have it on for a device: nearly always 0, which is known without a look at thread-local memory. */
static atomic_int thread_count;

/* ---- settings ------------------------------------------------------------------------------------ */

bool gn_autocast_is_on(void)
{
    return atomic_load_explicit(&thread_count, memory_order_relaxed) != 0 && settings.enabled != 0;
}

static bool is_type(gn_device_type type)
{
    return (unsigned)type < TYPES;
}

bool gn_autocast_is_enabled(gn_device_type type)
{
    return is_type(type) && (settings.enabled >> type & 1) != 0;
}

void gn_autocast_set_enabled(gn_device_type type, bool is_enabled)
{
    if (!is_type(type))
        return;
    unsigned bit = 1U << type;
    bool was_on = settings.enabled != 0;
    settings.enabled =
        (unsigned char)(is_enabled ? settings.enabled | bit : settings.enabled & ~bit);
    (void)atomic_fetch_add_explicit(&thread_count, (settings.enabled != 0) - was_on,
                                    memory_order_relaxed);
}

gn_dtype gn_autocast_get_dtype(gn_device_type type)
{
    return is_type(type) ? (gn_dtype)settings.dtypes[type] : GN_FLOAT32;
}

gn_status gn_autocast_set_dtype(gn_device_type type, gn_dtype dtype)
{
    GN_CHECK_ARGUMENT(is_type(type), "there is no such type of device");
    if (dtype != GN_FLOAT16 && dtype != GN_BFLOAT16)
        return gni_error(GN_ERROR_TYPE, "autocast converts to float16 or bfloat16, not to %s",
                         gn_dtype_name(dtype));
    if (settings.dtypes[type] != (unsigned char)dtype)
        gn_autocast_clear_cache();
    settings.dtypes[type] = (unsigned char)dtype;
    return GN_OK;
}

bool gn_autocast_cache_is_enabled(void)
{
    return !settings.is_cache_off;
}

void gn_autocast_set_cache_enabled(bool is_enabled)
{
    settings.is_cache_off = !is_enabled;
}

int gn_autocast_enter(void)
{
    return ++settings.depth;
}

int gn_autocast_leave(void)
{
    settings.depth -= settings.depth > 0;
    if (settings.depth == 0)
        gn_autocast_clear_cache();
    return settings.depth;
}

/* ---- converted leaves ------------------------------------------------------------------------------ */

static void kept_free(struct kept *kept)
{
    gn_tensor_release(kept->made);
    gn_tensor_release(kept->leaf);
    gni_host_free(kept);
}

static void cache_free(void *value)
{
    struct gni_map *cache = value;
    gni_map_each (entry, cache)
        kept_free(entry->value);
    gni_map_deinit(cache);
    gni_host_free(cache);
}

static void key_create(void)
{
    atomic_store(&has_key, pthread_key_create(&cache_key, cache_free) == 0);
}

/* NULL: there is none. */
static struct gni_map *cache_get(void)
{
    return atomic_load_explicit(&has_key, memory_order_acquire) ? pthread_getspecific(cache_key)
                                                                : NULL;
}

/* The same, made if need be; NULL: without memory. */
static struct gni_map *cache_make(void)
{
    gni_once_run(&key_once, key_create);
    struct gni_map *cache = cache_get();
    if (cache != NULL || !atomic_load(&has_key))
        return cache;
    cache = gni_host_alloc(sizeof *cache);
    if (cache == NULL)
        return NULL;
    gni_map_init(cache);
    if (pthread_setspecific(cache_key, cache) == 0)
        return cache;
    gni_host_free(cache);
    return NULL;
}

void gn_autocast_clear_cache(void)
{
    struct gni_map *cache = cache_get();
    if (cache == NULL)
        return;
    (void)pthread_setspecific(cache_key, NULL); /* what goes now may run code of the program's */
    cache_free(cache);
}

static uint64_t version_of(const gn_tensor *tensor)
{
    const struct gni_storage *storage = gni_tensor_storage(tensor);
    return storage != NULL ? atomic_load_explicit(&storage->version, memory_order_relaxed) : 0;
}

/* Whether a tensor is a leaf whose conversion is kept. */
static bool is_kept(const gn_tensor *tensor, gn_dtype dtype)
{
    return settings.depth > 0 && !settings.is_cache_off && tensor->dtype == GN_FLOAT32 &&
           tensor->gradient != NULL && gn_tensor_is_leaf(tensor) &&
           dtype == gn_autocast_get_dtype(gn_device_get_type(tensor->device));
}

/* The conversion that is kept, borrowed; NULL: there is none that holds. */
static gn_tensor *kept_find(gn_tensor *leaf)
{
    void *value = NULL;
    struct gni_map *cache = cache_get();
    if (cache == NULL || (value = gni_map_find(cache, (uintptr_t)leaf)) == NULL)
        return NULL;
    struct kept *kept = value;
    bool is_same = kept->life == leaf->life && kept->version == version_of(leaf) &&
                   (kept->is_taped || gni_tape_is_paused);
    if (is_same)
        return kept->made;
    (void)gni_map_take(cache, (uintptr_t)leaf, NULL);
    kept_free(kept);
    return NULL;
}

/* Keeps a conversion. Without memory it is not kept. */
static void kept_add(gn_tensor *leaf, gn_tensor *made)
{
    struct kept *kept = gni_host_alloc(sizeof *kept);
    struct gni_map *cache = kept != NULL ? cache_make() : NULL;
    if (cache == NULL || gni_map_insert(cache, (uintptr_t)leaf, kept) != GN_OK) {
        gni_host_free(kept);
        return;
    }
    *kept = (struct kept){.leaf = leaf,
                          .made = made,
                          .version = version_of(leaf),
                          .life = leaf->life,
                          .is_taped = made->gradient != NULL};
    gn_tensor_retain(leaf);
    gn_tensor_retain(made);
}

/* ---- conversions ----------------------------------------------------------------------------------- */

static bool is_eligible(const gn_tensor *tensor)
{
    return tensor != NULL && gn_dtype_is_floating(tensor->dtype) && tensor->dtype != GN_FLOAT64 &&
           gn_autocast_is_enabled(gn_device_get_type(tensor->device));
}

/* The tensor as another type: a new reference, also where it has that already. */
static gn_status convert(gn_tensor *tensor, gn_dtype dtype, gn_tensor **made)
{
    bool may_keep = is_kept(tensor, dtype);
    gn_tensor *found = tensor->dtype == dtype ? tensor : may_keep ? kept_find(tensor) : NULL;
    if (found != NULL) {
        gn_tensor_retain(found);
        *made = found;
        return GN_OK;
    }
    GN_TRY(gn_cast(tensor, dtype, made));
    if (may_keep)
        kept_add(tensor, *made);
    return GN_OK;
}

/* What is known about the tensors of a call, looked at one by one. */
struct look {
    gn_autocast_rule rule;
    gn_device_type type; /* of the first one that may be converted */
    bool has_any;
    gn_dtype widest;
};

static void look_at(struct look *look, const gn_tensor *tensor)
{
    if (!is_eligible(tensor))
        return;
    gn_device_type type = gn_device_get_type(tensor->device);
    if (!look->has_any) {
        look->has_any = true;
        look->type = type;
        look->widest = gn_autocast_get_dtype(type);
    }
    if (type == look->type && tensor->dtype != look->widest)
        look->widest = GN_FLOAT32;
}

static gn_autocast_policy policy_of(const struct look *look)
{
    return look->has_any ? (gn_autocast_policy)look->rule.policy[look->type] : GN_AUTOCAST_NONE;
}

static gn_dtype target_of(const struct look *look)
{
    gn_autocast_policy policy = policy_of(look);
    return policy == GN_AUTOCAST_LOWER    ? gn_autocast_get_dtype(look->type)
           : policy == GN_AUTOCAST_WIDEST ? look->widest
                                          : GN_FLOAT32;
}

static bool is_converting(const struct look *look)
{
    gn_autocast_policy policy = policy_of(look);
    return policy == GN_AUTOCAST_LOWER || policy == GN_AUTOCAST_FLOAT32 ||
           policy == GN_AUTOCAST_WIDEST;
}

gn_status gn_autocast_operands(gn_autocast_rule rule, int count, gn_operand *operands,
                               gn_tensor **made)
{
    struct look look = {.rule = rule};
    gn_status status = GN_OK;
    GN_CHECK_ARGUMENT(count >= 0 && ((operands != NULL && made != NULL) || count == 0),
                      "operands and made must not be NULL");
    for (int i = 0; i < count; i++) {
        made[i] = NULL;
        look_at(&look, operands[i].tensor);
    }
    for (int i = 0; i < count && status == GN_OK && is_converting(&look); i++)
        if (is_eligible(operands[i].tensor) &&
            gn_device_get_type(operands[i].tensor->device) == look.type)
            status = convert(operands[i].tensor, target_of(&look), &made[i]);
    for (int i = 0; i < count; i++) {
        if (status == GN_OK && made[i] != NULL)
            operands[i].tensor = made[i];
        if (status != GN_OK) {
            gn_tensor_release(made[i]);
            made[i] = NULL;
        }
    }
    return status;
}

/* ---- functions of the table ------------------------------------------------------------------------ */

/* What a signature says about its parameters. */
struct parameters {
    int count;
    unsigned lists;  /* bits: lists of tensors */
    unsigned dtypes; /* bits: types of elements */
};

static struct parameters parameters_read(const char *signature)
{
    struct parameters parameters = {0};
    const char *end = strstr(signature, "-> ");
    for (const char *at = signature; (at = strstr(at, ": ")) != NULL && (end == NULL || at < end);
         parameters.count++) {
        at += 2;
        parameters.lists |= (unsigned)(strncmp(at, "tensors", 7) == 0) << parameters.count;
        parameters.dtypes |= (unsigned)(strncmp(at, "dtype", 5) == 0) << parameters.count;
    }
    return parameters;
}

static void look_at_arguments(struct look *look, const struct parameters *parameters,
                              const gn_argument *arguments)
{
    for (int i = 0; i < parameters->count; i++) {
        look_at(look, arguments[i].operand.tensor);
        for (int k = 0; (parameters->lists >> i & 1) != 0 && k < arguments[i].count; k++)
            look_at(look, arguments[i].tensors[k]);
    }
}

static gn_tensor *converted(struct gni_scope *scope, const struct look *look, gn_tensor *tensor)
{
    gn_tensor *made = NULL;
    if (!is_eligible(tensor) || gn_device_get_type(tensor->device) != look->type ||
        !gni_scope_is_ok(scope))
        return tensor;
    gn_status status = convert(tensor, target_of(look), &made);
    return gni_scope_keep(scope, status, made);
}

/* The arguments with converted tensors, which belong to the scope. */
static void arguments_convert(struct gni_scope *scope, const struct look *look,
                              const struct parameters *parameters, gn_argument *arguments)
{
    int64_t listed = 0;
    for (int i = 0; i < parameters->count; i++)
        if ((parameters->lists >> i & 1) != 0)
            listed += arguments[i].count;
    gn_tensor **list = listed > 0 ? gni_scope_list(scope, listed) : NULL;
    for (int i = 0; i < parameters->count && gni_scope_is_ok(scope); i++) {
        arguments[i].operand.tensor = converted(scope, look, arguments[i].operand.tensor);
        if ((parameters->lists >> i & 1) == 0)
            continue;
        for (int k = 0; k < arguments[i].count; k++)
            list[k] = converted(scope, look, arguments[i].tensors[k]);
        arguments[i].tensors = list;
        list += arguments[i].count;
    }
}

/* The first result as the type of the first tensor. */
static gn_status call_like_first(const gn_function *function, const gn_argument *arguments,
                                 gn_results *results)
{
    const gn_tensor *first = arguments[0].operand.tensor;
    GN_TRY(function->call(arguments, results));
    if (first == NULL || results->count == 0 || results->tensors[0]->dtype == first->dtype)
        return GN_OK;
    gn_tensor *made;
    gn_status status = gn_cast(results->tensors[0], first->dtype, &made);
    if (status != GN_OK) {
        gn_results_clear(results);
        return status;
    }
    gn_tensor_release(results->tensors[0]);
    results->tensors[0] = made;
    return GN_OK;
}

/* Whether the call names the type itself. */
static bool has_dtype(const struct parameters *parameters, const gn_argument *arguments)
{
    bool has = false;
    for (int i = 0; i < parameters->count; i++)
        has |= (parameters->dtypes >> i & 1) != 0 && arguments[i].is_given;
    return has;
}

gn_status gn_autocast_call(gn_autocast_rule rule, const gn_function *function,
                           const gn_argument *arguments, gn_results *results)
{
    struct look look = {.rule = rule};
    struct gni_scope scope = {0};
    gn_argument changed[PARAMETERS_MOST];
    GN_CHECK_ARGUMENT(function != NULL && arguments != NULL && results != NULL,
                      "function, arguments and results must not be NULL");
    if ((rule.policy[0] | rule.policy[1]) == GN_AUTOCAST_NONE || results->out != NULL ||
        results->target != NULL)
        return function->call(arguments, results);
    struct parameters parameters = parameters_read(function->signature);
    gni_assert(parameters.count <= PARAMETERS_MOST);
    look_at_arguments(&look, &parameters, arguments);
    if (policy_of(&look) == GN_AUTOCAST_REFUSED)
        return gni_error(GN_ERROR_UNSUPPORTED,
                         "it is unsafe under autocast, since halves have no digits left next to 0 "
                         "and 1: use binary_cross_entropy_with_logits, without a sigmoid before");
    if (policy_of(&look) == GN_AUTOCAST_LIKE_FIRST)
        return call_like_first(function, arguments, results);
    if (!is_converting(&look) || has_dtype(&parameters, arguments))
        return function->call(arguments, results);
    memcpy(changed, arguments, (size_t)parameters.count * sizeof *changed);
    arguments_convert(&scope, &look, &parameters, changed);
    gn_status status = scope.status;
    if (status == GN_OK)
        status = function->call(changed, results);
    gn_status closed = gni_scope_close(&scope);
    return status != GN_OK ? status : closed;
}

gn_status gn_function_call(const gn_function *function, const gn_argument *arguments,
                           gn_results *results)
{
    GN_CHECK_ARGUMENT(function != NULL && arguments != NULL && results != NULL,
                      "function, arguments and results must not be NULL");
    if (!gn_autocast_is_on())
        return function->call(arguments, results);
    return gn_autocast_call(gn_autocast_find(function->name), function, arguments, results);
}

/* ---- rules ------------------------------------------------------------------------------------------- */

gn_autocast_rule gn_autocast_find(const char *name)
{
    const char *dot = name != NULL ? strrchr(name, '.') : NULL;
    if (name == NULL)
        return (gn_autocast_rule){{GN_AUTOCAST_NONE}};
    return gni_autocast_policy_find(dot != NULL ? dot + 1 : name);
}

gn_autocast_rule gn_autocast_find_operation(gn_op op)
{
    static atomic_ushort rules[GN_OP_COUNT]; /* 0: not looked for yet */
#define NAME(NAME, c_name, arity, domain, name, ...) name,
    static const char *const names[] = {GN_OP_LIST(NAME)};
#undef NAME
    if ((unsigned)op >= GN_OP_COUNT)
        return (gn_autocast_rule){{GN_AUTOCAST_NONE}};
    unsigned rule = atomic_load_explicit(&rules[op], memory_order_relaxed);
    if (rule == 0) {
        gn_autocast_rule found = gn_autocast_find(names[op]);
        rule = IS_FOUND | (unsigned)found.policy[0] | (unsigned)found.policy[1] << 8;
        atomic_store_explicit(&rules[op], (unsigned short)rule, memory_order_relaxed);
    }
    return (gn_autocast_rule){{(unsigned char)(rule & (IS_FOUND - 1)), (unsigned char)(rule >> 8)}};
}
