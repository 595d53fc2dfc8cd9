"""Names and arguments as users of PyTorch and NumPy know them, beside NumPy's results."""

import numpy
import pytest
from conftest import BUILD

import genesis

NUMBERS = numpy.random.default_rng(7)
X, Y = (NUMBERS.normal(size=(3, 4)).round(2) * 3 for _ in range(2))
K, J = (NUMBERS.integers(-5, 6, (3, 4)) for _ in range(2))
C, V, B = NUMBERS.normal(size=(2, 3, 4)), NUMBERS.normal(size=4), X > 0
N = numpy.array([[1.0, numpy.nan, 3.0], [-numpy.inf, numpy.inf, 0.0]])
NAMES = {"x": X, "y": Y, "k": K, "j": J, "c": C, "v": V, "b": B, "n": N}

# What is ours, and what NumPy says to it: `g` is genesis, lower case are tensors, capitals arrays.
# Those with an @, which make tensors of their own or odd views, run on the simulated GPU, too.
PAIRS = """
g.add(x, y, alpha=2) | X + 2 * Y
x.sub(y, alpha=0.5) | X - 0.5 * Y
k.clone().add_(j, alpha=3) | K + 3 * J
g.div(k, 3, rounding_mode='floor') | K // 3
g.div(k, 3, rounding_mode='trunc') | numpy.trunc(K / 3).astype(int)
g.div(3, x + 20, rounding_mode='trunc') | numpy.trunc(3 / (X + 20))
x.clone().div_(2, rounding_mode='floor') | X // 2
x.round(decimals=1) | X.round(1)
(x * 100).round(decimals=-1) | (X * 100).round(-1)
g.pow(x, exponent=2) | X ** 2
g.where(condition=b, input=x, other=y) | numpy.where(B, X, Y)
g.maximum(input=x, other=y) | numpy.maximum(X, Y)
x.clone().mul_(other=y) | X * Y
g.matmul(input=x, other=v) | X @ V
x.clamp_min(0.5).clamp_max(1) | X.clip(0.5, 1)
x.fmod(1.5) | numpy.fmod(X, 1.5)
k.fmod(3), (x * 9).fmod(y * 1e20), g.fmod(7.5, x + 20) |
    (numpy.fmod(K, 3), numpy.fmod(X * 9, Y * 1e20), numpy.fmod(7.5, X + 20))
g.fmax(n, 2.0), g.fmin(n, 2.0) | (numpy.fmax(N, 2), numpy.fmin(N, 2))
g.nan_to_num(n, nan=7, posinf=8, neginf=-8) | numpy.nan_to_num(N, nan=7, posinf=8, neginf=-8)
@ x.clone().atan2_(y), g.arctan2(k, 2) | (numpy.arctan2(X, Y), numpy.arctan2(K, 2).astype('f4'))
x.sinh(), x.cosh(), x.exp2() | (numpy.sinh(X), numpy.cosh(X), numpy.exp2(X))
g.cosh(b), (k + 5).byte().cosh() | (numpy.cosh(B, dtype='f4'), numpy.cosh(K + 5).astype('f4'))
g.tensor([89.0]).cosh() / 1e38, g.tensor([-89.0]).sinh() / 1e38 |
    (numpy.cosh([89.0]).astype('f4') / 1e38, numpy.sinh([-89.0]).astype('f4') / 1e38)
n.hypot(n.flip(1)), n.flip(0).hypot(n) | (numpy.hypot(N, N[:, ::-1]), numpy.hypot(N[::-1], N))
x.hypot(y), x.logaddexp(y) | (numpy.hypot(X, Y), numpy.logaddexp(X, Y))
x.lerp(y, 0.25), x.frac() | (X + 0.25 * (Y - X), X - numpy.trunc(X))
g.addcmul(x, y, x, value=3) | X + 3 * Y * X
x.clone().addcdiv_(y, x + 20, value=2) | X + 2 * Y / (X + 20)
g.addcdiv(v, v.half(), v, value=1 / 3), g.addcmul(v.half(), v.half(), v.half(), value=-1).dtype |
    (V + V.astype('f2').astype('f8') / 3 / V, genesis.float16)
g.deg2rad(x), x.rad2deg(), k.deg2rad() |
    (numpy.deg2rad(X), numpy.rad2deg(X), numpy.deg2rad(K).astype('f4'))
g.copysign(x, y - 1), g.copysign(n, -0.0) | (numpy.copysign(X, Y - 1), numpy.copysign(N, -0.0))
g.copysign(v[0].half(), -2.0).dtype, g.copysign(k, -2.0).dtype |
    (genesis.float16, genesis.float32)
g.copysign(g.tensor([-128], dtype=g.int8), 1), g.hypot(g.tensor([-128], dtype=g.int8), k[:1]) |
    (numpy.array([128], 'f4'), numpy.hypot(-128, K[:1]).astype('f4'))
g.copysign(k, x) | numpy.copysign(K, X)
g.signbit(x * 0 * (x - 1)), g.signbit(-n), k.signbit() |
    (numpy.signbit(X * 0 * (X - 1)), numpy.signbit(-N), numpy.signbit(K))
g.logspace(-1, 2, 7), g.logspace(0, 4, 5, base=2, dtype=g.int64) |
    (numpy.logspace(-1, 2, 7, dtype='f4'), numpy.logspace(0, 4, 5, base=2, dtype=int))
k.clone().fill_diagonal_(7), k.clone().T.fill_diagonal_(7).T | (diagonal(K), diagonal(K))
g.aminmax(k).min, k.aminmax(dim=1).max | (K.min(), K.max(1))
g.isclose(k, j, atol=1), g.allclose(k, k + 1, atol=1), g.isclose(k.byte(), k.byte() + 1, 0.01) |
    (numpy.isclose(K, J, atol=1), True, numpy.isclose(K.astype('u1'), K.astype('u1') + 1, 0.01))
g.isposinf(n), g.isneginf(n) | (numpy.isposinf(N), numpy.isneginf(N))
x.sum(axis=1, keepdims=True) | X.sum(axis=1, keepdims=True)
k.sum(dim=0, dtype=g.float64) | K.sum(0).astype(float)
k.prod(dtype=g.int32) | K.prod().astype(numpy.int32)
k.mean(1, dtype=g.float64) | K.mean(1)
g.sum(x, 1, out=g.empty(3, dtype=g.float64)) | X.sum(1)
k.cumsum(axis=1, dtype=g.float64) | K.cumsum(1).astype(float)
x.argmax(keepdim=True) | X.argmax(keepdims=True)
g.argmin(x, axis=0, keepdims=True) | X.argmin(0, keepdims=True)
g.max(x, axis=1).values, g.sort(x, axis=0)[0] | (X.max(1), numpy.sort(X, 0))
x.clone().cumsum_(1, dtype=g.float64), x.var(correction=None) | (X.cumsum(1), X.var(ddof=1))
x.var(unbiased=False), x.std(0, unbiased=True) | (X.var(), X.std(0, ddof=1))
x.var(False), x.var(dim=()), x[0, 0].var(0, 0) | (X.var(), X.var(ddof=1), numpy.array(0.0))
(k + 5).byte().logsumexp(1) | logsumexp((K + 5).astype('f4'), 1)
g.median(x, 1).values, k.median() | (numpy.sort(X, 1)[:, 1], numpy.sort(K, None)[5])
@ k.kthvalue(2, 1).values, (k % 3).mode(1).values | (numpy.sort(K, 1)[:, 1], majority(K % 3))
@ n.median(0).indices | numpy.array([1, 0, 1])
@ x.quantile(0.3), x.quantile([0.2, 0.9], axis=1) |
    (numpy.quantile(X, 0.3), numpy.quantile(X, [0.2, 0.9], 1))
x.quantile(0.3, 1, interpolation='nearest'), x.quantile(0.3, interpolation='midpoint') |
    (numpy.quantile(X, 0.3, 1, method='nearest'), numpy.quantile(X, 0.3, method='midpoint'))
[x.quantile(0.3, 0, interpolation=one) for one in ('lower', 'higher')] |
    [numpy.quantile(X, 0.3, 0, method=one) for one in ('lower', 'higher')]
x[0, 0].quantile(0.5, 0, True) | X[0, 0]
n.nansum(1), n[:1].nanmean() | (numpy.nansum(N, 1), numpy.nanmean(N[:1]))
k.count_nonzero(0), k.aminmax() | (numpy.count_nonzero(K, 0), (K.min(), K.max()))
g.std_mean(x, 0), g.var_mean(x) | ((X.std(0, ddof=1), X.mean(0)), (X.var(ddof=1), X.mean()))
x.diff(), x.diff(2, 0), b.diff() | (numpy.diff(X), numpy.diff(X, 2, 0), numpy.diff(B))
x.diff(2, 0, v[None], y[:2]), k.diff(append=k[:, :1]) |
    (numpy.diff(X, 2, 0, V[None], Y[:2]), numpy.diff(K, append=K[:, :1]))
c.diagonal(-1, 0, 2), x.diagonal(3) | (C.diagonal(-1, 0, 2), X.diagonal(3))
@ g.diag(v, -1), g.diag(x, 1), x.trace() | (numpy.diag(V, -1), numpy.diag(X, 1), X.trace())
g.addmm(v, x.T, x, beta=2, alpha=0.5) | 2 * V + 0.5 * (X.T @ X)
g.baddbmm(c, c, c.mT @ c), g.addmv(v[:3], x, v) | (C + C @ (C.swapaxes(1, 2) @ C), V[:3] + X @ V)
g.inner(x, y), g.outer(v, vec2=v) | (numpy.inner(X, Y), numpy.outer(V, V))
g.einsum('ij,kj->ik', x, y) | X @ Y.T
g.einsum('bij, bkj', c, c) | numpy.einsum('bij,bkj', C, C)
g.einsum('...i,i,...j->j...', c, v, c) | numpy.einsum('...i,i,...j->j...', C, V, C)
g.einsum('ii->i', x[:, :3]) | numpy.einsum('ii->i', X[:, :3])
g.einsum('ij->', x), g.einsum('ij,k->ik', k.int(), k[0].int()) |
    (X.sum(), numpy.outer(K.sum(1), K[0]))
g.tensordot(x, y[:1], ([0, 1], [0, 1])), g.tensordot(k.int(), k[:, :1].int(), ([1], [1])) |
    ((X.sum(0) * Y[0]).sum(), numpy.outer(K.sum(1), K[:, 0]).astype('i4'))
@ c.unfold(2, 2, 2), v.unfold(0, 3, 1) | (C.reshape(2, 3, 2, 2), sliding(V, 3))
@ x.as_strided((2, 2), (1, 4), 1) | X[:2, 1:3].T
@ x.view(g.int64), x.view(dtype=g.uint8) | (X.view('i8'), X.view('u1'))
x.float().view(g.float64).view(g.float32) | X.astype('f4')
c.movedim((0, 1), (2, 0)), c.swapaxes(0, 2) | (numpy.moveaxis(C, (0, 1), (2, 0)), C.swapaxes(0, 2))
c.swapdims(dim0=0, dim1=2), g.isin(k, k[0], assume_unique=True) |
    (C.swapaxes(0, 2), numpy.isin(K, K[0]))
is_seeded(g.rand_like, x), is_seeded(g.randn_like, x), is_seeded(g.randint_like, k, 1 << 40) |
    (True, True, True)
c.unbind(1), x.select(1, -1), x.narrow(1, 1, 2) | ((C[:, 0], C[:, 1], C[:, 2]), X[:, -1], X[:, 1:3])
x.tensor_split(3, dim=1), v.tensor_split((1,)) | (numpy.array_split(X, 3, 1), numpy.split(V, [1]))
v.tensor_split(g.tensor([1, 3])), v.tensor_split(g.tensor(2)) |
    (numpy.split(V, [1, 3]), numpy.array_split(V, 2))
c.unflatten(2, (2, -1)), x.ravel(), x.t() | (C.reshape(2, 3, 2, 2), X.ravel(), X.T)
v.expand_as(x), x.view_as(x.T), v.view(size=4) | (numpy.broadcast_to(V, (3, 4)), X.reshape(4, 3), V)
g.permute(c, dims=(2, 0, 1)), c.size(dim=1) | (C.transpose(2, 0, 1), 3)
g.meshgrid(v, v[:2], indexing='xy') | numpy.meshgrid(V, V[:2])
g.atleast_3d(v).shape, g.atleast_1d(x[0, 0]) | ((1, 4, 1), X[:1, 0])
g.hstack((v, v)), g.vstack((v, x)) | (numpy.hstack((V, V)), numpy.vstack((V, X)))
g.dstack((x, y)), g.column_stack((v, x.T)) | (numpy.dstack((X, Y)), numpy.column_stack((V, X.T)))
g.cat([x, g.empty(0)]), g.stack((x, y), axis=2) | (X, numpy.stack((X, Y), 2))
x.flip(dims=(0,)), x.rot90(), x.rot90(3, (1, 0)) |
    (X[::-1], numpy.rot90(X), numpy.rot90(X, 3, (1, 0)))
v.repeat_interleave(2), g.tile(v, dims=(2, 1)) | (V.repeat(2), numpy.tile(V, (2, 1)))
@ x.repeat_interleave(g.tensor([2, 0, 1]), 0) | X.repeat([2, 0, 1], 0)
@ g.isin(k, [1, 2, 9]), g.isin(k, 2, invert=True) | (numpy.isin(K, [1, 2, 9]), K != 2)
g.bucketize(x, g.tensor([-1.0, 0, 2])) | numpy.searchsorted([-1, 0, 2], X)
g.full((2,), -1.201).half().histc(100, -10, 10).nonzero() | numpy.array([[43]])
@ x.histc(5, -2, 2) | numpy.histogram(X[(X >= -2) & (X <= 2)], 5, (-2, 2))[0] * 1.0
@ g.unique(k % 2, dim=0, return_counts=True) | numpy.unique(K % 2, axis=0, return_counts=True)
g.unique((k > 0), dim=1, return_inverse=True) | numpy.unique(K > 0, axis=1, return_inverse=True)
g.tensor([1, 1, 3, 1]).unique_consecutive() | numpy.array([1, 3, 1])
g.cat((k, k[2:])).unique_consecutive(True, True, dim=0) |
    (K, numpy.array([0, 1, 2, 2]), numpy.array([1, 1, 2]))
k.repeat_interleave(2, 1).unique_consecutive(dim=1).shape, g.unique(k[:0], dim=0) | ((3, 4), K[:0])
@ x.clone().put_(g.tensor([0, -1]), g.ones(2)) | put(X, [0, -1], 1)
x.T.clone().T.put_(g.tensor([3]), 5.0) | put(X, [3], 5)
@ x.masked_scatter(b, y) | put(X, numpy.flatnonzero(B), Y.ravel())
v.masked_scatter(b, y) | put(numpy.tile(V, (3, 1)), numpy.flatnonzero(B), Y.ravel())
b.clone().masked_fill_(~b, 7), x.clone().fill_(value=2) | (numpy.ones_like(B), X * 0 + 2)
x.clone().copy_(y, non_blocking=True), x.clone().copy_(src=v) | (Y, numpy.tile(V, (3, 1)))
x[0, 0].gather(0, g.tensor([0, 0])) | X[[0, 0], 0]
x.scatter(1, g.tensor([[0, 0]]), y, reduce='multiply') | put(X, [0], X[0, 0] * Y[0, 0] * Y[0, 1])
x.scatter(1, g.tensor([[0, 0]]), value=3, reduce='multiply') | put(X, [0], X[0, 0] * 9)
x.index_add(0, g.tensor([0, 0]), y[:2]) | put(X, range(4), X[0] + Y[0] + Y[1])
@ x.scatter_reduce(1, g.tensor([[0, 0]]), y, 'amax') | put(X, [0], max(X[0, 0], *Y[0, :2]))
x.index_copy(0, g.tensor([1]), y[:1]) | put(X, range(4, 8), Y[0])
x.index_put((g.tensor([1]),), v) | put(X, range(4, 8), V)
g.asarray(x).data_ptr() == x.data_ptr(), g.can_cast(g.float64, g.int8) | (True, False)
x.new_ones(2), x.is_cuda == (x.get_device() == 0) | (numpy.ones(2), True)
x.new_empty(2).shape | (2,)
g.empty(5000).exponential_(2).mean().isclose(g.tensor(0.5), 0.1) | numpy.array(True)
x.index_fill(1, g.tensor([0, 2]), 7) | put(X, [0, 2, 4, 6, 8, 10], 7)
x.scatter(1, g.tensor([[0], [0]]), y, reduce='add') | put(X, [0, 4], X[:2, 0] + Y[:2, 0])
g.tril_indices(2, 2, dtype=g.int32) | numpy.array([[0, 1, 1], [0, 0, 1]], 'i4')
@ g.tril_indices(3, 4, 1), g.triu_indices(3, 3) |
    (numpy.array(numpy.tril_indices(3, 1, 4)), numpy.array(numpy.triu_indices(3)))
@ g.eye(3, 4, dtype=g.int32), x.tril(1), x.triu() |
    (numpy.eye(3, 4, dtype='i4'), numpy.tril(X, 1), numpy.triu(X))
@ g.one_hot(k.clamp(0, 2), 4) | numpy.eye(4, dtype=int)[K.clip(0, 2)]
g.zeros(size=(2, 3)), g.full(size=2, fill_value=k[0, 0]) |
    (numpy.zeros((2, 3), 'f4'), numpy.full(2, K[0, 0]))
g.arange(-0.9, 3.1, 2.0, dtype=g.int64), g.arange(0, 2, 0.5, dtype=g.int8) |
    (numpy.array([0, 2]), numpy.zeros(4, 'i1'))
g.linspace(4.3, 0, 5, dtype=g.uint8), g.logspace(0, 1.2, 2, dtype=g.int32) |
    (numpy.arange(4, -1, -1, 'u1'), numpy.array([1, 10], 'i4'))
g.linspace(g.tensor(0.1), 1.0, 3, dtype=g.float64) | numpy.linspace(numpy.float32(0.1).item(), 1, 3)
@ g.arange(end=4), g.arange(g.tensor(3)) | (numpy.arange(4), numpy.arange(3))
@ x.new_zeros(2), x.new_full((2,), 3) | (numpy.zeros(2), numpy.full(2, 3.0))
k.type(g.float64), x.type('genesis.LongTensor').type() | (K * 1.0, 'genesis.LongTensor')
g.float_power(k, 2), g.float_power(2, x.float()), x.abs().float_power_(y) |
    (K ** 2.0, 2 ** X.astype('f4').astype('f8'), abs(X) ** Y)
x.new_tensor([1, 2]), k.type_as(x) | (numpy.array([1.0, 2]), K * 1.0)
g.tensor(range(3)), g.tensor([V, V]) | (numpy.arange(3), numpy.array([V, V]))
g.tensor([numpy.longdouble(1.5), numpy.bool_(True)]) | numpy.array([1.5, 1], 'f4')
@ g.tensor([k[0, 0], 2.5]), g.tensor([[V], [V]]) |
    (numpy.array([K[0, 0], 2.5], 'f4'), numpy.array([[V], [V]]))
g.multiply(x, 2), x.greater_equal(y), g.concat([v, v]) | (X * 2, X >= Y, numpy.concatenate([V, V]))
g.numel(x), x.nelement(), x.itemsize, x.ndimension() | (12, 12, 8, 2)
g.is_tensor(x), x.is_floating_point(), k.is_signed() | (True, True, True)
2.5 in g.tensor([2.5]), 7 in k, list(reversed(v[:2])) | (True, False, [V[1], V[0]])
f'{x[0, 0]:.3f}', f'{k[0, 0]:d}', f'{b[0, 0]}' | (f'{X[0, 0]:.3f}', f'{K[0, 0]:d}', f'{B[0, 0]}')
g.tensor([0.1], dtype=g.float16) == 0.1 | numpy.array([True])
@ g.rand_like(x).shape, g.randint_like(k, 5).dtype is k.dtype | ((3, 4), True)
g.bernoulli(g.ones(3)), g.normal(v, 0.0) | (numpy.ones(3, 'f4'), V)
@ g.multinomial(g.eye(3), 2, replacement=True) | numpy.array([[0, 0], [1, 1], [2, 2]])
g.ones(2, 5).multinomial(5).sort().values | numpy.tile(numpy.arange(5), (2, 1))
g.result_type(k, 1.5), g.promote_types(g.uint8, g.int8) | (genesis.float32, genesis.int16)
g.finfo(g.float16).max, g.iinfo(g.int16).min | (65504.0, -32768)
x.to(g.float64, True, True).data_ptr() == x.data_ptr(), g.float, g.long |
    (False, genesis.float32, genesis.int64)
"""


def is_seeded(function, *arguments):
    """Whether its numbers come from the generator that it is given."""
    generators = [genesis.Generator().manual_seed(7) for _ in range(2)]
    return genesis.equal(*(function(*arguments, generator=one) for one in generators))


def sliding(array, size):
    return numpy.lib.stride_tricks.sliding_window_view(array, size)


def logsumexp(array, axis):
    return numpy.log(numpy.exp(array).sum(axis))


def majority(array):
    return numpy.array([min(row, key=lambda one: (-(row == one).sum(), one)) for row in array])


def diagonal(array):
    changed = array.copy()
    numpy.fill_diagonal(changed, 7)
    return changed


def put(array, places, values):
    changed = array.copy()
    changed.put(places, values)
    return changed


def check(made, wanted, words):
    if isinstance(wanted, (tuple, list)):
        assert len(made) == len(wanted), words
        for one, other in zip(made, wanted, strict=True):
            check(one, other, words)
    elif isinstance(made, genesis.Tensor):
        wanted = numpy.asarray(wanted)
        assert made.shape == wanted.shape and made.dtype.name == wanted.dtype.name, words
        tolerance = 1e-5 if made.dtype == genesis.float32 else 1e-12
        numpy.testing.assert_allclose(
            made.cpu().numpy(), wanted, tolerance, tolerance, err_msg=words
        )
    else:
        assert made == wanted, words


def compare(device, mark=""):
    """All of them, or those with a mark, with tensors of a device."""
    genesis.set_default_device(device)
    genesis.manual_seed(0)
    for line in PAIRS.replace("|\n", "|").strip().splitlines():
        if not line.startswith(mark):
            continue
        ours, theirs = line.removeprefix("@").split("|")
        tensors = {name: genesis.tensor(array) for name, array in NAMES.items()}
        names = {"g": genesis, "numpy": numpy, "V": V, "is_seeded": is_seeded, **tensors}
        made = eval(ours.strip(), names)
        check(made, eval(theirs.strip(), globals()), ours.strip())
    genesis.set_default_device(None)


@pytest.mark.parametrize("is_fused", [True, False])
def test_on_the_cpu(is_fused):
    genesis.set_fusion(is_fused)
    try:
        compare("cpu")
    finally:
        genesis.set_fusion(True)


def test_on_the_simulated_gpu(fresh, root):
    if not (BUILD / "libgenesis_sim.so").exists():
        pytest.skip("the build has no simulator")
    code = f"import sys; sys.path.insert(0, {str(root / 'tests/python')!r})\n"
    code += "import test_torch_names; test_torch_names.compare('cuda', '@')"
    fresh(code, GENESIS_CUDA_DRIVER=str(BUILD / "libgenesis_sim.so"))


def test_views_share_their_memory():
    x = genesis.arange(12).view(3, 4)
    for view in (x.unfold(1, 2, 1), x.diagonal(), x.t(), x.unbind(1)[0], x.narrow(0, 1, 1)):
        assert x.data_ptr() <= view.data_ptr() < x.data_ptr() + x.nbytes
    x.diagonal(1).fill_(-1)
    x.view(genesis.uint8)[2, 0] = 99
    assert x.tolist() == [[0, -1, 2, 3], [4, 5, -1, 7], [99, 9, 10, -1]]
    whole = numpy.arange(10.0)
    part = genesis.from_numpy(whole[2:6])
    assert part.as_strided((2, 2), (1, 2)).tolist() == [[2.0, 4.0], [3.0, 5.0]]
    with pytest.raises(genesis.ShapeError, match="not within the elements 0 to 3"):
        part.as_strided((2, 2), (1, 3))
    odd = genesis.from_numpy(numpy.zeros(17, dtype=numpy.uint8)[1:])
    with pytest.raises(genesis.ShapeError, match="cannot be seen as float64"):
        odd.view(genesis.float64)


@pytest.mark.parametrize(
    ("expression", "error", "words"),
    [
        ("x.flip(5)", IndexError, "dimension 5 is out of range"),
        ("x.flip(0, -2)", ValueError, "twice"),
        ("x.max(dim=())", ValueError, r"max: dim is one integer, not \(\); amax\(\) takes several"),
        ("x.sum(axis=0, dim=0)", TypeError, "two values"),
        ("x.amax(dtype=g.int8)", TypeError, "unexpected keyword argument 'dtype'"),
        ("g.sum(x, 1, out=g.empty(4))", genesis.ShapeError, "does not fit a tensor of"),
        ("g.amax(x, out=k[0, 0])", TypeError, "float64 cannot be stored as int64"),
        ("x.fill_()", TypeError, "takes value"),
        ("x.copy_(x, src=x)", TypeError, "takes src and non_blocking"),
        ("x.rot90(1, (1, -1))", ValueError, "are the same"),
        ("x[0, 0].flipud()", genesis.ShapeError, "no first dimension"),
        ("x.isclose(x, rtol=-1.0)", ValueError, "not negative"),
        ("x.quantile(0.5, interpolation='best')", ValueError, "no interpolation"),
        ("g.linspace(x[0], 1, 3)", ValueError, "one element"),
        ("x.type('genesis.tpu.FloatTensor')", TypeError, "there is no"),
        ("g.add(k, k, alpha=0.5)", TypeError, "alpha=0.5 has fractions"),
        ("g.add(x, x, beta=1)", TypeError, "beta"),
        ("x.exp(beta=1)", TypeError, r"exp\(\) got an unexpected keyword argument"),
        ("x.add_(x, out=x)", TypeError, "out"),
        ("x.add_(out=x)", TypeError, "takes 1 operand, not 0"),
        ("g.div(x, 2, rounding_mode='up')", ValueError, "'floor' or 'trunc'"),
        ("x.as_strided((4, 4), (4, 1))", genesis.ShapeError, "elements 0 to 11"),
        ("x.as_strided((2,), (1 << 62,))", genesis.ShapeError, "not within"),
        ("x.as_strided((0,), (1,), -1)", genesis.ShapeError, "not within"),
        ("x.as_strided((2,), (-1,))", genesis.ShapeError, "not within"),
        ("x.as_strided((2,), (1, 1))", genesis.ShapeError, "size has 1 number and stride has 2"),
        ("x.float()[:, :3].view(g.float64)", genesis.ShapeError, "cannot be seen as float64"),
        ("x.T.view(g.uint8)", genesis.ShapeError, "cannot be seen as uint8"),
        (
            "x.unfold(0, 4, 1).add_(1)",
            ValueError,
            "size 4 is larger than dimension 0, which has 3 elements",
        ),
        ("x.unfold(1, 2, 1).add_(1)", ValueError, "lie at one address"),
        ("x.movedim(0, (0, 1))", ValueError, "cannot go to"),
        ("x.diagonal(0, 1, -1)", ValueError, "are the same"),
        ("x.narrow(0, 2, 2)", IndexError, r"not in dimension 0 of \(3, 4\)"),
        ("g.einsum('ij,j', x)", ValueError, "2 operands, not 1"),
        (
            "g.einsum('ij,j->i', x, x[0, :3])",
            genesis.ShapeError,
            "4 elements in one operand and for 3",
        ),
        ("g.broadcast_shapes((2,), (3,))", genesis.ShapeError, "do not broadcast"),
        (
            "g.tensor([300], dtype=g.uint8)",
            OverflowError,
            r"^300 does not fit uint8 \(it is number 0 of the data\)",
        ),
        (
            "g.tensor([1.0, g.nan], dtype=g.int8)",
            OverflowError,
            r"^nan does not fit int8 \(it is number 1 of the data\)",
        ),
        ("g.eye(-1)", ValueError, "negative"),
        ("g.stack([])", ValueError, "must be a tensor"),
        (
            "g.multinomial(g.eye(2), 2)",
            ValueError,
            "2 samples without replacement need as many elements above 0, not 1",
        ),
        ("x[0, 0].unbind()", genesis.ShapeError, "no parts"),
        ("g.zeros(2, size=3)", TypeError, "given once"),
    ],
)
def test_mistakes(expression, error, words):
    names = {"g": genesis, "x": genesis.tensor(X), "k": genesis.tensor(K)}
    with pytest.raises(error, match=words):
        eval(expression, names)


def test_a_number_before_the_tensors():
    """add_(2, y) of programs from before PyTorch 1.5 is add_(y, alpha=2), and warns."""
    x, y = genesis.tensor([1.0, 2.0]), genesis.tensor([3.0, 4.0])
    for call, expected in [
        (lambda: x.clone().add_(-0.5, y), [-0.5, 0]),
        (lambda: genesis.add(x, 2, y), [7, 10]),
        (lambda: x.sub(2, y), [-5, -6]),
        (lambda: x.clone().addcmul_(0.5, y, y), [5.5, 10]),
        (lambda: genesis.addcdiv(x, -2, y, x), [-5, -2]),
    ]:
        with pytest.warns(UserWarning, match="a number before the tensors is deprecated"):
            assert call().tolist() == expected
    for wrong in (
        lambda: x.mul(2, y),
        lambda: x.add(y, 2),
        lambda: x.add(2, y, alpha=3),
        lambda: genesis.addcmul(x, y, y, 2),
        lambda: x.add(2, y, y),
        lambda: genesis.add(2, y, x),
    ):
        with pytest.raises(TypeError):
            wrong()
