"""Kernels of users: the letters of their parameters, launches on the simulated GPU, the caches."""

import pytest
from conftest import BUILD, PLACES, memory_runner
from hypothesis import given
from hypothesis import strategies as st

from genesis._kernel import Kernel, declaration_of, parameter_letters

PRELUDE = """
import numpy as np
def on_device(array):
    address = mm.allocate_memory(max(array.nbytes, 1))
    copy_to(address, array)
    return address
SCALE = "__global__ void scale(float *x, float f, int n) {" \\
        "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= f; }"
STORE = "__global__ void store(TYPE *x, TYPE value) { *x = value; }"
"""
# What there is to copy with: the C interface of the library that is loaded.
COPY = """
library = ctypes.CDLL(os.environ["LIBRARY"])
device, stream = ctypes.c_void_p(), ctypes.c_void_p()
assert library.gn_device_get(1, 0, ctypes.byref(device)) == 0
assert library.gn_stream_get_default(device, ctypes.byref(stream)) == 0
def copy(to, source, nbytes):
    sizes = ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(nbytes)
    assert library.gn_copy(*sizes, stream) == 0 and library.gn_stream_synchronize(stream) == 0
def copy_to(address, array):
    copy(address, array.ctypes.data, array.nbytes)
def copy_from(array, address):
    copy(array.ctypes.data, address, array.nbytes)
    return array
"""


@pytest.fixture
def gpu(fresh):
    """Run code with kernels in a fresh interpreter on the simulated GPU."""
    run = memory_runner(fresh, "sim")
    library = str(BUILD / "libgenesis.so")
    return lambda code, **environment: run(COPY + PRELUDE + code, LIBRARY=library, **environment)


# ---- the letters of parameters ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "letters"),
    [
        ("", ""),
        ("void", ""),
        ("int", "i"),
        ("int n", "i"),
        ("const int n, unsigned m", "iI"),
        ("unsigned int, unsigned char c, signed char d, char e", "IBbb"),
        ("short s, unsigned short t, short int u", "hHh"),
        ("long a, unsigned long b, long long c, unsigned long long d, long int e", "qQqQq"),
        ("int long unsigned long f", "Q"),
        ("float x, double y, bool z", "fd?"),
        ("size_t n, std::size_t m, ptrdiff_t k", "QQq"),
        ("int8_t a, uint8_t b, int16_t c, std::uint16_t d, int32_t e, uint32_t f", "bBhHiI"),
        ("int64_t g, uint64_t h", "qQ"),
        ("const float *x, float * __restrict__ y, void *z, int *const w", "PPPP"),
        ("float x[], float const* const* y", "PP"),
        ("__half h, float4 v, struct point p", "xxx"),
        ("/* int */ float x, // double\n int n", "fi"),
        ("const __grid_constant__ point p, volatile int n = 3", "xi"),
        ("pair<int, float> p, int (*f)(int, int)", "xP"),
    ],
)
def test_letters(parameters, letters):
    source = f'extern "C" __global__ __launch_bounds__(256) void k({parameters})\n{{ }}'
    assert parameter_letters(source, "k") == letters


TYPES = {
    "float": "f",
    "const double": "d",
    "bool": "?",
    "unsigned": "I",
    "long long unsigned int": "Q",
    "signed char": "b",
    "size_t": "Q",
    "std::int16_t": "h",
    "float *": "P",
    "const int *__restrict__": "P",
    "point<int, float>": "x",
    "__half": "x",
}


@given(
    st.lists(st.sampled_from(sorted(TYPES)), max_size=8),
    st.sampled_from(["", " ", "\n", "/* , int x */ "]),
    st.booleans(),
)
def test_any_list_of_letters(types, space, is_named):
    parameters = [f"{space}{one}{f' x{i}' if is_named else ''}" for i, one in enumerate(types)]
    source = f"__global__ void other(int n);\n__global__ void k({', '.join(parameters)}) {{}}"
    assert parameter_letters(source, "k") == "".join(TYPES[one] for one in types)


def test_letters_of_templates_and_others():
    source = """
__device__ float scale(float x, double y) { return x; }
__global__ void rescale(double x);
namespace many { template <typename T, int N = 3, class U = int>
__global__ void scale(T *x, T factor, U n) {} }
"""
    assert parameter_letters(source, "many::scale<float, 4, unsigned long>") == "PfQ"
    assert parameter_letters(source, "many::scale<float>") == "Pfx"
    assert parameter_letters(source, "rescale") == "d"
    assert parameter_letters(source, "nothing") is None
    assert parameter_letters("__global__ void broken(int n", "broken") is None


@pytest.mark.parametrize(
    ("parameters", "pointees"),
    [
        ("", ""),
        ("int n, float x, size_t m", "   "),
        ("float *x, const double *y, float const *z, bool *b", "fdf?"),
        ("const float *__restrict__ x, float * __restrict y, volatile int *const w", "ffi"),
        ("float *, int *, unsigned long long *", "fiQ"),
        ("unsigned char *a, signed char *b, char *c, uint8_t *d, std::int16_t *e", "BbbBh"),
        ("long *a, unsigned long long int *b, size_t *c, unsigned *d", "qQQI"),
        ("float x[], const int y[4], float z[2][3]", "fi "),
        ("half *a, const __half *b, __nv_bfloat16 *c", "eeE"),
        ("void *a, float4 *b, point *c, pair<int, float> *d, T *e", "     "),
        ("float **a, int (*f)(int, int), float *&r, float (*g)[3]", "    "),
        ("/* double */ float *x, // int\n int *n = nullptr", "fi"),
        ("real *x, word *y, half_word *z", "   "),
    ],
)
def test_what_pointers_point_to(parameters, pointees):
    source = f"#define real float\nusing word = int;\n__global__ void k({parameters}) {{ }}"
    assert declaration_of(source, "k").pointees == pointees


def test_pointees_that_are_not_certain():
    """A name that the source gives to something else, and branches that say different things."""
    for source in (
        "typedef double size_t;\n__global__ void k(size_t *x) {}",
        "struct half { float x; };\n__global__ void k(half *x) {}",
        "#define uint8_t float\n__global__ void k(uint8_t *x) {}",
        "#if A\n__global__ void k(float *x) {}\n#else\n__global__ void k(double *x) {}\n#endif",
    ):
        assert declaration_of(source, "k").pointees == " "
    twice = "__global__ void k(float *x);\n__global__ void k(float *y) {}"
    assert declaration_of(twice, "k").pointees == "f"
    template = "template <typename T, class U> __global__ void k(T *x, const U *y, T z) {}"
    assert declaration_of(template, "k<float, unsigned long>").pointees == "fQ "
    assert declaration_of(template, "k<const double, point>").pointees == "d  "
    assert declaration_of(template, "k").pointees == "   "
    assert declaration_of(template, "other") is None


def test_making_a_kernel(fresh):
    with pytest.raises(TypeError, match="sequence of str"):
        Kernel("", "k", options="-DX")
    with pytest.raises(TypeError, match="int128"):
        Kernel("", "k", argtypes=["int128"])
    with pytest.raises(TypeError):
        Kernel(b"", "k")
    with pytest.raises(ValueError, match="32 options"):
        Kernel("", "k", options=["-DX"] * 33)
    with pytest.raises(ValueError):
        Kernel("a\0b", "k")
    kernel = Kernel("__global__ void k() {}", "k")
    assert kernel.name == "k" and "__global__" in kernel.source and "k" in repr(kernel)
    fresh(
        "import genesis\n"
        "k = genesis.cuda.Kernel('__global__ void k() {}', 'k')\n"
        "try: k(1, 1, ())\n"
        "except RuntimeError as error: assert 'driver' in str(error)\n"
        "else: raise AssertionError\n",
        **PLACES["cpu"],
    )


# ---- launches -----------------------------------------------------------------------------------


def test_launching(gpu):
    gpu("""
scale = cuda.Kernel(SCALE, "scale")
for n in (1, 31, 33, 1009):
    x = np.arange(n, dtype=np.float32)
    address = on_device(x)
    scale((n + 127) // 128, 128, (address, 2.5, n))
    assert (copy_from(np.empty_like(x), address) == x * np.float32(2.5)).all()
    mm.free_memory(address)
class Tensor:
    def __init__(self, address): self.address = address
    def data_ptr(self): return self.address
class Array:
    def __init__(self, address): self.__cuda_array_interface__ = {"data": (address, False)}
x = np.ones(1000, dtype=np.float32)
address = on_device(x)
side = cuda.Stream()
side.wait_stream(cuda.current_stream())
scale((8, 1), block=(128, 1, 1), args=[Tensor(address), 3, np.int64(1000)], shared=1024,
      stream=side)
side.synchronize()
with cuda.stream(side):
    scale(8, 128, (Array(address), np.float64(0.5), np.uint8(200)))
side.synchronize()
got = copy_from(np.empty_like(x), address)
assert (got[:200] == 1.5).all() and (got[200:] == 3).all()
properties = scale.properties()
assert properties["max_threads_per_block"] >= 128 and properties["static_shared_bytes"] == 0
assert properties["parameters"] == 3
""")


def test_two_devices(gpu):
    gpu(
        """
scale = cuda.Kernel(SCALE, "scale")
for index in (0, 1):
    with cuda.device(index):
        x = genesis.memory_manager.allocate_memory(400)
        scale(1, 32, (x, 2.0, 0))
        scale(1, 32, (x, 2.0, 0), stream=cuda.Stream(device=1 - index))
        cuda.synchronize(0), cuda.synchronize(1)
        genesis.memory_manager.free_memory(x)
scale.compile("cuda:1")
""",
        SIM_GPU_DEVICES="2",
    )


def test_every_type_of_argument(gpu):
    gpu("""
values = {"bool": [True, False], "signed char": [-128, 127], "unsigned char": [0, 255],
          "short": [-2**15, 2**15 - 1], "unsigned short": [0, 2**16 - 1],
          "int": [-2**31, 2**31 - 1], "unsigned": [0, 2**32 - 1], "long long": [-2**63, 2**63 - 1],
          "size_t": [0, 2**64 - 1], "float": [0.1, np.inf, np.nan], "double": [0.1, -1e300]}
kinds = {"bool": "?", "signed char": "b", "unsigned char": "B", "short": "h", "unsigned short": "H",
         "int": "i", "unsigned": "I", "long long": "q", "size_t": "Q", "float": "f", "double": "d"}
source = "".join(STORE.replace("TYPE", kind).replace("store", f"store{i}")
                 for i, kind in enumerate(values))
address = mm.allocate_memory(8)
np.seterr(over="ignore")
for i, (kind, numbers) in enumerate(values.items()):
    store = cuda.Kernel(source, f"store{i}")
    for number in numbers:
        store(1, 1, (address, number))
        got = copy_from(np.empty(1, kinds[kind]), address)
        expected = np.array([number]).astype(kinds[kind])
        assert got.tobytes() == expected.tobytes(), (kind, number, got)
    if kind == "float":
        for wrong in (1e300, -1e39, 2**24 + 1, 2**200):
            raises(ValueError, "'float value': ", store, 1, 1, (address, wrong))
        store(1, 1, (address, 2**24 + 2))
        cuda.Kernel(source, f"store{i}", strict=False)(1, 1, (address, 1e300))
        assert np.isinf(copy_from(np.empty(1, "f"), address)[0])
    if kinds[kind] in "bBhHiIqQ":
        for wrong in (min(numbers) - 1, max(numbers) + 1):
            raises(ValueError, f"argument 1 of kernel store{i}", store, 1, 1, (address, wrong))
        raises(TypeError, "float", store, 1, 1, (address, 1.5))
    raises(TypeError, f"argument 1 of kernel store{i}", store, 1, 1, (address, "1")) \\
        if kind != "bool" else None
""")


def test_bytes_and_given_types(gpu):
    gpu("""
pair = cuda.Kernel("struct two { int a; float b; };"
                   "__global__ void pair(two p, float *x) { x[0] = p.a; x[1] = p.b; }", "pair")
address = mm.allocate_memory(8)
pair(1, 1, (np.array((3, 0.25), dtype="i4,f4"), address))
assert (copy_from(np.empty(2, "f"), address) == [3, 0.25]).all()
raises(TypeError, "argument 0 of kernel pair", pair, 1, 1, (3, address))
class Two(Exception):
    def __init__(self, one, other):
        super().__init__(one, other)
class Odd:
    def __index__(self):
        raise Two(1, 2)  # which cannot be made of a text
    __float__ = __index__
store = cuda.Kernel(STORE.replace("TYPE", "int"), "store")
raises(Two, "(1, 2)", store, 1, 1, (address, Odd()))
text = STORE.replace("TYPE", "T").replace("__global__", "template <class T> __global__")
hidden = cuda.Kernel(text, "store<float>", argtypes=["pointer", genesis.float32])
hidden(1, 1, (address, 7))
assert copy_from(np.empty(1, "f"), address)[0] == 7
hidden = cuda.Kernel(text, "store<float>", argtypes=["pointer", "float64"])
raises(TypeError, "parameter 1 of kernel store<float> has 4 bytes", hidden, 1, 1, (address, 7))
hidden = cuda.Kernel(text, "store<float>", argtypes=["pointer"])
raises(TypeError, "has 2 parameters, and argtypes has 1", hidden, 1, 1, (address,))
hidden = cuda.Kernel(text, "store<float>", argtypes=["pointer", "bytes"])
raises(TypeError, "the parameter has 4 bytes", hidden, 1, 1, (address, np.float64(7)))
# A list of parameters that comes from a macro is not known.
macro = cuda.Kernel("#define LIST (float *x, float y)\\n__global__ void m LIST { *x = y; }", "m")
raises(TypeError, "argtypes", macro, 1, 1, (np.uint64(address), 1.5))
raises(TypeError, "takes 2 arguments, not 1", macro, 1, 1, (np.uint64(address),))
raises(TypeError, "the parameter has 8 bytes", macro, 1, 1, (np.uint32(1), np.float32(1)))
macro(1, 1, (np.uint64(address), np.float32(1.5)))
assert copy_from(np.empty(1, "f"), address)[0] == 1.5
""")


def test_tensors_are_what_the_source_declares(gpu):
    """Another type, a strided view and another device are refused, unless strict is False."""
    gpu(
        """
scale = cuda.Kernel(SCALE, "scale")
loose = cuda.Kernel(SCALE, "scale", strict=False)
given = cuda.Kernel(SCALE, "scale", argtypes=["pointer", "float32", "int32"])
x = genesis.ones(6, device="cuda")
scale(1, 32, (x, 2, 6))
scale(1, 32, (x[2:], 3, 4))
assert x.tolist() == [2, 2, 6, 6, 6, 6]
before = x.tolist()
grid = genesis.ones(4, 6, device="cuda")
for wrong in (x.double(), x.half(), x.int(), x > 0):
    raises(TypeError, "argument 0 of kernel scale, 'float *x': the elements are", scale, 1, 32,
           (wrong, 2.0, 6))
    loose(1, 1, (wrong, 2.0, 0))
    given(1, 1, (wrong, 2.0, 0))
for wrong in (x[::2], grid.T, grid[:, 1:], x[:1].expand(6)):
    for kernel in (scale, given):
        raises(ValueError, "argument 0 of kernel scale", kernel, 1, 32, (wrong, 2.0, 6))
        raises(ValueError, "not contiguous", kernel, 1, 32, (wrong, 2.0, 6))
    loose(1, 1, (wrong, 2.0, 0))
    scale(1, 1, (wrong.data_ptr(), 2.0, 0))
    scale(1, 1, (wrong.contiguous(), 2.0, 0))
for fine in (x[:0], x[3], grid[:, :0], grid[2]):
    scale(1, 1, (fine, 2.0, 0))
far = genesis.ones(6, device="cuda:1")
raises(ValueError, "on cuda:1, and the kernel runs on cuda:0", scale, 1, 32, (far, 2.0, 6))
raises(ValueError, "on the CPU", scale, 1, 32, (x.cpu(), 2.0, 6))
raises(TypeError, "'float *x'", scale, 1, 32, (x.double().cpu(), 2.0, 6))
assert x.tolist() == before

# Integers of one size go with each other, signed or not; single bytes with bool.
types = {"signed char": "int8 uint8 bool", "unsigned char": "int8 uint8 bool", "bool": "bool",
         "unsigned short": "int16 uint16", "int": "int32 uint32",
         "unsigned long long": "int64 uint64",
         "double": "float64", "void": "float32 int64", "point": "float32 int64"}
source = "struct point { int x; };" + "".join(
    f"__global__ void k{i}({kind} *x) {{}}" for i, kind in enumerate(types))
every = "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64"
every = every.split()
for i, (kind, names) in enumerate(types.items()):
    kernel = cuda.Kernel(source, f"k{i}")
    for name in every:
        one = genesis.ones(3, device="cuda").to(getattr(genesis, name))
        if name in names.split() or kind in ("void", "point"):
            kernel(1, 1, (one,))
        else:
            raises(TypeError, f"the elements are {name}", kernel, 1, 1, (one,))

# Arrays of others say what they are by their interface.
class Array:
    def __init__(self, typestr, shape, strides=None):
        self.__cuda_array_interface__ = {"data": (x.data_ptr(), False), "typestr": typestr,
                                         "shape": shape, "strides": strides, "version": 3}
for fine in (("<f4", (6,)), ("<f4", (2, 3), (12, 4)), ("<f4", (1, 6), (4, 4)), ("<c8", (3,)),
             ("<f4", (0, 3), (4, 4))):
    scale(1, 1, (Array(*fine), 2.0, 0))
raises(TypeError, "are float64", scale, 1, 1, (Array("<f8", (3,)), 2.0, 0))
raises(ValueError, "not contiguous", scale, 1, 1, (Array("<f4", (3,), (8,)), 2.0, 0))
loose(1, 1, (Array("<f4", (3,), (8,)), 2.0, 0))
cuda.synchronize()
""",
        SIM_GPU_DEVICES="2",
    )


def test_wrong_launches(gpu):
    gpu("""
scale = cuda.Kernel(SCALE, "scale")
x = mm.allocate_memory(400)
raises(TypeError, "takes 3 arguments, not 2", scale, 1, 1, (x, 1.0))
raises(ValueError, "grid", scale, 0, 1, (x, 1.0, 1))
raises(ValueError, "grid", scale, (1, 1, 1, 1), 1, (x, 1.0, 1))
raises(ValueError, "grid", scale, 2**32, 1, (x, 1.0, 1))
raises(ValueError, "block", scale, 1, -1, (x, 1.0, 1))
raises(ValueError, "2000 x 1 x 1 threads", scale, 1, 2000, (x, 1.0, 1))
raises(ValueError, "shared", scale, 1, 1, (x, 1.0, 1), shared=-1)
raises(ValueError, "cuda:0", scale, 1, 1, (x, 1.0, 1), shared=1 << 30)
raises(TypeError, "a pointer is", scale, 1, 1, (1.5, 1.0, 1))
raises(ValueError, "on the CPU", scale, 1, 1, (genesis.zeros(3), 1.0, 1))
raises(TypeError, "stream", scale, 1, 1, (x, 1.0, 1), stream=5)
raises(RuntimeError, "cpu", scale, 1, 1, (x, 1.0, 1), stream=cuda.Stream(device="cpu"))
wrong = cuda.Kernel("__global__ void wrong() { y = 1; }", "wrong")
raises(RuntimeError, "kernel wrong", wrong, 1, 1, ())
raises(RuntimeError, "missing", cuda.Kernel(SCALE, "missing"), 1, 1, ())
raises(ValueError, "--nonsense", cuda.Kernel(SCALE, "scale", options=["--nonsense"]).compile)
scale(1, 1, (None, 1.0, 0))   # nothing is touched
cuda.synchronize()
""")


def test_a_kernel_that_fails_is_reported_by_its_launch(fresh):
    code = """
import genesis
store = genesis.cuda.Kernel("__global__ void store(int *x) { *x = 1; }", "store")
try:
    store(1, 1, (16,))
except genesis.DeviceLostError as error:
    assert "cuda:0" in str(error)
else:
    raise AssertionError("nothing was reported")
"""
    fresh(code, **PLACES["sim"], GENESIS_DEBUG="sync", SIM_GPU_FINDINGS="silent")


@pytest.mark.gpu
def test_on_tensors_of_torch():
    """Torch's current stream and ours are the same: the device's default stream."""
    torch = pytest.importorskip("torch")
    scale = Kernel(
        "__global__ void scale(float *x, float f, int n)"
        "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= f; }",
        "scale",
    )
    x = torch.arange(1000, dtype=torch.float32, device="cuda")
    scale(8, 128, (x, 0.5, 1000))
    assert torch.equal(x.cpu(), torch.arange(1000) * 0.5)
    with pytest.raises(ValueError, match="on the CPU"):
        scale(8, 128, (torch.ones(1000), 0.5, 1000))


# ---- caches -------------------------------------------------------------------------------------


def test_the_cache_on_disk(gpu, tmp_path):
    directory = tmp_path / "deep" / "cache"
    code = """
scale = cuda.Kernel(SCALE, "scale", options=["-DX=1"])
scale.compile()
scale.compile(0)
"""
    environment = {"GENESIS_KERNEL_CACHE_DIR": str(directory), "SIM_GPU_CACHE_DIR": ""}
    gpu(code, **environment)
    (entry,) = directory.iterdir()
    assert directory.stat().st_mode & 0o777 == 0o700 and entry.stat().st_mode & 0o777 == 0o600
    # The next process compiles nothing: the simulator's compiler is not even there.
    gpu(code, **environment, SIM_GPU_CXX="/no/such/compiler")
    gpu(code + "assert cuda.clear_kernel_cache() == 1", **environment)
    assert not list(directory.iterdir())


def test_warming_up(gpu, tmp_path):
    gpu(
        """
kernels = [cuda.Kernel(SCALE.replace("scale", f"scale{i}"), f"scale{i}") for i in range(3)]
cuda.warm_up_kernels()
cuda.warm_up_kernels(kernels)
cuda.warm_up_kernels(iter(kernels), device="cuda:0")
wrong = cuda.Kernel("__global__ void wrong() { y = 1; }", "wrong")
raises(RuntimeError, "kernel wrong", cuda.warm_up_kernels, [*kernels, wrong])
raises(RuntimeError, "cpu", cuda.warm_up_kernels, kernels, device="cpu")
"""
    )


def test_a_forked_child_is_told(gpu):
    gpu("""
scale = cuda.Kernel(SCALE, "scale")
scale.compile()
if os.fork() == 0:
    raises(RuntimeError, "fork", scale, 1, 1, (0, 1.0, 0))
    raises(RuntimeError, "fork", cuda.Kernel(SCALE, "scale", options=["-DY"]).compile)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
""")
