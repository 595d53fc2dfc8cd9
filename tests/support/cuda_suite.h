/*
 * cuda_suite.h: what the tests of GPUs as devices share: the stand-in of tests/fake, with two devices of 64 MiB.
 * Each program includes it once.
 */
#ifndef GNI_TESTS_CUDA_SUITE_H
#define GNI_TESTS_CUDA_SUITE_H

#include "check.h"

#include "device/cuda/cuda.h"
#include "device/device.h"
#include "fake/fake_cuda.h"
#include "genesis/genesis.h"

#define FAKE GENESIS_FAKE_DIRECTORY "/libgenesis_fake.so"
#define MIB ((size_t)1 << 20)
#define TOTAL (64 * MIB)
#define PAGE (2 * MIB) /* the stand-in's granularity */

static struct fake_control fake;
static const struct gni_cuda_functions *raw; /* the driver as another library would use it */
static gn_device *first, *second;
static const struct gni_device_ops *ops;

static inline void devices_open(void)
{
    const struct gni_cuda_driver *driver;
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 0, &first));
    CHECK_OK(gn_device_get(GN_DEVICE_CUDA, 1, &second));
    CHECK_OK(gni_cuda_driver_open(&driver));
    raw = &driver->functions;
    ops = first->ops;
    fake = fake_control_load(FAKE);
}

static inline size_t free_bytes_of(gn_device *device)
{
    size_t free_bytes = 0, total_bytes = 0;
    CHECK_OK(gn_device_get_memory_info(device, &free_bytes, &total_bytes));
    CHECK_U64(total_bytes, TOTAL);
    return free_bytes;
}

static inline bool is_active(int device)
{
    return fake.is_active(device) != 0;
}

static inline void bytes_to(void *device_address, const void *host, size_t nbytes)
{
    CHECK_OK(gn_copy(device_address, host, nbytes, first->default_stream));
}

static inline void bytes_from(void *host, const void *device_address, size_t nbytes)
{
    CHECK_OK(gn_copy(host, device_address, nbytes, first->default_stream));
}

#endif
