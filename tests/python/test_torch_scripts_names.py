"""What PyTorch's scripts call beside tensors and modules: formats, types, switches, versions."""

from __future__ import annotations

import importlib
import logging
import pickle

import pytest
from conftest import simulate_script

import genesis

NAMES = [
    "compile",
    "compiler.disable",
    "compiler.is_compiling",
    "backends.cudnn.benchmark",
    "backends.cudnn.deterministic",
    "backends.cudnn.enabled",
    "backends.cudnn.allow_tf32",
    "backends.cudnn.is_available",
    "backends.cudnn.version",
    "backends.cudnn.flags",
    "backends.cuda.matmul.allow_tf32",
    "backends.cuda.is_built",
    "backends.cuda.matmul.allow_bf16_reduced_precision_reduction",
    "backends.cuda.enable_flash_sdp",
    "backends.cuda.sdp_kernel",
    "backends.mps.is_available",
    "backends.mps.is_built",
    "backends.mkl.is_available",
    "backends.mkldnn.is_available",
    "backends.openmp.is_available",
    "backends.cpu.get_cpu_capability",
    "cuda.is_available",
    "cuda.device_count",
    "cuda.current_device",
    "cuda.manual_seed",
    "cuda.manual_seed_all",
    "cuda.seed",
    "cuda.seed_all",
    "cuda.initial_seed",
    "cuda.max_memory_allocated",
    "cuda.max_memory_reserved",
    "cuda.reset_max_memory_allocated",
    "cuda.max_memory_cached",
    "cuda.reset_peak_memory_stats",
    "cuda.get_device_properties",
    "cuda.get_device_name",
    "cuda.get_device_capability",
    "cuda.get_arch_list",
    "cuda.get_rng_state_all",
    "cuda.set_rng_state_all",
    "cuda.ipc_collect",
    "cuda.init",
    "cuda.is_bf16_supported",
    "cuda.is_tf32_supported",
    "cuda.synchronize",
    "cuda.empty_cache",
    "cuda.Stream",
    "cuda.Event",
    "cuda.amp.autocast",
    "cuda.amp.GradScaler",
    "cuda.amp.custom_fwd",
    "cuda.FloatTensor",
    "cuda.LongTensor",
    "cpu.amp.autocast",
    "cpu.is_available",
    "cpu.device_count",
    "cpu.synchronize",
    "accelerator.is_available",
    "accelerator.current_accelerator",
    "accelerator.device_count",
    "accelerator.synchronize",
    "version.cuda",
    "version.__version__",
    "version.hip",
    "contiguous_format",
    "channels_last",
    "channels_last_3d",
    "preserve_format",
    "memory_format",
    "strided",
    "layout",
    "Size",
    "use_deterministic_algorithms",
    "are_deterministic_algorithms_enabled",
    "set_deterministic_debug_mode",
    "set_num_threads",
    "get_num_threads",
    "set_num_interop_threads",
    "get_num_interop_threads",
    "FloatTensor",
    "DoubleTensor",
    "HalfTensor",
    "BFloat16Tensor",
    "LongTensor",
    "IntTensor",
    "ShortTensor",
    "ByteTensor",
    "CharTensor",
    "BoolTensor",
    "finfo",
    "iinfo",
    "is_tensor",
    "no_grad",
    "enable_grad",
    "set_grad_enabled",
    "inference_mode",
    "is_inference_mode_enabled",
    "random.fork_rng",
    "random.get_rng_state",
    "random.manual_seed",
    "get_rng_state",
    "seed",
    "initial_seed",
    "default_generator",
    "set_default_dtype",
    "set_default_tensor_type",
    "set_printoptions",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "is_complex",
    "is_nonzero",
    "typename",
    "autocast",
    "amp.autocast",
    "amp.GradScaler",
    "amp.custom_fwd",
    "amp.custom_bwd",
    "is_autocast_enabled",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "Tensor.is_cpu",
    "Tensor.is_sparse",
    "Tensor.is_quantized",
    "Tensor.layout",
    "Tensor.is_complex",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_there(name):
    found = genesis
    for part in name.split("."):
        found = getattr(found, part)


@pytest.mark.parametrize(
    "name", ["cuda.amp", "cpu.amp", "backends.cudnn", "backends.mps", "compiler", "random"]
)
def test_modules_are_imported_by_name(name):
    assert importlib.import_module(f"genesis.{name}").__name__ == f"genesis.{name}"


# ---- formats ----


def nchw(*sizes):
    count = 1
    for size in sizes:
        count *= size
    return genesis.arange(count).reshape(*sizes).float()


@pytest.mark.parametrize(
    ("sizes", "format"),
    [
        ((2, 3, 4, 5), "channels_last"),
        ((1, 3, 4, 5), "channels_last"),
        ((2, 1, 4, 5), "channels_last"),
        ((2, 3, 1, 1), "channels_last"),
        ((0, 3, 4, 5), "channels_last"),
        ((2, 3, 2, 4, 5), "channels_last_3d"),
    ],
)
def test_channels_last(sizes, format):
    format = getattr(genesis, format)
    x = nchw(*sizes)
    made = x.to(memory_format=format)
    assert made.shape == x.shape and made.tolist() == x.tolist()
    assert made.is_contiguous(memory_format=format)
    step, expected = 1, {}
    for dim in (1, *reversed(range(2, len(sizes))), 0):
        expected[dim] = step
        step *= sizes[dim]
    assert all(
        made.stride(dim) == expected[dim] for dim in range(len(sizes)) if sizes[dim] > 1 and step
    )
    assert made.contiguous(memory_format=format) is made
    assert made.contiguous().stride() == x.stride() or not x.numel()
    for other in (
        x.contiguous(memory_format=format),
        x.clone(memory_format=format),
        made.clone(memory_format=genesis.preserve_format),
        x.cpu(memory_format=format),
        genesis.clone(x, memory_format=format),
        genesis.contiguous(x, memory_format=format),
    ):
        assert other.is_contiguous(memory_format=format) and other.tolist() == x.tolist()
    half = x.half(memory_format=format)
    assert half.dtype == genesis.float16 and half.is_contiguous(memory_format=format)


def test_new_tensors_in_a_format():
    x = nchw(2, 3, 4, 5)
    last = genesis.channels_last
    for made in (
        genesis.empty(2, 3, 4, 5, memory_format=last),
        genesis.empty_like(x, memory_format=last),
        genesis.zeros_like(x, memory_format=last),
        genesis.ones_like(x, memory_format=last),
        genesis.full_like(x, 3, memory_format=last),
        genesis.rand_like(x, memory_format=last),
        genesis.randn_like(x, memory_format=last),
        genesis.randint_like(x, 5, memory_format=last),
        genesis.empty_like(x.to(memory_format=last), memory_format=genesis.preserve_format),
    ):
        assert made.shape == x.shape and made.stride() == (60, 1, 15, 3)
    assert genesis.ones_like(x, memory_format=last).sum().item() == 120
    assert genesis.full_like(x, 3, memory_format=last).sum().item() == 360


def test_a_format_has_a_gradient_and_computes():
    x = nchw(2, 3, 2, 2).requires_grad_()
    y = x.to(memory_format=genesis.channels_last)
    (y * nchw(2, 3, 2, 2)).sum().backward()
    assert x.grad.tolist() == nchw(2, 3, 2, 2).tolist()
    assert (y.detach() + 1).sum(dim=1).tolist() == (nchw(2, 3, 2, 2) + 1).sum(dim=1).tolist()


def test_wrong_formats():
    x = genesis.ones(3)
    with pytest.raises(genesis.ShapeError, match="channels_last is for tensors of 4 dimensions"):
        x.to(memory_format=genesis.channels_last)
    with pytest.raises(genesis.ShapeError, match="channels_last_3d is for tensors of 5"):
        genesis.empty(1, 2, memory_format=genesis.channels_last_3d)
    with pytest.raises(ValueError, match="memory_format is contiguous_format"):
        x.clone(memory_format="rows")
    with pytest.raises(TypeError, match="memory_format is genesis.contiguous_format"):
        x.contiguous(memory_format=3)
    with pytest.raises(TypeError, match="unexpected keyword"):
        genesis.zeros(2, memory_format=genesis.channels_last)
    assert not x.is_contiguous(memory_format=genesis.channels_last)


def test_formats_are_kept_by_pickle():
    for format in (genesis.channels_last, genesis.preserve_format):
        copy = pickle.loads(pickle.dumps(format))
        assert copy == format and repr(copy) == f"genesis.{format}"
    assert genesis.ones(1).layout == genesis.strided


def test_non_blocking_is_accepted():
    x = genesis.ones(2, 3)
    assert x.to("cpu", non_blocking=True) is x
    assert x.to("cpu", genesis.float64, non_blocking=True, copy=True).dtype == genesis.float64
    assert x.cpu(non_blocking=True) is x
    assert x.clone().copy_(x * 2, non_blocking=True).tolist() == [[2.0] * 3] * 2


def test_on_the_simulated_gpu():
    assert simulate_script("device_formats.py").stdout.split()[-1] == "properties"


# ---- types ----


def test_types_of_tensors():
    assert genesis.FloatTensor([1, 2]).dtype == genesis.float32
    assert genesis.LongTensor([[1], [2]]).shape == (2, 1)
    assert genesis.HalfTensor(2, 3).shape == (2, 3)
    assert genesis.BoolTensor([0, 3]).tolist() == [False, True]
    assert genesis.FloatTensor().shape == (0,)
    assert isinstance(genesis.ones(1), genesis.FloatTensor)
    assert not isinstance(genesis.ones(1).long(), genesis.FloatTensor)
    assert not isinstance(genesis.ones(1), genesis.cuda.FloatTensor)
    assert genesis.ones(1).type(genesis.LongTensor).dtype == genesis.int64
    assert genesis.typename(genesis.ones(1)) == "genesis.FloatTensor"
    assert genesis.typename(3) == "int"
    before = genesis.get_default_dtype()
    try:
        genesis.set_default_tensor_type("genesis.DoubleTensor")
        assert genesis.ones(1).dtype == genesis.float64
        with pytest.raises(TypeError, match="no type of floating tensors"):
            genesis.set_default_tensor_type(genesis.LongTensor)
    finally:
        genesis.set_default_dtype(before)


def test_questions():
    x = genesis.ones(2)
    assert x.is_cpu and not x.is_sparse and not x.is_quantized and not x.is_complex()
    assert not genesis.is_complex(x) and not genesis.is_inference(x)
    assert genesis.is_nonzero(genesis.tensor(2)) and not genesis.is_nonzero(genesis.tensor(0.0))
    with pytest.raises(RuntimeError, match="has 2 elements"):
        genesis.is_nonzero(x)
    assert not genesis.is_inference_mode_enabled()
    with genesis.inference_mode():
        assert genesis.is_inference_mode_enabled()


# ---- switches ----


def test_compile_gives_what_it_is_given(caplog):
    def double(x):
        return x * 2

    genesis.compiler._is_told = False
    with caplog.at_level(logging.INFO, logger="genesis"):
        assert genesis.compile(double, mode="max-autotune", dynamic=True) is double
        assert genesis.compile(backend="inductor")(double) is double
    assert len(caplog.records) == 1 and "fused" in caplog.text
    assert genesis.compiler.disable(double) is double
    assert genesis.compiler.disable(recursive=False)(double) is double
    assert not genesis.compiler.is_compiling()
    with pytest.raises(RuntimeError, match="either mode or options"):
        genesis.compile(double, mode="default", options={})
    with pytest.raises(TypeError, match="a model or a function"):
        genesis.compile(3)


def test_switches_of_cudnn():
    cudnn = genesis.backends.cudnn
    assert (cudnn.benchmark, cudnn.deterministic, cudnn.enabled) == (False, False, True)
    with cudnn.flags(enabled=False, benchmark=True):
        assert cudnn.benchmark and not cudnn.enabled
    assert cudnn.enabled and not cudnn.benchmark
    before = cudnn.set_flags(_benchmark=True)
    assert cudnn.benchmark
    cudnn.set_flags(*before)
    assert not cudnn.benchmark
    with genesis.backends.mkldnn.flags(enabled=False):
        assert not genesis.backends.mkldnn.enabled
    assert genesis.backends.mkldnn.enabled


def test_precision_of_products():
    matmul = genesis.backends.cuda.matmul
    try:
        matmul.allow_tf32 = True
        assert genesis.get_float32_matmul_precision() == "high"
        assert matmul.fp32_precision == "tf32"
        genesis.set_float32_matmul_precision("highest")
        assert not matmul.allow_tf32
        with pytest.raises(ValueError, match="'tf32', 'ieee' or 'none'"):
            matmul.fp32_precision = "bf16"
    finally:
        matmul.allow_tf32 = False


def test_switches_of_attention():
    cuda = genesis.backends.cuda
    with cuda.sdp_kernel(enable_flash=True, enable_math=False, enable_mem_efficient=False):
        assert cuda.flash_sdp_enabled() and not cuda.math_sdp_enabled()
        assert not cuda.mem_efficient_sdp_enabled() and cuda.cudnn_sdp_enabled()
    cuda.enable_math_sdp(False)
    assert not cuda.math_sdp_enabled()
    cuda.enable_math_sdp(True)


def test_deterministic_algorithms():
    assert not genesis.are_deterministic_algorithms_enabled()
    genesis.use_deterministic_algorithms(True, warn_only=True)
    assert genesis.is_deterministic_algorithms_warn_only_enabled()
    assert genesis.get_deterministic_debug_mode() == 1
    genesis.set_deterministic_debug_mode("error")
    assert genesis.are_deterministic_algorithms_enabled()
    genesis.set_deterministic_debug_mode(0)
    with pytest.raises(ValueError, match="'default', 'warn' or 'error'"):
        genesis.set_deterministic_debug_mode("sometimes")


def test_threads():
    before = genesis.get_num_threads()
    genesis.set_num_threads(2)
    assert genesis.get_num_threads() == genesis.cpu.get_num_threads() == 2
    genesis.set_num_threads(before)
    genesis.set_num_interop_threads(4)
    assert genesis.get_num_interop_threads() == 1
    assert not genesis.set_flush_denormal(True)


# ---- random numbers ----


def test_fork_rng():
    genesis.manual_seed(5)
    with genesis.random.fork_rng():
        inside = genesis.rand(3).tolist()
    assert genesis.rand(3).tolist() == inside
    with genesis.random.fork_rng(enabled=False):
        inside = genesis.rand(3).tolist()
    assert genesis.rand(3).tolist() != inside


def test_seeds_of_cuda_are_those_of_the_generator():
    genesis.manual_seed(9)
    first = genesis.rand(2).tolist()
    genesis.cuda.manual_seed_all(9)
    assert genesis.rand(2).tolist() == first
    assert genesis.cuda.initial_seed() == genesis.random.initial_seed() == 9


def test_versions():
    assert genesis.version.__version__ == genesis.__version__
    assert genesis.version.hip is None
    if not genesis.cuda.is_available():
        assert genesis.version.cuda is None
        assert genesis.accelerator.current_accelerator() is None
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        _ = genesis.version.other


def test_kinds_of_tensors_that_there_are_none_of():
    x = genesis.ones(2)
    assert not (x.is_meta or x.is_mps or x.is_sparse or x.is_quantized)
