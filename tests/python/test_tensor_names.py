"""The public names of tensors: that they are there, and what no other test looks at."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
import threading

import numpy
import pytest

import genesis

BOTH = """
    pow exp log sqrt rsqrt sin cos tan tanh sigmoid relu gelu silu abs neg sign floor ceil round
    trunc clamp maximum minimum where isnan isinf isfinite logical_and logical_or logical_xor
    logical_not bitwise_and bitwise_or bitwise_xor bitwise_not sum mean prod max min argmax
    argmin any all var std logsumexp softmax log_softmax cumsum norm view reshape flatten
    transpose permute squeeze unsqueeze expand broadcast_to contiguous split chunk flip roll
    repeat tile sort argsort topk unique allclose equal isclose tril triu add sub mul div
"""
FUNCTIONS = """
    tensor as_tensor from_numpy empty zeros ones full empty_like zeros_like ones_like full_like
    rand_like randn_like arange linspace eye rand randn randint randperm one_hot manual_seed
    seed initial_seed Generator default_generator cat stack flush set_default_device
    get_default_device save load device float16 bfloat16 float32 float64 int8 int16 int32 int64
    uint8 uint16 uint32 uint64 bool ShapeError OutOfMemoryError DeviceLostError
"""
METHODS = """
    T mT shape dtype device ndim numel stride strides storage_offset is_contiguous data_ptr
    element_size nbytes item tolist numpy cpu cuda to float half int double long short char byte
    bool bfloat16 clone detach pin_memory is_pinned record_stream size dim exp_ add_ mul_ sub_
    div_ fill_ copy_ zero_ clamp_ clip_ tril_ triu_ uniform_ normal_
"""


def test_the_names_are_there():
    missing = {name for name in (FUNCTIONS + BOTH).split() if name not in genesis.__all__}
    missing |= {f"Tensor.{n}" for n in (METHODS + BOTH).split() if not hasattr(genesis.Tensor, n)}
    assert not missing


def test_generators():
    one, two = genesis.Generator(), genesis.Generator("cpu")
    before = genesis.rand(5)
    genesis.manual_seed(genesis.initial_seed())
    for make in (
        lambda g: genesis.rand(5, 3, generator=g),
        lambda g: genesis.randn((4,), generator=g, dtype=genesis.float64),
        lambda g: genesis.randint(0, 100, (50,), generator=g),
        lambda g: genesis.randint(9, (50,), generator=g, dtype=genesis.int8),
        lambda g: genesis.randperm(20, generator=g),
        lambda g: genesis.empty(7).uniform_(-1, 1, generator=g),
        lambda g: genesis.empty(50, dtype=genesis.int8).random_(generator=g),
        lambda g: genesis.empty(50).random_(10, generator=g),
        lambda g: genesis.empty(50, dtype=genesis.bfloat16).random_(-5, 5, generator=g),
        lambda g: genesis.empty(7, 2).T.normal_(5, 0.5, generator=g),
    ):
        first = make(one.manual_seed(11))
        second = make(one)
        assert first.tolist() == make(two.manual_seed(11)).tolist() != second.tolist()
        assert make(two).tolist() == second.tolist()
        state = one.get_state()
        third = make(one)
        assert make(two.set_state(state)).tolist() == third.tolist()
        assert make(genesis.manual_seed(11)).tolist() == first.tolist() == make_default(make, 11)
    assert one.initial_seed() == 11 and one.device == "cpu"
    assert one.seed() == one.initial_seed() != two.seed()
    assert genesis.seed() == genesis.initial_seed() == genesis.default_generator.initial_seed()
    genesis.manual_seed(-1)
    assert genesis.initial_seed() == (1 << 64) - 1
    genesis.manual_seed(0)
    state = genesis.get_rng_state()
    assert genesis.rand(3).tolist() == genesis.rand(3, generator=genesis.Generator()).tolist()
    genesis.set_rng_state(state)
    assert genesis.rand(5).shape == before.shape
    for wrong, error, words in [
        (lambda: genesis.rand(1, generator=3), TypeError, "genesis.Generator or None, not 3"),
        (lambda: one.set_state(genesis.zeros(16)), ValueError, "16 uint8"),
        (lambda: one.manual_seed(1.5), TypeError, "integer"),
        (lambda: genesis.empty(2).uniform_(1, 0), ValueError, "from 1 to before 0"),
        (lambda: genesis.empty(2).normal_(0, -1), ValueError, "not negative"),
        (lambda: genesis.empty(2, dtype=genesis.int8).uniform_(), TypeError, "floating"),
    ]:
        with pytest.raises(error, match=words):
            wrong()


@pytest.mark.parametrize("dtype", [genesis.float16, genesis.bfloat16, genesis.float32])
def test_uniform_numbers_stay_below_their_end(dtype):
    x = genesis.rand(100_000, dtype=dtype).float()
    assert x.amax().item() < 1 and x.amin().item() >= 0 and abs(x.mean().item() - 0.5) < 0.01
    y = genesis.empty(100_000, dtype=dtype).uniform_(100, 101).float()
    assert y.amax().item() < 101 and y.amin().item() >= 100


def make_default(make, seed):
    genesis.manual_seed(seed)
    return make(None).tolist()


def test_generators_in_threads():
    """Every fill takes a place of its own in the sequence."""
    generator, made = genesis.Generator(), []

    def work():
        for _ in range(100):
            made.append(tuple(genesis.rand(20000, generator=generator)[:3].tolist()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 400


def test_the_default_device():
    genesis.set_default_device("cpu")
    genesis.set_default_device(None)
    assert genesis.get_default_device() == "cpu" == genesis.zeros(1).device
    with pytest.raises(RuntimeError, match="CUDA|cuda"):
        genesis.set_default_device("cuda:63")
    with pytest.raises((ValueError, RuntimeError), match="tpu"):
        genesis.set_default_device("tpu")
    for make in (
        lambda device: genesis.arange(3, device=device),
        lambda device: genesis.linspace(0, 1, 3, device=device),
        lambda device: genesis.eye(2, device=device),
        lambda device: genesis.rand(2, device=device),
        lambda device: genesis.randint(0, 3, (2,), device=device),
        lambda device: genesis.randperm(3, device=device),
        lambda device: genesis.zeros_like(genesis.ones(2), device=device),
        lambda device: genesis.tensor([1], device=device),
        lambda device: genesis.full((2,), 1, device=device),
        lambda device: genesis.ones(1).to(device=device),
    ):
        assert make("cpu").device == "cpu" == make(genesis.device("cpu")).device
        with pytest.raises(RuntimeError, match="CUDA|cuda"):
            make("cuda:63")


def test_blocks_of_a_device(fresh, build):
    device = genesis.device("cpu")
    with device as entered, device:
        assert entered is device and genesis.zeros(1).device == "cpu"
    with pytest.raises(RuntimeError, match="in no block"):
        device.__exit__(None, None, None)
    with pytest.raises(RuntimeError, match="CUDA|cuda"), genesis.device("cuda:63"):
        pass
    driver = build / "libgenesis_sim.so"
    if driver.exists():
        fresh(
            """
import threading
import genesis

def places():
    return [str(one.device) for one in (genesis.zeros(1), genesis.tensor([1]), genesis.arange(2))]

def other():
    assert places() == ["cpu"] * 3  # a block is of one thread
    with gpu:
        assert places() == ["cuda:0"] * 3

gpu = genesis.device("cuda")
try:
    with gpu:
        assert places() == ["cuda:0"] * 3 and genesis.get_default_device() == gpu
        with genesis.device("cpu"):
            genesis.set_default_device("cuda")
            assert places() == ["cpu"] * 3 and genesis.zeros(1, device=gpu).device == gpu
        genesis.set_default_device(None)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert places() == ["cuda:0"] * 3
        raise KeyError
except KeyError:
    assert places() == ["cpu"] * 3
assert genesis.ones(2, device="cuda").type() == "genesis.cuda.FloatTensor"
assert genesis.ones(2).type("genesis.cuda.IntTensor").device == "cuda"
""",
            GENESIS_CUDA_DRIVER=str(driver),
        )


def test_moving_and_converting():
    x = genesis.arange(6).reshape(2, 3)
    assert x.cpu() is x is x.to("cpu") is x.to(device="cpu", non_blocking=True)
    assert x.to(dtype=genesis.float16).dtype == genesis.float16
    assert x.to("cpu", genesis.int8).dtype == genesis.int8
    assert x.to(copy=True).data_ptr() != x.data_ptr() == x.detach().data_ptr()
    assert x.T.detach().strides == x.T.strides
    assert x.detach().cpu().numpy().tolist() == x.tolist()
    with pytest.raises(ValueError, match="goes to a CUDA device"):
        x.cuda("cpu")
    with pytest.raises(TypeError, match="no argument 'colour'"):
        x.to(colour=3)


def test_an_address_knows_its_type():
    x = genesis.zeros(3, dtype=genesis.int16)
    address = x[1:].data_ptr()
    assert isinstance(address, int) and address == x.data_ptr() + 2
    assert address.dtype is genesis.int16 and type(address.data_ptr()) is int
    assert address.data_ptr() == address and pickle.loads(pickle.dumps(address)) == address


def test_keywords_of_views():
    array = numpy.arange(24).reshape(1, 2, 3, 4)
    x = genesis.tensor(array)
    assert x.transpose(dim0=1, dim1=3).shape == (1, 4, 3, 2)
    assert x.unsqueeze(dim=-1).shape == (1, 2, 3, 4, 1) and x.squeeze(dim=0).shape == (2, 3, 4)
    assert x.unsqueeze(-1).squeeze((0, -1)).shape == (2, 3, 4)
    assert x.flatten(1, 2).shape == (1, 6, 4) and x.flatten(start_dim=2).shape == (1, 2, 12)
    assert genesis.flatten(x, end_dim=1).tolist() == array.reshape(2, 3, 4).tolist()
    assert genesis.tensor(3).flatten().shape == (1,)
    assert x.T.flatten(0, 1).tolist() == array.T.reshape(12, 2, 1).tolist()
    with pytest.raises(genesis.ShapeError, match="does not come before"):
        x.flatten(2, 1)
    with pytest.raises(IndexError, match="out of range"):
        x.squeeze(4)


def test_arguments_that_pytorch_has():
    x, y = genesis.tensor([3, 1, 2]), genesis.tensor([2, 2, 2])
    assert x.max(y).tolist() == genesis.max(x, y).tolist() == [3, 2, 2]
    assert x.min(y).tolist() == [2, 1, 2] and x.sort(stable=True, descending=True)[0][0] == 3
    assert genesis.sort(x, stable=True).values.tolist() == [1, 2, 3]
    assert genesis.argsort(x, 0, True, True).tolist() == [0, 2, 1]
    assert genesis.topk(x, 2, sorted=True).values.tolist() == [3, 2]
    assert x.unique(True).tolist() == [1, 2, 3] and len(x.unique(return_counts=True)) == 2


def test_in_place_operators():
    x = genesis.tensor([1, 2, 3])
    kept = x
    x **= 2
    x <<= 3
    x >>= 1
    assert kept is x and x.tolist() == [4, 16, 36]
    with pytest.raises(TypeError, match="cannot be stored"):
        x **= 0.5
    matrix = genesis.ones(3, 3)
    assert matrix.tril_() is matrix and matrix.triu_().tolist() == numpy.eye(3).tolist()
    assert x.where(x > 5, -1).tolist() == [-1, 16, 36]
    with pytest.raises(TypeError, match="cannot be stored"):
        x.clamp_(10, 20.5)
    assert x.tolist() == [4, 16, 36]  # the bound that fits was not applied
    assert x.clamp_(10).clip_(max=20) is x and x.tolist() == [10, 16, 20]


def test_long_sequences():
    assert genesis.arange(1_000_000)[-1].item() == 999_999
    with pytest.raises(genesis.OutOfMemoryError):
        genesis.arange(1 << 45)  # at once, and not after counting so far
    for wrong in ((0, math.nan), (0, math.inf), (0, 1e300)):
        with pytest.raises((ValueError, OverflowError)):
            genesis.arange(*wrong)


def test_mistakes_about_shapes():
    x = genesis.zeros(2, 3)
    for wrong, error, words in [
        (lambda: x.roll((1, 2)), ValueError, "2 shifts need as many"),
        (lambda: x.roll((1, 2), 0), ValueError, "as many numbers, not 2 and 1"),
        (lambda: x.roll(1, 2), IndexError, r"dimension 2 is out of range for shape \(2, 3\)"),
        (
            lambda: x.repeat(2),
            genesis.ShapeError,
            r"repeat: \(2,\) needs a count for each dimension",
        ),
        (lambda: x.repeat(2, -1), ValueError, "not negative"),
    ]:
        with pytest.raises(error, match=words):
            wrong()


def test_norms():
    array = numpy.array([[3.0, -4.0, 0.0], [1.0, 2.0, -2.0]])
    x = genesis.tensor(array)
    for p in (1, 2, 3, 0.5, numpy.inf, -numpy.inf, 0):
        for dim in (0, 1):
            expected = numpy.linalg.norm(array, p, axis=dim)
            numpy.testing.assert_allclose(x.norm(p, dim).numpy(), expected, rtol=1e-6)
    assert x[0].norm("fro").item() == 5
    with pytest.raises(TypeError, match="norm: elements are floating"):
        genesis.tensor([1]).norm()


# ---- page-locked memory and streams ----


def test_without_a_gpu_memory_is_ordinary():
    """In a process of its own: the warning comes once in each."""
    script = """
import warnings, genesis
x = genesis.ones(3)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    assert x.pin_memory() is x
assert [(one.category, one.filename) for one in seen] == [(RuntimeWarning, "<string>")]
assert "not page-locked" in str(seen[0].message)
warnings.simplefilter("error")
assert x.pin_memory() is x and not x.is_pinned()  # said once
assert genesis.full((2,), 7, pin_memory=True).tolist() == [7, 7]
assert genesis.zeros(2, pin_memory=True).tolist() == [0, 0]
genesis.cpu.enable_pinned_memory(True)
assert not genesis.ones(3).is_pinned()
"""
    if genesis.cuda.is_available():
        pytest.skip("there is a GPU")
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_page_locked_memory(simulated_memory):
    simulated_memory("""
x = genesis.arange(1000, dtype=genesis.float32)
pinned = (x + 1).pin_memory()
assert pinned.is_pinned() and pinned.pin_memory() is pinned and not x.is_pinned()
assert pinned[10:].T.is_pinned() and not (pinned + 1).is_pinned() and not pinned.clone().is_pinned()
made = [make(3, pin_memory=True) for make in (genesis.empty, genesis.zeros, genesis.ones)]
made += [genesis.full((3,), 7, pin_memory=True)]
assert all(one.is_pinned() for one in made) and [one[0].item() for one in made[1:]] == [0, 1, 7]
del made
try:
    genesis.zeros(2, device="cuda", pin_memory=True)
    raise SystemExit("a GPU's memory cannot be page-locked")
except ValueError as error:
    assert "tensors of the CPU, not of cuda:0" in str(error)
assert pinned.device == "cpu" and pinned.tolist() == (x + 1).tolist()
import numpy
assert not genesis.from_numpy(numpy.ones(3)).is_pinned()
manager = genesis._C.MemoryManager(None, pinned=True)
assert manager.statistics()["requested_bytes"] == 4000
genesis.cpu.enable_pinned_memory(True)
assert genesis.ones(10).is_pinned() and (x * 2).is_pinned() and genesis.tensor([1]).is_pinned()
child = os.fork()
if child == 0:  # it has no CUDA, and computes all the same
    is_fine = (genesis.ones(10) * 3).sum().item() == 30 and not genesis.ones(1).is_pinned()
    os._exit(not is_fine)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
genesis.cpu.enable_pinned_memory(False)
assert not genesis.ones(10).is_pinned()
stream = cuda.Stream()
pinned.record_stream(stream)
del pinned
stream.synchronize()
genesis.empty_cache()
assert manager.statistics()["requested_bytes"] == 0
""")


def test_record_stream():
    x = genesis.ones(1000)
    y = x + 1
    stream = genesis._C.Stream("cpu")
    y.record_stream(stream)
    genesis.from_numpy(numpy.ones(3)).record_stream(stream)
    assert y.sum().item() == 2000
    with pytest.raises(TypeError):
        y.record_stream(3)
