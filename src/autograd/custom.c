/*
 * custom.c: operations that the program itself has carried out, with a gradient of its own: gn_record_custom().
 *
 * The node's details are a copy of the caller's struct, with the name behind it.
 */
#include "autograd/autograd.h"

#include "base/error.h"
#include "base/host.h"

#include <string.h>

/* ---- the rule -------------------------------------------------------------------------------- */

void gni_custom_gradients(const struct gni_rule_frame *frame, gn_tensor **gradients)
{
    const gn_custom_gradient *custom = frame->node->details;
    int count = frame->node->edge_count;
    bool *needed = gni_host_alloc((size_t)count * sizeof *needed);
    if (needed == NULL) {
        gni_scope_fail(frame->scope, GN_ERROR_OUT_OF_HOST_MEMORY, "no host memory for %d inputs",
                       count);
        return;
    }
    for (int i = 0; i < count; i++)
        needed[i] = frame->likes[i] != NULL;
    gn_status status = custom->call(custom->context, frame->saved, frame->given, needed, gradients);
    for (int i = 0; i < count; i++) {
        if (gradients[i] == NULL)
            continue;
        if (status == GN_OK && needed[i]) {
            gradients[i] = gni_scope_keep(frame->scope, GN_OK, gradients[i]);
        } else {
            gn_tensor_release(gradients[i]);
            gradients[i] = NULL;
        }
    }
    if (status != GN_OK)
        (void)gni_scope_keep(frame->scope, status, NULL);
    gni_host_free(needed);
}

void gni_custom_forget(const struct gni_graph_node *node)
{
    const gn_custom_gradient *custom = node->details;
    if (custom->forget != NULL)
        custom->forget(custom->context);
}

void gni_custom_deinit(const struct gni_graph_node *node)
{
    const gn_custom_gradient *custom = node->details;
    if (node->is_recorded && custom->deleter != NULL)
        custom->deleter(custom->context);
}

/* ---- recording ------------------------------------------------------------------------------- */

/* The number of the input that a result is; -1: none. */
static int input_find(const gn_tensor *result, int input_count, gn_tensor *const *inputs)
{
    for (int i = 0; i < input_count; i++)
        if (inputs[i] == result)
            return i;
    return -1;
}

/* Results that get the record: an input that was changed in place is stood in for by a tensor without one. New references.
 */
static gn_status stand_ins_make(const char *name, int input_count, gn_tensor *const *inputs,
                                int result_count, gn_tensor **results, gn_tensor **made)
{
    for (int i = 0; i < result_count; i++) {
        made[i] = NULL;
        if (input_find(results[i], input_count, inputs) >= 0) {
            GN_TRY(gni_tape.write_check(name, results[i]));
            GN_TRY(gni_detach(results[i], &made[i]));
            continue;
        }
        bool is_shared = false;
        for (int k = 0; k < input_count; k++)
            is_shared |= inputs[k] != NULL && gn_tensor_shares_storage(inputs[k], results[i]);
        if (is_shared || results[i]->gradient != NULL) {
            GN_TRY(gn_tensor_detach(results[i], &made[i]));
        } else {
            gn_tensor_retain(results[i]);
            made[i] = results[i];
        }
    }
    return GN_OK;
}

/* The results take over what was recorded for their stand-ins. */
static gn_status results_update(int input_count, gn_tensor *const *inputs, int result_count,
                                gn_tensor **results, gn_tensor **made)
{
    for (int i = 0; i < result_count; i++) {
        if (input_find(results[i], input_count, inputs) >= 0) {
            GN_TRY(gni_tape.rewrite(results[i], made[i]));
        } else if (made[i] != results[i]) {
            gn_tensor *before = results[i];
            results[i] = made[i];
            made[i] = before;
        }
    }
    return GN_OK;
}

/* What the tape is told. The details are copied into the node. */
static gn_status custom_record(const gn_custom_gradient *gradient, int input_count,
                               const gn_operand *operands, int result_count, gn_tensor **made,
                               int saved_count, gn_tensor *const *saved)
{
    size_t length = strlen(gradient->name) + 1;
    size_t nbytes = sizeof *gradient + length;
    gn_custom_gradient *details = gni_host_alloc(nbytes);
    if (details == NULL)
        return gni_error_host_memory(nbytes);
    *details = *gradient;
    memcpy(details + 1, gradient->name, length);
    gn_status status = gni_step_record(&(struct gni_tape_step){.rule = GNI_RULE_CUSTOM,
                                                               .name = gradient->name,
                                                               .input_count = input_count,
                                                               .inputs = operands,
                                                               .result_count = result_count,
                                                               .results = made,
                                                               .details = details,
                                                               .detail_bytes = nbytes},
                                       saved_count, saved);
    gni_host_free(details);
    return status;
}

static bool is_about_gradients(int input_count, gn_tensor *const *inputs, int result_count,
                               gn_tensor *const *results)
{
    bool is_needed = false, is_floating = false;
    for (int i = 0; i < input_count; i++)
        is_needed |= inputs[i] != NULL && gn_tensor_requires_gradient(inputs[i]);
    for (int i = 0; i < result_count; i++)
        is_floating |= gn_dtype_is_floating(results[i]->dtype);
    return is_needed && is_floating && gn_gradients_are_on();
}

gn_status gn_record_custom(const gn_custom_gradient *gradient, int input_count,
                           gn_tensor *const *inputs, int result_count, gn_tensor **results,
                           int saved_count, gn_tensor *const *saved, bool *is_recorded)
{
    GN_CHECK_ARGUMENT(gradient != NULL && gradient->name != NULL && gradient->call != NULL &&
                          is_recorded != NULL && input_count >= 0 && result_count >= 0 &&
                          saved_count >= 0,
                      "the gradient must have a name and a function");
    GN_CHECK_ARGUMENT(input_count < GNI_SAVED_RESULT && result_count < GNI_SAVED_RESULT &&
                          saved_count < GNI_SAVED_RESULT,
                      "an operation has at most 65535 inputs, results and saved values");
    *is_recorded = false;
    if (!is_about_gradients(input_count, inputs, result_count, results))
        return GN_OK;
    gn_operand *operands = gni_host_alloc((size_t)input_count * sizeof *operands);
    gn_tensor **made = gni_host_alloc((size_t)result_count * sizeof *made);
    gn_status status = GN_OK;
    if (operands == NULL || made == NULL)
        status = gni_error_host_memory((size_t)input_count * sizeof *operands);
    for (int i = 0; i < input_count && status == GN_OK; i++)
        operands[i] = (gn_operand){.tensor = inputs[i]};
    if (status == GN_OK)
        status = stand_ins_make(gradient->name, input_count, inputs, result_count, results, made);
    if (status == GN_OK)
        status =
            custom_record(gradient, input_count, operands, result_count, made, saved_count, saved);
    *is_recorded = status == GN_OK;
    if (status == GN_OK)
        status = results_update(input_count, inputs, result_count, results, made);
    for (int i = 0; made != NULL && i < result_count; i++)
        gn_tensor_release(made[i]);
    gni_host_free(made);
    gni_host_free(operands);
    return status;
}
