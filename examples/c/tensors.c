/* An expression on tensors: one pass over memory, and one allocation. */
#include <genesis/genesis.h>

#include <stdio.h>

static gn_status run(double *mean)
{
    gn_device *cpu;
    gn_tensor *x = NULL, *y = NULL, *z = NULL, *result = NULL;
    gn_scalar item = {0};
    const int64_t shape[] = {1000, 1000}, none[1] = {0};
    const gn_scalar one = {.kind = GN_FLOAT64, .floating = 1};
    gn_status status = gn_device_get(GN_DEVICE_CPU, 0, &cpu);
    if (status == GN_OK)
        status = gn_tensor_create(GN_FLOAT32, 2, shape, cpu, &x);
    if (status == GN_OK)
        status = gn_assign(x, (gn_operand){.scalar = one});
    if (status == GN_OK)
        status = gn_elementwise(GN_OP_ADD, (gn_operand[]){{.tensor = x}, {.scalar = one}}, &y);
    if (status == GN_OK)
        status = gn_elementwise(GN_OP_LOG2, (gn_operand[]){{.tensor = y}}, &z);
    if (status == GN_OK)
        status = gn_reduce(GN_REDUCE_MEAN, z, 0, false, &result);
    if (status == GN_OK)
        status = gn_tensor_get_item(result, none, &item);
    gn_tensor_release(x);
    gn_tensor_release(y);
    gn_tensor_release(z);
    gn_tensor_release(result);
    *mean = item.floating;
    return status;
}

int main(void)
{
    double mean;
    if (run(&mean) != GN_OK) {
        fprintf(stderr, "%s\n", gn_error_detail());
        return 1;
    }
    printf("the mean of log2(1 + 1) is %g\n", mean);
    return 0;
}
