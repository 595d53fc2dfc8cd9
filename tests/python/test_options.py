"""The GENESIS_* variables, as a user of Python meets them."""

import pytest

from genesis import _C

GOOD = {
    "GENESIS_LOG": "error",
    "GENESIS_DEBUG": "poison,trace",
    "GENESIS_BLAS": "libopenblas.so.0",
    "GENESIS_CUDA_DRIVER": "libcuda.so",
    "GENESIS_CUDA_ALLOCATOR": "direct",
    "GENESIS_CUDA_MEMORY_FRACTION": "0.25",
    "GENESIS_CUDA_ZERO": "yes",
    "GENESIS_CUDA_SEGMENT_SIZE": "512MB",
    "GENESIS_CUDA_CACHE_SIZE": "1000",
    "GENESIS_CUDA_WARMUP_ENABLED": "true",
    "GENESIS_CUDA_STATS_ENABLED": "1",
    "GENESIS_AUTOTUNE": "max",
    "GENESIS_LAUNCH_THREAD": "off",
    "GENESIS_LAUNCH_EARLY": "off",
    "GENESIS_LAUNCH_TOGETHER": "off",
    "GENESIS_TIERS": "interpreted",
    "GENESIS_COMPILE_THREADS": "3",
    "GENESIS_RECOMPUTE_LEAST": "1GiB",
    "GENESIS_KERNEL_ARCHIVE": "off",
    "GENESIS_KERNEL_CACHE_DIR": "/somewhere",
    "GENESIS_KERNEL_SOURCE_DIR": "/somewhere/else",
}
SHOW = "from genesis import _C; print({o['name']: o['value'] for o in _C.options()})"


def test_every_variable_is_tried_here():
    assert set(GOOD) == {option["name"] for option in _C.options()}


def test_good_values(fresh):
    finished = fresh(SHOW, **GOOD)
    assert eval(finished.stdout) == GOOD  # noqa: S307 - our own text
    assert finished.stderr == ""


@pytest.mark.parametrize("name", sorted(GOOD))
def test_a_bad_value_is_one_warning(fresh, name):
    finished = fresh(SHOW, **{name: "./ nonsense ä"})
    default = {o["name"]: o["default"] for o in _C.options()}
    assert eval(finished.stdout)[name] == default[name]  # noqa: S307
    (warning,) = finished.stderr.splitlines()
    assert name in warning and "nonsense" in warning and "warning" in warning


def test_an_unknown_variable_is_one_warning(fresh):
    finished = fresh(SHOW, GENESIS_CUDA_SEGMENTSIZE="1")
    (warning,) = finished.stderr.splitlines()
    assert "GENESIS_CUDA_SEGMENTSIZE" in warning


def test_sizes():
    for text, size in {"0": 0, "512MB": 512 * 10**6, "1GiB": 2**30, " 2 kib ": 2048}.items():
        assert _C.parse_size(text) == size
    for text in ("", "-1", "1.5GB", "MB", "1 G B", "9" * 30, "8589934592GiB"):
        with pytest.raises(ValueError):
            _C.parse_size(text)
    with pytest.raises(TypeError):
        _C.parse_size(5)
