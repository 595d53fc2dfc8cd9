/*
 * torch_peer.cpp: the timing loops of bench_alloc_gpu.py, the same text for every peer: PyTorch's
 * caching allocator from C++, Genesis through the exported functions of libgenesis.so by pointer and by
 * handle, and the driver's cuMemAllocAsync.
 *
 * bench_alloc_gpu.py builds it as an extension of PyTorch and calls the functions below through
 * ctypes, so that no Python is in a loop. With PEER_WITHOUT_TORCH it builds without PyTorch, to check
 * everything else on a machine that has none.
 *
 * Each function returns 0, or -1 with a sentence in peer_error(). One thread calls them.
 */
#ifndef PEER_WITHOUT_TORCH
#include <torch/extension.h>
#include <c10/cuda/CUDACachingAllocator.h>
#endif

#include "genesis/genesis.h"
#include "scenarios.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace
{

using Clock = std::chrono::steady_clock;

double nanoseconds(Clock::duration duration)
{
    return std::chrono::duration<double, std::nano>(duration).count();
}

void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found)
        throw std::runtime_error(std::string("there is no function ") + name);
    return found;
}

/* ---- the peers: static functions, resolved once, called through pointers ---- */

struct Genesis {
    static inline gn_memory_manager *manager;
    static inline decltype(&gn_memory_alloc) pointer_alloc;
    static inline decltype(&gn_memory_free) pointer_free;
    static inline decltype(&gn_memory_block_alloc) block_alloc;
    static inline decltype(&gn_memory_block_free) block_free;
    static inline decltype(&gn_error_detail) error_detail;

    static void open(const char *path, void *borrowed)
    {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            throw std::runtime_error(dlerror());
        manager = static_cast<gn_memory_manager *>(borrowed);
        pointer_alloc =
            reinterpret_cast<decltype(pointer_alloc)>(symbol(library, "gn_memory_alloc"));
        pointer_free = reinterpret_cast<decltype(pointer_free)>(symbol(library, "gn_memory_free"));
        block_alloc =
            reinterpret_cast<decltype(block_alloc)>(symbol(library, "gn_memory_block_alloc"));
        block_free =
            reinterpret_cast<decltype(block_free)>(symbol(library, "gn_memory_block_free"));
        error_detail = reinterpret_cast<decltype(error_detail)>(symbol(library, "gn_error_detail"));
    }
    [[noreturn]] static void fail() { throw std::runtime_error(error_detail()); }
};

struct PointerPeer {
    static void begin() {}
    static void *alloc(size_t nbytes)
    {
        void *pointer;
        if (Genesis::pointer_alloc(Genesis::manager, nbytes, nullptr, &pointer) != GN_OK)
            Genesis::fail();
        return pointer;
    }
    static void free(void *pointer)
    {
        if (Genesis::pointer_free(Genesis::manager, pointer) != GN_OK)
            Genesis::fail();
    }
};

struct HandlePeer {
    static void begin() {}
    static void *alloc(size_t nbytes)
    {
        gn_memory_block *block;
        if (Genesis::block_alloc(Genesis::manager, nbytes, nullptr, &block) != GN_OK)
            Genesis::fail();
        return block;
    }
    static void free(void *block)
    {
        if (Genesis::block_free(static_cast<gn_memory_block *>(block)) != GN_OK)
            Genesis::fail();
    }
};

/* The driver in stream order, on the default stream. The context must be current in each thread. */
struct DriverPeer {
    static inline void *context, *pool;
    static inline int (*alloc_async)(unsigned long long *pointer, size_t nbytes, void *stream);
    static inline int (*free_async)(unsigned long long pointer, void *stream);
    static inline int (*context_push)(void *context);
    static inline int (*pool_trim)(void *pool, size_t keep_bytes);

    static void check(int result)
    {
        if (result != 0)
            throw std::runtime_error("driver error " + std::to_string(result));
    }
    static void open(const char *path)
    {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            throw std::runtime_error(dlerror());
        auto init = reinterpret_cast<int (*)(unsigned)>(symbol(library, "cuInit"));
        auto retain =
            reinterpret_cast<int (*)(void **, int)>(symbol(library, "cuDevicePrimaryCtxRetain"));
        context_push =
            reinterpret_cast<decltype(context_push)>(symbol(library, "cuCtxPushCurrent_v2"));
        alloc_async = reinterpret_cast<decltype(alloc_async)>(symbol(library, "cuMemAllocAsync"));
        free_async = reinterpret_cast<decltype(free_async)>(symbol(library, "cuMemFreeAsync"));
        check(init(0));
        check(retain(&context, 0));
        begin();
        /* Freed memory stays with the pool, as its manual advises for speed. */
        auto pool_get =
            reinterpret_cast<int (*)(void **, int)>(dlsym(library, "cuDeviceGetDefaultMemPool"));
        auto pool_set =
            reinterpret_cast<int (*)(void *, int, void *)>(dlsym(library, "cuMemPoolSetAttribute"));
        pool_trim = reinterpret_cast<decltype(pool_trim)>(dlsym(library, "cuMemPoolTrimTo"));
        if (pool_get && pool_set) {
            unsigned long long most = ~0ull;
            check(pool_get(&pool, 0));
            check(pool_set(pool, 4 /* CU_MEMPOOL_ATTR_RELEASE_THRESHOLD */, &most));
        }
    }
    static void begin() { check(context_push(context)); }
    static void *alloc(size_t nbytes)
    {
        unsigned long long pointer;
        check(alloc_async(&pointer, nbytes, nullptr));
        return reinterpret_cast<void *>(pointer);
    }
    static void free(void *pointer)
    {
        check(free_async(reinterpret_cast<unsigned long long>(pointer), nullptr));
    }
};

#ifndef PEER_WITHOUT_TORCH
struct TorchPeer {
    static inline c10::cuda::CUDACachingAllocator::CUDAAllocator *allocator;
    static void open() { allocator = c10::cuda::CUDACachingAllocator::get(); }
    static void begin() {}
    static void *alloc(size_t nbytes) { return allocator->raw_allocate(nbytes); }
    static void free(void *pointer) { allocator->raw_deallocate(pointer); }
};
#endif

/* ---- the loops ---- */

/* Slots with blocks in them; frees what is left, so that an exception leaves nothing behind. */
template <class Peer> struct Slots {
    std::vector<void *> live;
    explicit Slots(size_t count) : live(count, nullptr) {}
    ~Slots()
    {
        try {
            clear();
        } catch (...) { /* the first error is on its way */
        }
    }
    void clear()
    {
        for (void *&block : live) {
            if (block)
                Peer::free(block);
            block = nullptr;
        }
    }
    void step(const bench_step &step)
    {
        void *&slot = live[step.slot];
        if (slot)
            Peer::free(slot);
        slot = nullptr;
        if (step.nbytes)
            slot = Peer::alloc(step.nbytes);
    }
};

template <class Peer> double time_steps(const bench_step *steps, size_t count, size_t slot_count)
{
    Slots<Peer> slots(slot_count);
    auto start = Clock::now();
    for (size_t i = 0; i < count; i++)
        slots.step(steps[i]);
    slots.clear();
    return nanoseconds(Clock::now() - start);
}

/* Of the single steps that allocate, what this part of them stays below. The clock is in it. */
template <class Peer>
double time_quantile(const bench_step *steps, size_t count, size_t slot_count, double part)
{
    std::vector<double> times;
    times.reserve(count);
    Slots<Peer> slots(slot_count);
    for (size_t i = 0; i < count; i++) {
        auto start = Clock::now();
        slots.step(steps[i]);
        auto end = Clock::now();
        if (steps[i].nbytes)
            times.push_back(nanoseconds(end - start));
    }
    slots.clear();
    std::sort(times.begin(), times.end());
    return times.empty() ? 0
                         : times[std::min(times.size() - 1, size_t(double(times.size()) * part))];
}

/* Runs work(number) in threads that start together; nanoseconds from the start to the last end. */
template <class Work> double time_threads(size_t count, Work work)
{
    std::atomic<size_t> ready{0};
    std::atomic<bool> is_started{false};
    std::vector<std::string> errors(count);
    std::vector<std::thread> threads;
    for (size_t number = 0; number < count; number++) {
        threads.emplace_back([&, number] {
            ready++;
            while (!is_started)
                ;
            try {
                work(number);
            } catch (const std::exception &error) {
                errors[number] = error.what();
            }
        });
    }
    while (ready != count)
        std::this_thread::yield();
    auto start = Clock::now();
    is_started = true;
    for (auto &thread : threads)
        thread.join();
    double ns = nanoseconds(Clock::now() - start);
    for (const auto &error : errors) {
        if (!error.empty())
            throw std::runtime_error(error);
    }
    return ns;
}

template <class Peer> double time_parallel(size_t thread_count, size_t nbytes, size_t pairs)
{
    return time_threads(thread_count, [=](size_t) {
        Peer::begin();
        for (size_t i = 0; i < pairs; i++)
            Peer::free(Peer::alloc(nbytes));
    });
}

/* One thread allocates and another frees, with at most 256 blocks on their way. */
template <class Peer> double time_handoff(const bench_step *steps, size_t count)
{
    constexpr size_t capacity = 256;
    std::vector<void *> queue(capacity);
    alignas(64) std::atomic<size_t> head{0};
    alignas(64) std::atomic<size_t> tail{0};
    std::atomic<bool> is_broken{false}; /* one side failed: the other must not wait for ever */
    auto produce = [&] {
        for (size_t i = 0; i < count; i++) {
            void *block = Peer::alloc(steps[i].nbytes);
            while (i - tail.load(std::memory_order_acquire) == capacity && !is_broken)
                std::this_thread::yield();
            queue[i % capacity] = block;
            head.store(i + 1, std::memory_order_release);
        }
    };
    auto consume = [&] {
        for (size_t i = 0; i < count && !is_broken; i++) {
            while (head.load(std::memory_order_acquire) == i && !is_broken)
                std::this_thread::yield();
            if (head.load(std::memory_order_acquire) != i)
                Peer::free(queue[i % capacity]);
            tail.store(i + 1, std::memory_order_release);
        }
    };
    return time_threads(2, [&](size_t number) {
        Peer::begin();
        try {
            if (number == 0)
                produce();
            else
                consume();
        } catch (...) {
            is_broken = true;
            throw;
        }
    });
}

/* The time of each allocation by itself; all are freed at the end. */
template <class Peer> void time_each(const uint64_t *sizes, size_t count, double *ns)
{
    Slots<Peer> slots(count);
    for (size_t i = 0; i < count; i++) {
        auto start = Clock::now();
        slots.live[i] = Peer::alloc(sizes[i]);
        ns[i] = nanoseconds(Clock::now() - start);
    }
    slots.clear();
}

/* ---- choosing the peer by its number ---- */

enum Kind {
    KIND_TORCH,
    KIND_POINTER,
    KIND_HANDLE,
    KIND_DRIVER,
};

template <class Function> void with_peer(int kind, Function function)
{
    switch (kind) {
#ifndef PEER_WITHOUT_TORCH
    case KIND_TORCH:
        return function(TorchPeer());
#endif
    case KIND_POINTER:
        return function(PointerPeer());
    case KIND_HANDLE:
        return function(HandlePeer());
    case KIND_DRIVER:
        return function(DriverPeer());
    default:
        throw std::runtime_error("no such peer");
    }
}

std::string last_error;

template <class Function> int guarded(Function function)
{
    try {
        function();
        return 0;
    } catch (const std::exception &error) {
        last_error = error.what();
        return -1;
    }
}

} // namespace

/* ---- what Python calls ---- */

extern "C" {

BENCH_API const char *peer_error(void)
{
    return last_error.c_str();
}

BENCH_API int peer_open_genesis(const char *path, void *manager)
{
    return guarded([&] { Genesis::open(path, manager); });
}

BENCH_API int peer_open_driver(const char *path)
{
    return guarded([&] { DriverPeer::open(path); });
}

BENCH_API int peer_open_torch(void)
{
#ifdef PEER_WITHOUT_TORCH
    return guarded([] { throw std::runtime_error("built without PyTorch"); });
#else
    return guarded([] { TorchPeer::open(); });
#endif
}

/* Gives back what the driver's pool keeps; the other peers have functions for that in Python. */
BENCH_API int peer_trim_driver(void)
{
    return guarded([] {
        if (DriverPeer::pool && DriverPeer::pool_trim)
            DriverPeer::check(DriverPeer::pool_trim(DriverPeer::pool, 0));
    });
}

/* Nanoseconds for all the steps and the frees at the end. */
BENCH_API int peer_run(int kind, const struct bench_step *steps, size_t count, size_t slot_count,
                       double *ns)
{
    return guarded([&] {
        with_peer(kind,
                  [&](auto peer) { *ns = time_steps<decltype(peer)>(steps, count, slot_count); });
    });
}

BENCH_API int peer_quantile(int kind, const struct bench_step *steps, size_t count,
                            size_t slot_count, double part, double *ns)
{
    return guarded([&] {
        with_peer(kind, [&](auto peer) {
            *ns = time_quantile<decltype(peer)>(steps, count, slot_count, part);
        });
    });
}

/* Nanoseconds for `pairs` pairs in each thread. */
BENCH_API int peer_threads(int kind, size_t thread_count, size_t nbytes, size_t pairs, double *ns)
{
    return guarded([&] {
        with_peer(kind, [&](auto peer) {
            *ns = time_parallel<decltype(peer)>(thread_count, nbytes, pairs);
        });
    });
}

BENCH_API int peer_handoff(int kind, const struct bench_step *steps, size_t count, double *ns)
{
    return guarded([&] {
        with_peer(kind, [&](auto peer) { *ns = time_handoff<decltype(peer)>(steps, count); });
    });
}

BENCH_API int peer_each(int kind, const uint64_t *sizes, size_t count, double *ns)
{
    return guarded(
        [&] { with_peer(kind, [&](auto peer) { time_each<decltype(peer)>(sizes, count, ns); }); });
}

} // extern "C"

#ifndef PEER_WITHOUT_TORCH
PYBIND11_MODULE(TORCH_EXTENSION_NAME, module)
{
    module.doc() = "the loops of bench_alloc_gpu.py, called through ctypes";
}
#endif
