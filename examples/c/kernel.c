/* A kernel from CUDA C: compiled when the program runs, and kept on disk for the next time. */
#include <genesis/genesis.h>

#include <stdio.h>

static const char text[] = "extern \"C\" __global__ void twice(float *x)\n"
                           "{\n"
                           "    x[threadIdx.x] *= 2;\n"
                           "}\n";

static gn_status run(float host[32])
{
    gn_device *device;
    gn_stream *stream;
    gn_memory_manager *manager;
    gn_kernel *kernel = NULL;
    void *x = NULL;
    gn_status status = gn_device_get(GN_DEVICE_CUDA, 0, &device);
    if (status == GN_OK)
        status = gn_stream_get_default(device, &stream);
    if (status == GN_OK)
        status = gn_memory_manager_get(device, &manager);
    if (status == GN_OK)
        status = gn_kernel_create(device, text, "twice", NULL, &kernel);
    if (status == GN_OK)
        status = gn_memory_alloc(manager, 32 * sizeof(float), stream, &x);
    if (status == GN_OK)
        status = gn_copy(x, host, 32 * sizeof(float), stream);
    gn_kernel_shape shape = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
    if (status == GN_OK)
        status = gn_kernel_launch(kernel, &shape, (void *[]){&x}, stream);
    if (status == GN_OK)
        status = gn_copy(host, x, 32 * sizeof(float), stream);
    if (status == GN_OK)
        status = gn_stream_synchronize(stream);
    if (x != NULL && gn_memory_free(manager, x) != GN_OK)
        fprintf(stderr, "%s\n", gn_error_detail());
    gn_kernel_destroy(kernel);
    return status;
}

int main(void)
{
    float host[32];
    for (int i = 0; i < 32; i++)
        host[i] = (float)i;
    if (run(host) != GN_OK) {
        fprintf(stderr, "%s\n", gn_error_detail());
        return 1;
    }
    printf("twice 31 is %g\n", (double)host[31]);
    return 0;
}
