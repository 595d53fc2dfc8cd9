"""What PyTorch asks its allocator beside memory, answered by Genesis.

PyTorch refuses statistics, snapshots and the like while its allocator is not its own. All of its
functions for them (``torch.cuda.memory_stats``, ``max_memory_allocated``, ``memory_summary``,
``torch.accelerator.memory_stats``, ...) look up a few functions of ``torch._C`` when they are
called. These are replaced here, so that every name of the others works, under which module it was
imported whenever. They take and return what PyTorch's own do.

CUDA graphs that ``torch.compile`` makes by itself need an allocator that puts a pool back into an
earlier state; they are switched off, with one warning.
"""

from __future__ import annotations

import warnings

from genesis import _C, _memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_NOTHING = dict.fromkeys(("current", "peak", "allocated", "freed"), 0)
_GRAPHS = "triton.cudagraphs"  # the option of torch.compile's compiler

# For each device: the counters at the last reset_accumulated_memory_stats().
_since: dict[int, dict[str, tuple[int, ...]]] = {}
_has_warned = False


# ---- statistics ---------------------------------------------------------------------------------


def memory_stats(device: int) -> dict[str, Any]:
    """``torch._C._cuda_memoryStats``."""
    now = _memory.statistics(_C.MemoryManager(device))
    amounts, counts = _memory.torch_amounts(now), _memory.torch_counts(now)
    since = _since.get(device)
    if since is not None:
        for name, (*state, allocated, freed) in amounts.items():
            amounts[name] = (*state, allocated - since[name][2], freed - since[name][3])
        counts = {name: count - since[name][0] for name, count in counts.items()}
    stats: dict[str, Any] = {**counts, "max_split_size": -1}
    for name, (current, peak, allocated, freed) in amounts.items():
        stats[name] = {
            "all": {"current": current, "peak": peak, "allocated": allocated, "freed": freed},
            "small_pool": _NOTHING.copy(),  # Genesis does not divide its memory like this
            "large_pool": _NOTHING.copy(),
        }
    for name in ("oversize_allocations", "oversize_segments"):
        stats[name] = _NOTHING.copy()
    return stats


def reset_accumulated_stats(device: int) -> None:
    """``torch._C._cuda_resetAccumulatedMemoryStats``."""
    now = _memory.statistics(_C.MemoryManager(device))
    counts = {name: (count,) for name, count in _memory.torch_counts(now).items()}
    _since[device] = {**_memory.torch_amounts(now), **counts}


def reset_peak_stats(device: int) -> None:
    """``torch._C._cuda_resetPeakMemoryStats``."""
    _memory.reset_peaks(_C.MemoryManager(device))


# ---- limits -------------------------------------------------------------------------------------


def set_memory_fraction(fraction: float, device: int) -> None:
    """``torch._C._cuda_setMemoryFraction``."""
    _C.MemoryManager(device).set_config(memory_fraction=fraction)


def get_memory_fraction(device: int) -> float:
    """``torch._C._cuda_getMemoryFraction``."""
    return _C.MemoryManager(device).get_config()["memory_fraction"]


def empty_cache() -> None:
    """``torch._C._cuda_emptyCache``."""
    for manager in _memory.used_managers():
        if manager.device.type == "cuda":
            manager.trim(0)


# ---- snapshots and the history ------------------------------------------------------------------


def memory_snapshot(which: tuple[int, int, bool] | None = None) -> dict[str, Any]:
    """``torch._C._cuda_memorySnapshot``: of all GPUs, or of one of PyTorch's pools."""
    from genesis import _snapshot, memory_profiler

    snapshot = _snapshot.to_torch(memory_profiler.get_recording())
    pool, has_traces = ((0, 0), True) if which is None else (tuple(which[:2]), which[2])
    names = snapshot["genesis"]["devices"]  # None: a GPU that was not used
    count = sum(name is None or name.startswith("cuda:") for name in names)
    snapshot["segments"] = [
        segment
        for segment in snapshot["segments"]
        if segment["device"] < count and segment["segment_pool_id"] == pool
    ]
    snapshot["device_traces"] = snapshot["device_traces"][:count] if has_traces else []
    return snapshot


def record_history(
    enabled: str | None,
    context: str | None = "all",
    stacks: str = "all",
    max_entries: int | None = None,
    clear_history: bool = False,
    *_: Any,
) -> None:
    """``torch._C._cuda_record_memory_history``."""
    from genesis import memory_profiler

    if enabled not in (None, "state", "all") or context not in (None, "state", "alloc", "all"):
        raise RuntimeError("expected state of record_memory_history to be None, 'state' or 'all'")
    if enabled is None:
        memory_profiler.stop()
    elif clear_history or not memory_profiler.has_started():
        memory_profiler.start(
            max(1, min(max_entries or memory_profiler.MAX_EVENTS, memory_profiler.MAX_EVENTS)),
            "none" if context is None else "python" if stacks == "python" else "all",
        )


def record_history_legacy(
    enabled: bool,
    record_context: bool = True,
    max_entries: int = 1,
    *rest: Any,
) -> None:
    """``torch._C._cuda_record_memory_history_legacy``."""
    has_c_frames = len(rest) > 1 and rest[1]
    record_history(
        "all" if enabled else None,
        "all" if record_context else None,
        "all" if has_c_frames else "python",
        max_entries,
    )


def is_history_enabled() -> bool:
    """``torch._C._cuda_isHistoryEnabled``."""
    from genesis import memory_profiler

    return memory_profiler.has_started()


# ---- CUDA graphs of torch.compile ---------------------------------------------------------------


def _refuse_pool_states(*_: Any) -> Any:
    raise RuntimeError(
        "CUDA graph trees keep states of PyTorch's own allocator, which is not in use: Genesis is "
        "under PyTorch. Compile without them, for example with backend='inductor'"
    )


def _graphs_off(options: dict[str, Any]) -> None:
    global _has_warned
    options[_GRAPHS] = False
    if not _has_warned:
        _has_warned = True
        warnings.warn(
            "torch.compile makes no CUDA graphs while Genesis is under PyTorch: its graph trees "
            "need PyTorch's own allocator. The model is compiled without them "
            "(mode='reduce-overhead' as 'default', 'max-autotune' as 'max-autotune-no-cudagraphs')",
            RuntimeWarning,
            stacklevel=4,
        )


def _without_graphs(compiler: Any) -> None:
    """Have a compiler of torch.compile leave CUDA graphs away, whoever asks for them."""
    apply, call = compiler.apply_options, compiler.__call__

    def apply_options(self: Any, options: dict[str, Any] | None) -> None:
        apply(self, options)
        if self.config.get(_GRAPHS):
            _graphs_off(self.config)

    def compile_model(self: Any, model: Any, inputs: Any) -> Any:
        from torch._inductor import config

        if self.config.get(_GRAPHS, config.triton.cudagraphs):  # for all models, or by environment
            _graphs_off(self.config)
        return call(self, model, inputs)

    compiler.apply_options, compiler.__call__ = apply_options, compile_model


# ---- all of it ----------------------------------------------------------------------------------


def install(torch: Any) -> None:
    """Replace what this PyTorch has of these functions; the adapter is on."""

    def memory_info(device: int) -> tuple[int, int]:
        return torch.cuda.mem_get_info(device)

    functions: dict[str, Callable[..., Any]] = {
        "_cuda_memoryStats": memory_stats,
        "_cuda_resetAccumulatedMemoryStats": reset_accumulated_stats,
        "_cuda_resetPeakMemoryStats": reset_peak_stats,
        "_cuda_setMemoryFraction": set_memory_fraction,
        "_cuda_getMemoryFraction": get_memory_fraction,
        "_cuda_emptyCache": empty_cache,
        "_cuda_memorySnapshot": memory_snapshot,
        "_cuda_record_memory_history": record_history,
        "_cuda_record_memory_history_legacy": record_history_legacy,
        "_cuda_isHistoryEnabled": is_history_enabled,
        "_accelerator_isAllocatorInitialized": torch.cuda.is_initialized,
        "_accelerator_getDeviceStats": memory_stats,
        "_accelerator_resetAccumulatedStats": reset_accumulated_stats,
        "_accelerator_resetPeakStats": reset_peak_stats,
        "_accelerator_emptyCache": empty_cache,
        "_accelerator_getMemoryInfo": memory_info,
        "_cuda_checkPoolLiveAllocations": _refuse_pool_states,
        "_cuda_getCheckpointState": _refuse_pool_states,
        "_cuda_setCheckpointPoolState": _refuse_pool_states,
    }
    for name, function in functions.items():
        if hasattr(torch._C, name):
            setattr(torch._C, name, function)
    compiler = getattr(torch, "_TorchCompileInductorWrapper", None)
    if compiler is not None:
        _without_graphs(compiler)
