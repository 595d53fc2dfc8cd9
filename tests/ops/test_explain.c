/*
 * test_explain.c: explanations (genesis/explain.h): what is told, when host memory fails, and from several threads.
 */
#include "check.h"

#include "base/error.h"
#include "base/host.h"
#include "genesis/genesis.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static gn_device *device;

struct text {
    size_t length;
    char bytes[1 << 16];
};

static void text_take(void *context, const char *json, size_t length)
{
    struct text *text = context;
    CHECK(length < sizeof text->bytes && json[length] == '\0');
    text->length = length;
    (void)snprintf(text->bytes, sizeof text->bytes, "%s", json);
}

static gn_tensor *made(double value)
{
    gn_tensor *tensor = NULL;
    CHECK_OK(gn_full((gn_scalar){.kind = GN_FLOAT64, .floating = value}, GN_FLOAT32, 2,
                     (const int64_t[]){100, 200}, device, &tensor));
    CHECK_OK(gn_flush());
    return tensor;
}

/* exp(x) + x, computed. */
static gn_status chain_run(gn_tensor *x)
{
    gn_tensor *power = NULL, *sum = NULL;
    gn_operand operands[2] = {{.tensor = x}, {.tensor = x}};
    GN_TRY(gn_elementwise(GN_OP_EXP, operands, &power));
    operands[1].tensor = power;
    void *data;
    gn_status status = gn_elementwise(GN_OP_ADD, operands, &sum);
    gn_tensor_release(power);
    if (status == GN_OK) /* gn_flush() would compute what other threads have recorded, too */
        status = gn_tensor_get_data(sum, &data);
    gn_tensor_release(sum);
    return status;
}

static void test_what_is_told(void)
{
    static struct text text;
    gn_tensor *x = made(1);
    CHECK_STATUS(gn_explain_end(text_take, &text), GN_ERROR_INVALID_VALUE);
    CHECK_OK(gn_explain_begin());
    CHECK_STATUS(gn_explain_begin(), GN_ERROR_INVALID_VALUE);
    CHECK_DETAIL("explaining already");
    CHECK_OK(gn_explain_end(text_take, &text));
    CHECK(strcmp(text.bytes, "[]") == 0);
    CHECK_OK(gn_explain_begin());
    CHECK_OK(chain_run(x));
    CHECK_OK(gn_explain_end(text_take, &text));
    CHECK(strstr(text.bytes, "\"kind\":\"elementwise\"") != NULL);
    CHECK(strstr(text.bytes, "\"op\":\"exp\",\"in\":[0]") != NULL);
    CHECK(strstr(text.bytes, "\"bytes\":80000") != NULL);
    CHECK(text.bytes[0] == '[' && text.bytes[text.length - 1] == ']');
    CHECK_OK(gn_explain_begin());
    CHECK_OK(gn_explain_end(NULL, NULL)); /* nobody wants it */
    gn_tensor_release(x);
}

/* Nothing is noted when nobody explains, and what failed to be noted is an error at the end. */
static void test_failing_host_memory(void)
{
    static struct text text;
    gn_tensor *x = made(1);
    CHECK_OK(chain_run(x));
    size_t live = gni_host_live_count();
    gn_status status = GN_ERROR_OUT_OF_HOST_MEMORY;
    int failures = 0;
    for (long nth = 1; status != GN_OK && nth < 1000; nth++) {
        gni_host_fail_after(nth);
        status = gn_explain_begin();
        if (status == GN_OK) {
            gn_status run = chain_run(x), ended = gn_explain_end(text_take, &text);
            status = run != GN_OK ? run : ended;
        }
        gni_host_fail_after(-1);
        CHECK(status == GN_OK || status == GN_ERROR_OUT_OF_HOST_MEMORY);
        CHECK(gni_host_live_count() == live);
        failures += status != GN_OK;
    }
    CHECK(status == GN_OK && failures > 3);
    CHECK(strstr(text.bytes, "\"op\":\"add\"") != NULL);
    gn_tensor_release(x);
}

static void *thread_run(void *unused)
{
    gn_tensor *x = made(2);
    for (int i = 0; i < 200; i++) {
        static _Thread_local struct text text;
        bool is_explained = i % 2 == 0;
        if (is_explained)
            CHECK_OK(gn_explain_begin());
        CHECK_OK(chain_run(x));
        if (!is_explained)
            continue;
        CHECK_OK(gn_explain_end(text_take, &text));
        const char *first = strstr(text.bytes, "\"kind\"");
        CHECK(first != NULL && strstr(first + 1, "\"kind\"") == NULL); /* its own work alone */
    }
    gn_tensor_release(x);
    return unused;
}

static void test_threads(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, thread_run, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(void)
{
    CHECK_OK(gn_device_get(GN_DEVICE_CPU, 0, &device));
    RUN(test_what_is_told);
    RUN(test_failing_host_memory);
    RUN(test_threads);
    return check_result();
}
