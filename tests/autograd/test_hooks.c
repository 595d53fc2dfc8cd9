/*
 * test_hooks.c: what programs add to graphs of gradients: hooks, gradients of their own, packed values, places of gradients,
 * gradients that results retain; and looking at graphs.
 */
#include "check.h"

#include "base/host.h"
#include "genesis/genesis.h"

#include <pthread.h>
#include <string.h>

static gn_device *device;

static void ok(gn_status status)
{
    CHECK_U64(status, GN_OK);
    if (status != GN_OK)
        fprintf(stderr, "    %s\n", gn_error_detail());
}

static bool says(const char *words)
{
    return strstr(gn_error_detail(), words) != NULL;
}

/* A leaf with the elements 1, 2, 3 ... */
static gn_tensor *leaf(int64_t count)
{
    gn_tensor *made;
    const gn_scalar first = {.kind = GN_FLOAT64, .floating = 1};
    ok(gn_full(first, GN_FLOAT64, 1, &count, device, &made));
    for (int64_t i = 1; i < count; i++) {
        gn_tensor *one;
        ok(gn_tensor_select(made, 0, i, &one));
        ok(gn_assign(one, (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = (double)i + 1}}));
        gn_tensor_release(one);
    }
    ok(gn_tensor_set_requires_gradient(made, true));
    return made;
}

static gn_tensor *multiply(gn_tensor *a, gn_tensor *b)
{
    gn_tensor *made = NULL;
    ok(gn_elementwise(GN_OP_MULTIPLY, (gn_operand[]){{.tensor = a}, {.tensor = b}}, &made));
    return made;
}

static gn_tensor *sum(gn_tensor *x)
{
    gn_tensor *made = NULL;
    ok(gn_reduce(GN_REDUCE_SUM, x, 0, false, &made));
    return made;
}

/* The sum of x x. */
static gn_tensor *loss_of(gn_tensor *x)
{
    gn_tensor *square = multiply(x, x), *made = sum(square);
    gn_tensor_release(square);
    return made;
}

static double element(gn_tensor *x, int64_t index)
{
    gn_scalar item = {0};
    ok(gn_tensor_get_item(x, &index, &item));
    return item.floating;
}

static double gradient(gn_tensor *x, int64_t index)
{
    gn_tensor *found = NULL;
    ok(gn_tensor_get_gradient(x, &found));
    CHECK(found != NULL);
    double number = found != NULL ? element(found, index) : -1;
    gn_tensor_release(found);
    return number;
}

static bool has_gradient(gn_tensor *x)
{
    gn_tensor *found = NULL;
    ok(gn_tensor_get_gradient(x, &found));
    gn_tensor_release(found);
    return found != NULL;
}

static void backward(gn_tensor *loss, gn_status expected)
{
    CHECK_U64(gn_backward(1, &loss, NULL, 0), expected);
    gn_tensor_release(loss);
}

/* ---- hooks ----------------------------------------------------------------------------------- */

struct calls {
    int count, ended;
    double factor; /* 0: no replacement */
    gn_status status;
    gn_hook *remove; /* in the call */
};

static gn_status called(void *context, gn_tensor *tensor, gn_tensor **replacement)
{
    struct calls *calls = context;
    calls->count++;
    if (calls->remove != NULL)
        gn_hook_remove(calls->remove);
    if (calls->factor == 0 || calls->status != GN_OK)
        return calls->status;
    const gn_scalar factor = {.kind = GN_FLOAT64, .floating = calls->factor};
    return gn_elementwise(GN_OP_MULTIPLY, (gn_operand[]){{.tensor = tensor}, {.scalar = factor}},
                          replacement);
}

static void ended(void *context)
{
    ((struct calls *)context)->ended++;
}

static gn_hook *hook(gn_tensor *tensor, gn_hook_kind kind, struct calls *calls)
{
    gn_hook *made = NULL;
    ok(gn_tensor_add_hook(tensor, kind, called, calls, ended, &made));
    return made;
}

static void test_hooks(void)
{
    struct calls twice = {.factor = 2}, more = {.factor = 5}, inner = {.factor = 3};
    gn_tensor *x = leaf(3), *y = multiply(x, x);
    gn_hook *hooks[] = {hook(x, GN_HOOK_GRADIENT, &twice), hook(x, GN_HOOK_GRADIENT, &more),
                        hook(y, GN_HOOK_GRADIENT, &inner)};
    gn_tensor *loss = sum(y);
    ok(gn_backward(1, &loss, NULL, GN_RETAIN_GRAPH));
    CHECK(gradient(x, 2) == 6 * 2 * 5 * 3);
    gn_hook_remove(hooks[1]);
    CHECK_U64(more.ended, 1);
    ok(gn_tensor_set_gradient(x, NULL));
    backward(loss, GN_OK);
    CHECK(gradient(x, 2) == 6 * 2 * 3);
    CHECK_U64(twice.count, 2);
    CHECK_U64(more.count, 1);
    CHECK_U64(inner.ended, 0);
    gn_tensor_release(y);
    CHECK_U64(inner.ended, 0); /* the handle has it still */
    gn_tensor_release(x);
    for (int i = 0; i < 3; i++)
        gn_hook_release(hooks[i]);
    CHECK_U64(twice.ended + more.ended + inner.ended, 3);
}

static void test_hooks_that_fail(void)
{
    struct calls calls = {.status = GN_ERROR_INDEX};
    gn_tensor *x = leaf(3), *loss = loss_of(x);
    gn_hook *one = hook(x, GN_HOOK_GRADIENT, &calls);
    CHECK_U64(gn_backward(1, &loss, NULL, GN_RETAIN_GRAPH), GN_ERROR_INDEX);
    CHECK(!has_gradient(x));
    calls.status = GN_OK;
    ok(gn_backward(1, &loss, NULL, GN_RETAIN_GRAPH)); /* it can be repeated */
    CHECK(gradient(x, 2) == 6);
    calls.status = GN_ERROR_INDEX;
    CHECK_U64(gn_backward(1, &loss, NULL, 0), GN_ERROR_INDEX);
    CHECK(gradient(x, 2) == 6);
    calls.status = GN_OK;
    backward(loss, GN_ERROR_INVALID_VALUE);
    CHECK(says("failed"));
    gn_hook_release(one);
    gn_tensor_release(x);
}

/* A hook removes itself while it is called: its context stays until the end of the call. */
static void test_a_hook_that_removes_itself(void)
{
    struct calls calls = {.factor = 2};
    gn_tensor *x = leaf(2);
    calls.remove = hook(x, GN_HOOK_GRADIENT, &calls);
    backward(loss_of(x), GN_OK);
    CHECK(gradient(x, 1) == 8);
    CHECK_U64(calls.ended, 1);
    backward(loss_of(x), GN_OK);
    CHECK(gradient(x, 1) == 12);
    CHECK_U64(calls.count, 1);
    gn_hook_release(calls.remove);
    CHECK_U64(calls.ended, 1);
    for (int i = 0; i < 100; i++) { /* removed ones do not pile up */
        struct calls other = {0};
        gn_hook *one = hook(x, GN_HOOK_GRADIENT, &other);
        gn_hook_remove(one);
        gn_hook_release(one);
        CHECK_U64(other.ended, 1);
    }
    gn_tensor_release(x);
}

static gn_status wrong_shape(void *context, gn_tensor *tensor, gn_tensor **replacement)
{
    (void)context;
    return gn_reduce(GN_REDUCE_SUM, tensor, 0, false, replacement);
}

static void test_hooks_that_are_wrong(void)
{
    struct calls calls = {0};
    gn_hook *one = NULL;
    gn_tensor *x = leaf(3), *y = multiply(x, x), *loss = sum(y), *plain = NULL;
    ok(gn_tensor_detach(x, &plain));
    CHECK_U64(gn_tensor_add_hook(plain, GN_HOOK_GRADIENT, called, &calls, NULL, &one),
              GN_ERROR_INVALID_VALUE);
    CHECK_U64(gn_tensor_add_hook(y, GN_HOOK_ACCUMULATED, called, &calls, NULL, &one),
              GN_ERROR_INVALID_VALUE);
    ok(gn_tensor_add_hook(x, GN_HOOK_GRADIENT, wrong_shape, NULL, NULL, &one));
    backward(loss, GN_ERROR_INVALID_VALUE);
    CHECK(says("shape (3)") || says("shape (3,)"));
    gn_hook_release(one);
    gn_hook_release(NULL);
    gn_tensor_release(x);
    gn_tensor_release(y);
    gn_tensor_release(plain);
}

/* After each leaf has got its gradient, and before the pass ends. */
static gn_status leaf_seen(void *context, gn_tensor *tensor, gn_tensor **replacement)
{
    (void)replacement;
    *(double *)context = gradient(tensor, 1);
    return gn_tensor_set_gradient(tensor, NULL);
}

static void test_accumulated(void)
{
    double seen = 0;
    gn_hook *one = NULL;
    gn_tensor *x = leaf(2);
    ok(gn_tensor_add_hook(x, GN_HOOK_ACCUMULATED, leaf_seen, &seen, NULL, &one));
    backward(loss_of(x), GN_OK);
    CHECK(seen == 4);
    CHECK(!has_gradient(x));
    gn_hook_release(one);
    gn_tensor_release(x);
}

static void *walk_often(void *context)
{
    for (int i = 0; i < 200; i++) {
        gn_tensor *loss = context;
        ok(gn_backward(1, &loss, NULL, GN_RETAIN_GRAPH));
    }
    return NULL;
}

/* Threads walk one graph while hooks come and go; no sum is lost. */
static void test_threads(void)
{
    pthread_t threads[4];
    gn_tensor *x = leaf(2), *loss = loss_of(x);
    ok(gn_backward(1, &loss, NULL, GN_RETAIN_GRAPH));
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, walk_often, loss) == 0);
    for (int i = 0; i < 200; i++) {
        struct calls calls = {0};
        gn_hook *one = NULL;
        ok(gn_tensor_add_hook(x, GN_HOOK_GRADIENT, called, &calls, NULL, &one));
        gn_hook_remove(one);
        gn_hook_release(one);
    }
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(gradient(x, 1) == 4 * (1 + 4 * 200));
    gn_tensor_release(loss);
    gn_tensor_release(x);
}

/* ---- gradients that are kept --------------------------------------------------------------------- */

static void test_retained(void)
{
    gn_tensor *x = leaf(3), *y = multiply(x, x), *z = multiply(y, y), *loss = sum(z);
    CHECK(!gn_tensor_retains_gradient(y));
    ok(gn_tensor_retain_gradient(y));
    CHECK(gn_tensor_retains_gradient(y) && !gn_tensor_retains_gradient(x));
    ok(gn_backward(1, &loss, NULL, GN_RETAIN_GRAPH));
    CHECK(gradient(y, 2) == 18);
    CHECK(gradient(x, 2) == 4 * 27);
    CHECK(!has_gradient(z));
    ok(gn_backward(1, &loss, NULL, GN_RETAIN_GRAPH));
    CHECK(gradient(y, 2) == 36); /* it adds up, as a leaf's */
    /* Written in place, y retains the gradient of what it is then. */
    ok(gn_elementwise_into(GN_OP_MULTIPLY, (gn_operand[]){{.tensor = y}, {.tensor = x}}, y));
    CHECK(gn_tensor_retains_gradient(y));
    CHECK_U64(gn_backward(1, &loss, NULL, GN_RETAIN_GRAPH), GN_ERROR_INVALID_VALUE);
    CHECK(says("in place"));
    gn_tensor_release(loss);
    ok(gn_tensor_set_gradient(y, NULL));
    backward(sum(y), GN_OK);
    CHECK(gradient(y, 2) == 1);
    gn_tensor_release(y);
    gn_tensor_release(z);
    gn_tensor_release(x);
}

static void test_some_inputs(void)
{
    gn_tensor *x = leaf(3), *w = leaf(3), *y = multiply(x, w), *loss = sum(y);
    ok(gn_backward_to(1, &loss, NULL, 1, &w, GN_RETAIN_GRAPH));
    CHECK(gradient(w, 2) == 3 && !has_gradient(x));
    ok(gn_backward_to(1, &loss, NULL, 1, &y, GN_RETAIN_GRAPH));
    CHECK(gradient(y, 2) == 1 && !has_gradient(x) && gradient(w, 2) == 3);
    gn_tensor *plain = NULL;
    ok(gn_tensor_detach(x, &plain));
    CHECK_U64(gn_backward_to(1, &loss, NULL, 1, &plain, 0), GN_ERROR_INVALID_VALUE);
    gn_tensor *all[] = {x, w, y, loss, plain};
    for (int i = 0; i < 5; i++)
        gn_tensor_release(all[i]);
}

/* A leaf's gradient is a part of a larger buffer, and stays there. */
static void test_places(void)
{
    gn_tensor *buffer, *place, *found = NULL, *x = leaf(3);
    ok(gn_full((gn_scalar){.kind = GN_FLOAT64, .floating = 7}, GN_FLOAT64, 1, (int64_t[]){8},
               device, &buffer));
    ok(gn_tensor_slice(buffer, 0, 2, 1, 3, &place));
    ok(gn_tensor_set_gradient_place(x, place));
    CHECK(!has_gradient(x));
    backward(loss_of(x), GN_OK);
    CHECK(element(buffer, 4) == 6 && element(buffer, 5) == 7 && element(buffer, 1) == 7);
    ok(gn_tensor_get_gradient(x, &found));
    CHECK(found == place);
    gn_tensor_release(found);
    backward(loss_of(x), GN_OK);
    CHECK(element(buffer, 4) == 12);
    ok(gn_tensor_set_gradient(x, NULL));
    backward(loss_of(x), GN_OK); /* the place stays, and what was there is gone */
    CHECK(element(buffer, 4) == 6 && gradient(x, 2) == 6);
    CHECK_U64(gn_tensor_set_gradient_place(x, buffer), GN_ERROR_INVALID_VALUE);
    CHECK_U64(gn_tensor_set_gradient_place(buffer, place), GN_ERROR_INVALID_VALUE);
    ok(gn_tensor_set_gradient_place(x, NULL));
    ok(gn_tensor_set_gradient(x, NULL));
    backward(loss_of(x), GN_OK);
    CHECK(element(buffer, 4) == 6 && gradient(x, 2) == 6);
    ok(gn_tensor_get_gradient(x, &found));
    CHECK(found != place);
    gn_tensor *all[] = {found, x, place, buffer};
    for (int i = 0; i < 4; i++)
        gn_tensor_release(all[i]);
}

/* Who holds the gradient sees the sum; with GN_CREATE_GRAPH it stays as it was. */
static void test_sums_in_place(void)
{
    gn_tensor *x = leaf(3), *held = NULL, *loss = loss_of(x);
    backward(loss_of(x), GN_OK);
    ok(gn_tensor_get_gradient(x, &held));
    backward(loss_of(x), GN_OK);
    CHECK(element(held, 2) == 12);
    ok(gn_backward(1, &loss, NULL, GN_CREATE_GRAPH));
    CHECK(element(held, 2) == 12 && gradient(x, 2) == 18);
    ok(gn_tensor_set_gradient(x, NULL));
    gn_tensor_release(loss);
    gn_tensor_release(held);
    gn_tensor_release(x);
}

/* ---- gradients of one's own ----------------------------------------------------------------------- */

struct custom {
    int calls, forgotten, deleted;
    bool is_needed[2];
};

/* Of x w w, with x and w saved: the gradient of x is g w w, and that of w is 2 g x w. */
static gn_status custom_call(void *context, gn_tensor *const *saved, gn_tensor *const *given,
                             const bool *needed, gn_tensor **gradients)
{
    struct custom *custom = context;
    custom->calls++;
    memcpy(custom->is_needed, needed, sizeof custom->is_needed);
    gn_tensor *gw = multiply(given[0], saved[1]);
    if (needed[0])
        gradients[0] = multiply(gw, saved[1]);
    if (needed[1]) {
        gn_tensor *part = multiply(gw, saved[0]);
        ok(gn_elementwise(GN_OP_ADD, (gn_operand[]){{.tensor = part}, {.tensor = part}},
                          &gradients[1]));
        gn_tensor_release(part);
    }
    gn_tensor_release(gw);
    return GN_OK;
}

static void custom_forget(void *context)
{
    ((struct custom *)context)->forgotten++;
}

static void custom_delete(void *context)
{
    ((struct custom *)context)->deleted++;
}

static gn_tensor *custom_apply(struct custom *custom, gn_tensor *x, gn_tensor *w)
{
    bool was_on = gn_set_gradients(false), is_recorded = false;
    gn_tensor *xw = multiply(x, w), *made = multiply(xw, w);
    gn_tensor_release(xw);
    (void)gn_set_gradients(was_on);
    const gn_custom_gradient gradient_of = {"scaled", custom_call, custom_forget, custom_delete,
                                            custom};
    ok(gn_record_custom(&gradient_of, 2, (gn_tensor *[]){x, w}, 1, &made, 2, (gn_tensor *[]){x, w},
                        &is_recorded));
    CHECK(is_recorded);
    return made;
}

static void test_custom(void)
{
    struct custom custom = {0};
    gn_tensor *x = leaf(3), *w = leaf(3), *plain = NULL, *y = custom_apply(&custom, x, w);
    CHECK(strcmp(gn_tensor_get_operation(y), "scaled") == 0);
    backward(sum(y), GN_OK);
    CHECK(gradient(x, 2) == 9 && gradient(w, 2) == 18);
    CHECK(custom.calls == 1 && custom.forgotten == 1 && custom.deleted == 0);
    gn_tensor_release(y);
    CHECK_U64(custom.deleted, 1);
    ok(gn_tensor_detach(w, &plain));
    y = custom_apply(&custom, x, plain);
    gn_tensor_release(y);
    CHECK_U64(custom.deleted, 2);
    /* Twice: d/dx of the gradient of w is 2 w. */
    y = custom_apply(&custom, x, w);
    gn_tensor *loss = sum(y), *first = NULL, *second = NULL;
    ok(gn_grad(1, &loss, NULL, 1, &w, GN_CREATE_GRAPH, &first));
    gn_tensor *again = sum(first);
    ok(gn_grad(1, &again, NULL, 1, &x, 0, &second));
    CHECK(element(second, 2) == 6);
    gn_tensor *all[] = {first, again, second, y, loss, x, w, plain};
    for (int i = 0; i < 8; i++)
        gn_tensor_release(all[i]);
    CHECK_U64(custom.deleted, 3);
}

/* Nothing needs a gradient: the caller keeps the context. */
static void test_custom_without_gradients(void)
{
    struct custom custom = {0};
    bool is_recorded = true;
    gn_tensor *x = leaf(2), *y = NULL;
    ok(gn_tensor_set_requires_gradient(x, false));
    y = multiply(x, x);
    const gn_custom_gradient gradient_of = {"scaled", custom_call, NULL, custom_delete, &custom};
    ok(gn_record_custom(&gradient_of, 1, &x, 1, &y, 0, NULL, &is_recorded));
    CHECK(!is_recorded && custom.deleted == 0 && !gn_tensor_requires_gradient(y));
    gn_tensor_release(x);
    gn_tensor_release(y);
}

/* y, an input, was changed in place: it has the record of the operation then. */
static void test_custom_in_place(void)
{
    struct custom custom = {0};
    bool is_recorded;
    gn_tensor *x = leaf(3), *w = leaf(3), *y = multiply(x, x), *saved = NULL;
    bool was_on = gn_set_gradients(false);
    ok(gn_cast(y, GN_FLOAT64, &saved));
    ok(gn_elementwise_into(GN_OP_MULTIPLY, (gn_operand[]){{.tensor = y}, {.tensor = w}}, y));
    ok(gn_elementwise_into(GN_OP_MULTIPLY, (gn_operand[]){{.tensor = y}, {.tensor = w}}, y));
    (void)gn_set_gradients(was_on);
    const gn_custom_gradient gradient_of = {"scaled", custom_call, NULL, custom_delete, &custom};
    gn_tensor *result = y;
    ok(gn_record_custom(&gradient_of, 2, (gn_tensor *[]){y, w}, 1, &result, 2,
                        (gn_tensor *[]){saved, w}, &is_recorded));
    CHECK(is_recorded && result == y);
    backward(sum(y), GN_OK);
    CHECK(gradient(w, 2) == 2 * 9 * 3 && gradient(x, 2) == 6 * 9);
    /* A leaf cannot be such a result. */
    result = x;
    CHECK_U64(
        gn_record_custom(&gradient_of, 2, (gn_tensor *[]){x, w}, 1, &result, 0, NULL, &is_recorded),
        GN_ERROR_UNSUPPORTED);
    CHECK(!is_recorded && says("leaf"));
    gn_tensor *all[] = {x, w, y, saved};
    for (int i = 0; i < 4; i++)
        gn_tensor_release(all[i]);
}

/* ---- packed values -------------------------------------------------------------------------------- */

struct packing {
    int packed, unpacked, deleted;
    bool is_wrong;
};

static gn_status value_pack(void *context, gn_tensor *tensor, void **packed)
{
    struct packing *packing = context;
    CHECK(!gn_gradients_are_on());
    gn_status status = gn_cast(tensor, GN_FLOAT32, (gn_tensor **)packed);
    packing->packed += status == GN_OK;
    return status;
}

static gn_status value_unpack(void *context, void *packed, gn_tensor **tensor)
{
    struct packing *packing = context;
    packing->unpacked++;
    return gn_cast(packed, packing->is_wrong ? GN_FLOAT32 : GN_FLOAT64, tensor);
}

static void value_delete(void *context, void *packed)
{
    ((struct packing *)context)->deleted++;
    gn_tensor_release(packed);
}

static void test_packed(void)
{
    struct packing packing = {0};
    const gn_saved_hooks hooks = {value_pack, value_unpack, value_delete, &packing};
    gn_tensor *x = leaf(3), *loss[3];
    ok(gn_saved_hooks_push(&hooks));
    for (int i = 0; i < 3; i++)
        loss[i] = loss_of(x);
    gn_saved_hooks_pop();
    CHECK_U64(packing.packed, 6);
    backward(loss[0], GN_OK);
    CHECK(gradient(x, 2) == 6);
    CHECK(packing.unpacked == 2 && packing.deleted == 2);
    packing.is_wrong = true;
    backward(loss[1], GN_ERROR_INVALID_VALUE);
    CHECK(says("hook") && gradient(x, 2) == 6);
    packing.is_wrong = false;
    gn_tensor_release(loss[2]);
    CHECK_U64(packing.deleted, 6);
    gn_saved_hooks_pop(); /* one too many: nothing happens */
    CHECK_U64(gn_saved_hooks_push(NULL), GN_ERROR_INVALID_VALUE);
    gn_tensor_release(x);
}

/* ---- looking at graphs ------------------------------------------------------------------------------ */

static void saved_count(void *context, const gn_saved_value *value)
{
    *(uint64_t *)context += value->is_leaf ? 0 : value->nbytes;
}

static void nodes_count(void *context, gn_gradient_node *node)
{
    CHECK(gn_gradient_node_get_site(node) != 0);
    (*(int *)context)++;
}

static void test_graph(void)
{
    gn_gradient_node *node = NULL, *next = NULL;
    gn_tensor *x = leaf(3), *y = multiply(x, x), *z = multiply(y, x), *seen;
    int number = -1;
    ok(gn_tensor_get_node(z, &node));
    CHECK(strcmp(gn_gradient_node_get_name(node), "multiply") == 0);
    CHECK_U64((uint64_t)gn_gradient_node_get_count(node), 2);
    uint64_t nbytes = 0;
    gn_gradient_node_visit_saved(node, saved_count, &nbytes);
    CHECK_U64(nbytes, 3 * sizeof(double));
    gn_gradient_node_get_next(node, 1, &next, &number);
    CHECK(strcmp(gn_gradient_node_get_name(next), "leaf") == 0 && number == 0);
    CHECK(gn_gradient_node_get_sequence(next) < gn_gradient_node_get_sequence(node));
    seen = gn_gradient_node_get_leaf(next);
    CHECK(seen == x);
    gn_tensor_release(seen);
    gn_gradient_node_retain(next);
    gn_gradient_node_release(node);
    gn_tensor *all[] = {x, y, z};
    for (int i = 0; i < 3; i++)
        gn_tensor_release(all[i]);
    CHECK(gn_gradient_node_get_leaf(next) == NULL); /* the leaf is gone, its node is not */
    gn_gradient_node_release(next);
    gn_gradient_node_release(NULL);
}

static void test_places_of_operations(void)
{
    int count = 0;
    ok(gn_history_start(&(gn_history_options){.c_frames = 8}));
    gn_tensor *x = leaf(3), *loss = loss_of(x), *w = NULL;
    gn_gradient_nodes_visit(nodes_count, &count);
    CHECK_U64((uint64_t)count, 2);
    backward(loss, GN_OK);
    count = 0;
    gn_gradient_nodes_visit(nodes_count, &count);
    CHECK_U64((uint64_t)count, 0);
    /* An error says where the operation was called, and where its value was changed. */
    ok(gn_tensor_detach(x, &w));
    gn_tensor *y = multiply(x, w);
    ok(gn_assign(w, (gn_operand){.scalar = {.kind = GN_FLOAT64, .floating = 3}}));
    loss = sum(y);
    backward(loss, GN_ERROR_INVALID_VALUE);
    CHECK(says("saved at") && says("changed at"));
    gn_history_stop();
    gn_tensor_release(y);
    gn_tensor_release(w);
    gn_tensor_release(x);
}

static void test_checks(void)
{
    gn_tensor *x = leaf(2), *root = NULL;
    const gn_operand minus = {.scalar = {.kind = GN_FLOAT64, .floating = 1.5}};
    gn_tensor *shifted = NULL;
    ok(gn_elementwise(GN_OP_SUBTRACT, (gn_operand[]){{.tensor = x}, minus}, &shifted));
    ok(gn_elementwise(GN_OP_SQRT, &(gn_operand){.tensor = shifted}, &root));
    CHECK(!gn_set_gradient_checks(true));
    gn_tensor *loss = sum(root);
    backward(loss, GN_ERROR_INVALID_VALUE);
    CHECK(says("sqrt") && says("NaN") && !has_gradient(x));
    CHECK(gn_get_gradient_checks());
    backward(loss_of(x), GN_OK);
    CHECK(gn_set_gradient_checks(false));
    gn_tensor *all[] = {x, root, shifted};
    for (int i = 0; i < 3; i++)
        gn_tensor_release(all[i]);
}

/* ---- failing allocations ------------------------------------------------------------------------------ */

static gn_status plain_call(void *context, gn_tensor *const *saved, gn_tensor *const *given,
                            const bool *needed, gn_tensor **gradients)
{
    (void)context, (void)needed;
    return gn_elementwise(
        GN_OP_MULTIPLY, (gn_operand[]){{.tensor = given[0]}, {.tensor = saved[1]}}, &gradients[0]);
}

/* All of the above in one graph. */
static gn_status everything(gn_tensor *x, gn_tensor *w, struct custom *custom, struct calls *calls,
                            const gn_saved_hooks *hooks)
{
    gn_tensor *y = NULL, *z = NULL, *loss = NULL;
    gn_hook *one = NULL;
    bool is_recorded = false;
    const gn_custom_gradient gradient_of = {"scaled", plain_call, NULL, custom_delete, custom};
    bool was_on = gn_set_gradients(false);
    gn_status status =
        gn_elementwise(GN_OP_MULTIPLY, (gn_operand[]){{.tensor = x}, {.tensor = w}}, &z);
    if (status == GN_OK)
        status = gn_elementwise(GN_OP_MULTIPLY, (gn_operand[]){{.tensor = z}, {.tensor = w}}, &y);
    (void)gn_set_gradients(was_on);
    if (status == GN_OK)
        status = gn_record_custom(&gradient_of, 2, (gn_tensor *[]){x, w}, 1, &y, 2,
                                  (gn_tensor *[]){x, w}, &is_recorded);
    custom->calls += is_recorded;
    if (status == GN_OK)
        status = gn_tensor_retain_gradient(y);
    if (status == GN_OK)
        status = gn_tensor_add_hook(y, GN_HOOK_GRADIENT, called, calls, NULL, &one);
    bool is_pushed = status == GN_OK && gn_saved_hooks_push(hooks) == GN_OK;
    if (status == GN_OK && !is_pushed)
        status = GN_ERROR_OUT_OF_HOST_MEMORY;
    gn_tensor_release(z);
    z = NULL;
    if (status == GN_OK)
        status = gn_elementwise(GN_OP_MULTIPLY, (gn_operand[]){{.tensor = y}, {.tensor = y}}, &z);
    if (is_pushed)
        gn_saved_hooks_pop();
    if (status == GN_OK)
        status = gn_reduce(GN_REDUCE_SUM, z, 0, false, &loss);
    if (status == GN_OK)
        status = gn_backward(1, &loss, NULL, 0);
    gn_hook_release(one);
    gn_tensor_release(loss);
    gn_tensor_release(z);
    gn_tensor_release(y);
    return status;
}

static void test_failing_allocations(void)
{
    struct calls calls = {.factor = 2};
    struct packing packing = {0};
    const gn_saved_hooks hooks = {value_pack, value_unpack, value_delete, &packing};
    gn_tensor *x = leaf(3), *w = leaf(3);
    gn_status status = GN_ERROR_OUT_OF_HOST_MEMORY;
    for (long nth = 1; status != GN_OK && nth < 10000; nth++) {
        struct custom custom = {0};
        size_t live = gni_host_live_count();
        gni_host_fail_after(nth);
        status = everything(x, w, &custom, &calls, &hooks);
        gni_host_fail_after(-1);
        CHECK_U64((uint64_t)custom.deleted, (uint64_t)(custom.calls > 0));
        if (status == GN_OK)
            break;
        CHECK(!has_gradient(x) && !has_gradient(w));
        CHECK_U64(gni_host_live_count(), live);
        CHECK_U64((uint64_t)packing.deleted, (uint64_t)packing.packed);
    }
    CHECK_U64(status, GN_OK);
    CHECK(gradient(x, 0) == 4);
    gn_tensor_release(x);
    gn_tensor_release(w);
}

int main(void)
{
    ok(gn_device_get(GN_DEVICE_CPU, 0, &device));
    RUN(test_hooks);
    RUN(test_hooks_that_fail);
    RUN(test_a_hook_that_removes_itself);
    RUN(test_hooks_that_are_wrong);
    RUN(test_accumulated);
    RUN(test_threads);
    RUN(test_retained);
    RUN(test_some_inputs);
    RUN(test_places);
    RUN(test_sums_in_place);
    RUN(test_custom);
    RUN(test_custom_without_gradients);
    RUN(test_custom_in_place);
    RUN(test_packed);
    RUN(test_graph);
    RUN(test_places_of_operations);
    RUN(test_checks);
    RUN(test_failing_allocations);
    return check_result();
}
