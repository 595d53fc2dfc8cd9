/*
 * kernel.c: modules, functions and launches, on the engine (engine.h).
 *
 * A launch copies its parameters when it is submitted. When it runs, the engine asks for the memory
 * around each address that the kernel touches and tells which stretches it read and wrote: that is all
 * the checker needs, and the library under test says nothing.
 */
#include "sim.h"

#include "engine.h"
#include "setting.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- modules -------------------------------------------------------------------------------- */

static bool module_exists(const struct CUmod_st *module)
{
    gni_list_each (link, &sim.modules) {
        if (gni_container_of(link, struct CUmod_st, link) == module)
            return true;
    }
    return false;
}

static bool function_exists(const struct CUfunc_st *function)
{
    gni_list_each (link, &sim.modules) {
        struct CUmod_st *module = gni_container_of(link, struct CUmod_st, link);
        gni_list_each (item, &module->functions) {
            if (gni_container_of(item, struct CUfunc_st, link) == function)
                return true;
        }
    }
    return false;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    SIM_REQUIRE(module != NULL && image != NULL, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(sim_capture_allows_unsafe(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    struct CUmod_st *made = gni_host_alloc(sizeof *made);
    SIM_REQUIRE(made != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    CUresult result = sim_module_load(image, &made->module);
    if (result != CUDA_SUCCESS) {
        gni_host_free(made);
        return result;
    }
    made->device = call.context->device;
    gni_list_init(&made->functions);
    gni_list_push_back(&sim.modules, &made->link);
    *module = made;
    return CUDA_SUCCESS;
}

static void module_free(struct CUmod_st *module)
{
    gni_list_each (link, &module->functions)
        gni_host_free(gni_container_of(link, struct CUfunc_st, link));
    sim_module_unload(module->module);
    gni_list_remove(&module->link);
    gni_host_free(module);
}

void sim_modules_end(CUdevice device)
{
    gni_list_each (link, &sim.modules) {
        struct CUmod_st *module = gni_container_of(link, struct CUmod_st, link);
        if (module->device == device)
            module_free(module);
    }
}

CUresult cuModuleUnload(CUmodule module)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    SIM_REQUIRE(module_exists(module), CUDA_ERROR_INVALID_HANDLE);
    sim_complete_context(module->device); /* its kernels may be queued */
    module_free(module);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    SIM_REQUIRE(module_exists(module), CUDA_ERROR_INVALID_HANDLE);
    SIM_REQUIRE(function != NULL && name != NULL, CUDA_ERROR_INVALID_VALUE);
    const struct sim_kernel *kernel = sim_module_find(module->module, name);
    SIM_REQUIRE(kernel != NULL, CUDA_ERROR_NOT_FOUND);
    gni_list_each (link, &module->functions) {
        struct CUfunc_st *known = gni_container_of(link, struct CUfunc_st, link);
        if (known->kernel == kernel) {
            *function = known;
            return CUDA_SUCCESS;
        }
    }
    struct CUfunc_st *made = gni_host_alloc(sizeof *made);
    SIM_REQUIRE(made != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    made->module = module;
    made->kernel = kernel;
    made->shared_bytes_max = 48 * 1024;
    gni_list_push_back(&module->functions, &made->link);
    *function = made;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    SIM_REQUIRE(value != NULL, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(function_exists(function), CUDA_ERROR_INVALID_HANDLE);
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = (int)function->kernel->max_threads_per_block;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)function->kernel->static_shared_bytes;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 32; /* the host's compiler knows no such thing */
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = function->shared_bytes_max;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    SIM_REQUIRE(function_exists(function), CUDA_ERROR_INVALID_HANDLE);
    SIM_REQUIRE(attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value >= 0 &&
                    (size_t)value + function->kernel->static_shared_bytes <= 227 * 1024,
                CUDA_ERROR_INVALID_VALUE);
    function->shared_bytes_max = value;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *nbytes)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    SIM_REQUIRE(function_exists(function), CUDA_ERROR_INVALID_HANDLE);
    const struct sim_kernel *kernel = function->kernel;
    SIM_REQUIRE(offset != NULL && nbytes != NULL && index < kernel->parameter_count,
                CUDA_ERROR_INVALID_VALUE);
    size_t place = 0;
    for (size_t i = 0; i <= index; i++) {
        size_t alignment = kernel->parameter_alignments[i];
        place = (place + alignment - 1) / alignment * alignment;
        *offset = place;
        place += kernel->parameter_sizes[i];
    }
    *nbytes = kernel->parameter_sizes[index];
    return CUDA_SUCCESS;
}

/* ---- launches ------------------------------------------------------------------------------- */

size_t sim_function_parameters_bytes(const struct CUfunc_st *function)
{
    return sim_kernel_parameters_bytes(function->kernel);
}

static CUresult launch_check(const struct CUfunc_st *function, const struct sim_op *op)
{
    uint64_t threads = (uint64_t)op->block[0] * op->block[1] * op->block[2];
    SIM_REQUIRE(op->grid[0] > 0 && op->grid[1] > 0 && op->grid[2] > 0 && threads > 0 &&
                    op->block[0] <= 1024 && op->block[1] <= 1024 && op->block[2] <= 64 &&
                    threads <= 1024 && op->grid[0] <= INT32_MAX && op->grid[1] <= 65535 &&
                    op->grid[2] <= 65535,
                CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(threads <= function->kernel->max_threads_per_block,
                CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    SIM_REQUIRE(op->shared_bytes <= (size_t)function->shared_bytes_max, CUDA_ERROR_INVALID_VALUE);
    return CUDA_SUCCESS;
}

CUresult sim_kernel_op_init(struct sim_op *op, CUfunction function, const CUlaunchConfig *config,
                            void **arguments, void **extra)
{
    SIM_REQUIRE(function_exists(function), CUDA_ERROR_INVALID_HANDLE);
    SIM_REQUIRE(extra == NULL, CUDA_ERROR_NOT_SUPPORTED);
    *op = (struct sim_op){.kind = SIM_OP_KERNEL,
                          .function = function,
                          .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                          .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                          .shared_bytes = config->sharedMemBytes};
    for (unsigned i = 0; i < config->numAttrs; i++) {
        SIM_REQUIRE(config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                    CUDA_ERROR_NOT_SUPPORTED);
        op->is_early = config->attrs[i].value.programmaticStreamSerializationAllowed != 0;
    }
    CUresult result = launch_check(function, op);
    SIM_REQUIRE(result == CUDA_SUCCESS, result);
    SIM_REQUIRE(arguments != NULL || function->kernel->parameter_count == 0,
                CUDA_ERROR_INVALID_VALUE);
    op->parameters = gni_host_alloc(sim_kernel_parameters_bytes(function->kernel));
    SIM_REQUIRE(op->parameters != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    sim_kernel_parameters_copy(function->kernel, arguments, op->parameters);
    return CUDA_SUCCESS;
}

/* Inside a call of the driver. */
static CUresult kernel_submit(struct CUctx_st *context, CUfunction function,
                              const CUlaunchConfig *config, void **arguments, void **extra)
{
    struct CUstream_st *stream = sim_stream_get(context, config->hStream);
    struct sim_op op;
    SIM_REQUIRE(stream != NULL, CUDA_ERROR_INVALID_HANDLE);
    CUresult result = sim_kernel_op_init(&op, function, config, arguments, extra);
    return result == CUDA_SUCCESS ? sim_submit(stream, &op) : result;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes, CUstream handle,
                        void **arguments, void **extra)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    CUlaunchConfig config = {grid_x,  grid_y,       grid_z, block_x, block_y,
                             block_z, shared_bytes, handle, NULL,    0};
    return kernel_submit(call.context, function, &config, arguments, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments,
                          void **extra)
{
    SIM_CALL(SIM_NEED_CONTEXT);
    SIM_REQUIRE(config != NULL && (config->numAttrs == 0 || config->attrs != NULL),
                CUDA_ERROR_INVALID_VALUE);
    return kernel_submit(call.context, function, config, arguments, extra);
}

bool sim_kernel_is_given(const struct sim_op *op, uintptr_t address, size_t nbytes)
{
    size_t count = sim_function_parameters_bytes(op->function) / sizeof(uintptr_t);
    for (size_t i = 0; i < count; i++) {
        uintptr_t word;
        memcpy(&word, (const char *)op->parameters + i * sizeof word, sizeof word);
        if (word - address < nbytes)
            return true;
    }
    return false;
}

/* ---- running -------------------------------------------------------------------------------- */

static bool kernel_find_range(void *context, uintptr_t address, uintptr_t *begin, uintptr_t *end)
{
    const struct sim_op *op = context;
    unsigned device = (unsigned)op->stream->device;
    const struct sim_range *range = sim_range_find(address);
    if (range == NULL || (range->kind == SIM_RANGE_PLAIN && range->device != op->stream->device) ||
        (range->kind == SIM_RANGE_MAPPED && !(range->access >> device & 1)))
        return false;
    *begin = range->address;
    *end = range->address + range->nbytes;
    if (range->kind != SIM_RANGE_MAPPED)
        return true;
    while (sim_device_contains(*end, 1) && sim_range_find(*end)->kind == SIM_RANGE_MAPPED)
        *end += sim_range_find(*end)->nbytes; /* neighbouring mappings are one stretch */
    return true;
}

/*
 * What the kernel that runs has touched. Lanes in random order touch a stretch in many small pieces;
 * they are put together before the history sees them.
 */
struct touch {
    enum sim_access kind;
    uintptr_t begin, end;
};

static struct touch *touches;
static size_t touch_count, touch_capacity;

static int touch_compare(const void *one, const void *other)
{
    const struct touch *a = one, *b = other;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static void touches_merge(void)
{
    size_t kept = 0;
    if (touch_count > 1)
        qsort(touches, touch_count, sizeof *touches, touch_compare);
    for (size_t i = 0; i < touch_count; i++) {
        struct touch *last = kept > 0 ? &touches[kept - 1] : NULL;
        if (last != NULL && last->kind == touches[i].kind && touches[i].begin <= last->end)
            last->end = touches[i].end > last->end ? touches[i].end : last->end;
        else
            touches[kept++] = touches[i];
    }
    touch_count = kept;
}

static void touch_add(struct touch touch)
{
    bool is_full = touch_count == touch_capacity;
    if (is_full)
        touches_merge();
    if (is_full && touch_count >= touch_capacity / 2) { /* else each access would sort again */
        size_t capacity = touch_capacity == 0 ? 4096 : touch_capacity * 2;
        struct touch *grown = gni_host_realloc(touches, capacity * sizeof *grown);
        if (grown == NULL)
            sim_die_without_memory();
        touches = grown;
        touch_capacity = capacity;
    }
    touches[touch_count++] = touch;
}

static void touches_check(const struct sim_op *op)
{
    touches_merge();
    for (size_t i = 0; i < touch_count; i++)
        sim_history_access(op, touches[i].begin, touches[i].end - touches[i].begin,
                           touches[i].kind);
    touch_count = 0;
}

static bool kernel_access(void *context, uintptr_t address, size_t nbytes, bool is_write,
                          bool is_atomic, const void *site)
{
    (void)context;
    (void)site;
    enum sim_access kind = is_atomic ? SIM_ATOMIC : is_write ? SIM_WRITE : SIM_READ;
    struct touch *last = touch_count > 0 ? &touches[touch_count - 1] : NULL;
    if (last != NULL && last->kind == kind && last->end == address)
        last->end += nbytes;
    else
        touch_add((struct touch){kind, address, address + nbytes});
    return true;
}

static enum sim_order lane_order(void)
{
    static const enum sim_order orders[] = {SIM_ORDER_ASCENDING, SIM_ORDER_DESCENDING,
                                            SIM_ORDER_RANDOM};
    int choice = sim_setting_choice("SIM_GPU_LANES");
    if (choice >= 0)
        return orders[choice];
    return sim.schedule == SIM_RANDOM ? SIM_ORDER_RANDOM : SIM_ORDER_ASCENDING;
}

void sim_kernel_run(const struct sim_op *op)
{
    struct sim_launch launch = {.kernel = op->function->kernel,
                                .dynamic_shared_bytes = op->shared_bytes,
                                .parameters = op->parameters,
                                .is_early = op->is_early,
                                .lane_order = lane_order(),
                                .seed = sim.seed + op->number,
                                .context = (void *)(uintptr_t)op,
                                .find_range = kernel_find_range,
                                .access = kernel_access};
    memcpy(launch.grid, op->grid, sizeof launch.grid);
    memcpy(launch.block, op->block, sizeof launch.block);
    static struct sim_report report; /* large, and one kernel runs at a time */
    sim_memory_open_all();
    CUresult result = sim_launch_run(&launch, &report);
    sim_memory_close_all();
    touches_check(op);
    if (result == CUDA_SUCCESS)
        return;
    sim_finding("%s: %s", sim_op_label(op).text, report.text);
    sim_context_lose(&sim.contexts[op->stream->device], result);
}
