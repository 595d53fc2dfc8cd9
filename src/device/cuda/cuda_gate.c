#include "device/cuda/cuda_gate.h"

#include "device/cuda/cuda_queue.h"

void gni_cuda_gate_wait(struct gni_cuda_gate *gate)
{
    const void *closer;
    while ((closer = atomic_load(&gate->closer)) != NULL && closer != gni_thread_self() &&
           !gni_cuda_driver_is_gone()) {
        gni_cuda_gate_leave(gate);
        gni_mutex_lock(&gate->mutex);
        gni_mutex_unlock(&gate->mutex);
        atomic_fetch_add(&gate->inside, 1);
    }
}

void gni_cuda_pause(gn_device *device)
{
    struct gni_cuda_gate *gate = &gni_cuda_device_of(device)->gate;
    if (gni_cuda_driver_is_gone())
        return;
    gni_mutex_lock(&gate->mutex);
    atomic_store(&gate->closer, gni_thread_self());
    gni_cuda_submit(device);
    for (int looks = 0; atomic_load(&gate->inside) != 0; looks++)
        gni_thread_wait(looks);
}

void gni_cuda_resume(gn_device *device)
{
    struct gni_cuda_gate *gate = &gni_cuda_device_of(device)->gate;
    if (atomic_load(&gate->closer) != gni_thread_self())
        return; /* the driver was gone */
    atomic_store(&gate->closer, NULL);
    gni_mutex_unlock(&gate->mutex);
}
