#include "device/cuda/cuda_bundle.h"

#include "base/log.h"

enum {
    FAILURES_MOST = 8, /* a launch that cannot be is one, too: those that can end the row */
    AHEAD_LEAST = 8,   /* submissions; of one kernel at least, which is 15 us of work */
};

static CUDA_KERNEL_NODE_PARAMS_v2 node_parameters(const struct gni_cuda_launch *launch,
                                                  void **arguments)
{
    return (CUDA_KERNEL_NODE_PARAMS_v2){.func = launch->function,
                                        .gridDimX = launch->grid[0],
                                        .gridDimY = launch->grid[1],
                                        .gridDimZ = launch->grid[2],
                                        .blockDimX = launch->block[0],
                                        .blockDimY = launch->block[1],
                                        .blockDimZ = launch->block[2],
                                        .sharedMemBytes = launch->shared_bytes,
                                        .kernelParams = arguments};
}

static void bundle_drop(struct gni_cuda_bundle *bundle, const struct gni_cuda_driver *driver)
{
    if (bundle->exec != NULL)
        (void)driver->functions.cuGraphExecDestroy(bundle->exec);
    if (bundle->graph != NULL)
        (void)driver->functions.cuGraphDestroy(bundle->graph);
    *bundle = (struct gni_cuda_bundle){.graph = NULL};
}

/* With these launches in it. On failure the caller drops what there is. */
static bool bundle_make(struct gni_cuda_bundle *bundle, const struct gni_cuda_driver *driver,
                        const struct gni_cuda_launch *const launches[], void *const arguments[],
                        int count)
{
    const struct gni_cuda_functions *functions = &driver->functions;
    CUgraphEdgeData edge = {.type = CU_GRAPH_DEPENDENCY_TYPE_DEFAULT};
    if (launches[0]->is_early)
        edge = (CUgraphEdgeData){.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                 .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    if (functions->cuGraphCreate(&bundle->graph, 0) != CUDA_SUCCESS)
        return false;
    CUgraphNode *nodes = bundle->nodes;
    for (int i = 0; i < count; i++) {
        void *own[] = {arguments[i]};
        CUDA_KERNEL_NODE_PARAMS_v2 parameters = node_parameters(launches[i], own);
        if (functions->cuGraphAddKernelNode(&nodes[i], bundle->graph, NULL, 0, &parameters) !=
                CUDA_SUCCESS ||
            (i > 0 && functions->cuGraphAddDependencies(bundle->graph, &nodes[i - 1], &nodes[i],
                                                        &edge, 1) != CUDA_SUCCESS))
            return false;
    }
    return functions->cuGraphInstantiateWithFlags(&bundle->exec, bundle->graph, 0) == CUDA_SUCCESS;
}

static bool bundle_set(const struct gni_cuda_bundle *bundle, const struct gni_cuda_driver *driver,
                       const struct gni_cuda_launch *const launches[], void *const arguments[],
                       int count)
{
    for (int i = 0; i < count; i++) {
        void *own[] = {arguments[i]};
        CUDA_KERNEL_NODE_PARAMS_v2 parameters = node_parameters(launches[i], own);
        if (driver->functions.cuGraphExecKernelNodeSetParams(bundle->exec, bundle->nodes[i],
                                                             &parameters) != CUDA_SUCCESS)
            return false;
    }
    return true;
}

/* The stream's, or one that nobody has; NULL: there is none left. */
static struct gni_cuda_bundle_set *set_find(struct gni_cuda_bundles *bundles, CUstream stream)
{
    struct gni_cuda_bundle_set *found = NULL;
    for (int i = GNI_BUNDLE_STREAMS - 1; i >= 0; i--) {
        struct gni_cuda_bundle_set *set = &bundles->sets[i];
        if (set->is_used && set->stream == stream)
            return set;
        if (!set->is_used)
            found = set;
    }
    return found;
}

bool gni_cuda_bundle_submit(struct gni_cuda_bundles *bundles, const struct gni_cuda_driver *driver,
                            const struct gni_cuda_launch *const launches[], void *const arguments[],
                            int count)
{
    gni_assert(count >= GNI_BUNDLE_LEAST && count <= GNI_BUNDLE_MOST);
    CUstream stream = launches[0]->stream;
    struct gni_cuda_bundle_set *set =
        bundles->failures < FAILURES_MOST ? set_find(bundles, stream) : NULL;
    if (set == NULL)
        return false;
    set->is_used = true;
    set->stream = stream;
    struct gni_cuda_bundle *bundle = &set->of[launches[0]->is_early][count];
    bool is_ready = bundle->exec == NULL ? bundle_make(bundle, driver, launches, arguments, count)
                                         : bundle_set(bundle, driver, launches, arguments, count);
    if (is_ready && driver->functions.cuGraphLaunch(bundle->exec, stream) == CUDA_SUCCESS) {
        bundles->failures = 0;
        return true;
    }
    bundle_drop(bundle, driver); /* it may have some of the launches, and not others */
    if (++bundles->failures == FAILURES_MOST)
        gni_log(GNI_LOG_INFO, "launches are submitted one by one from now on");
    return false;
}

void gni_cuda_bundles_drop(struct gni_cuda_bundles *bundles, const struct gni_cuda_driver *driver,
                           const CUstream *stream)
{
    for (int i = 0; i < GNI_BUNDLE_STREAMS; i++) {
        struct gni_cuda_bundle_set *set = &bundles->sets[i];
        if (!set->is_used || (stream != NULL && set->stream != *stream))
            continue;
        for (int count = GNI_BUNDLE_LEAST; count <= GNI_BUNDLE_MOST; count++) {
            bundle_drop(&set->of[false][count], driver);
            bundle_drop(&set->of[true][count], driver);
        }
        set->is_used = false;
    }
}

/* ---- pace ------------------------------------------------------------------------------------- */

void gni_cuda_pace_init(struct gni_cuda_pace *pace, const struct gni_cuda_driver *driver)
{
    if (driver->functions.cuEventCreate(&pace->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        pace->event = NULL;
}

void gni_cuda_pace_deinit(struct gni_cuda_pace *pace, const struct gni_cuda_driver *driver)
{
    if (pace->event != NULL)
        (void)driver->functions.cuEventDestroy(pace->event);
}

void gni_cuda_pace_note(struct gni_cuda_pace *pace, const struct gni_cuda_driver *driver,
                        CUstream stream)
{
    if (pace->is_recorded) {
        pace->since += pace->stream == stream;
        return;
    }
    pace->is_recorded =
        pace->event != NULL && driver->functions.cuEventRecord(pace->event, stream) == CUDA_SUCCESS;
    pace->stream = stream;
    pace->since = 0;
}

bool gni_cuda_pace_is_ahead(struct gni_cuda_pace *pace, const struct gni_cuda_driver *driver,
                            CUstream stream)
{
    if (!pace->is_recorded || (pace->stream == stream && pace->since < AHEAD_LEAST))
        return false;
    pace->is_recorded = driver->functions.cuEventQuery(pace->event) == CUDA_ERROR_NOT_READY;
    return pace->is_recorded && pace->stream == stream;
}
