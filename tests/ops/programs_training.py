"""What is around a model in PyTorch and in Genesis: mixed precision, scaling, helpers, averages.

The scenarios of programs_suite.py.
"""

from __future__ import annotations

import pickle

from optimizers_suite import seen, watched
from programs_parts import scenario, shown

# ---- mixed precision ----


@scenario
def autocast_modes(w):
    package = w.package
    made = []

    def state():
        made.append(
            [
                package.is_autocast_enabled("cpu"),
                str(package.get_autocast_dtype("cpu")).split(".")[-1],
                package.is_autocast_cache_enabled(),
            ]
        )

    state()
    with package.autocast("cpu"):
        state()
        with package.autocast("cpu", enabled=False):
            state()
            with package.autocast(device_type="cpu", dtype=package.float16, cache_enabled=False):
                state()
            state()
        state()
    state()
    try:
        with package.autocast("cpu"):
            raise KeyError
    except KeyError:
        state()
    mode = package.amp.autocast("cpu", dtype=package.float16)
    for _ in range(2):
        with mode:
            state()
    state()

    @package.autocast("cpu")
    def function(x, *, y=1):
        """Text."""
        state()
        return x @ x

    product = function(package.ones(2, 2))
    made.append([str(product.dtype).split(".")[-1], function.__name__, function.__doc__])
    calls = {
        "float32": lambda: attributes(package.autocast("cpu", dtype=package.float32)),
        "int": lambda: attributes(package.autocast("cpu", dtype=package.int32)),
        "device": lambda: package.autocast("tpu9"),
        "device 5": lambda: package.autocast(5),
        "attributes": lambda: attributes(package.autocast("cpu")),
        "repr": lambda: type(repr(package.autocast("cpu"))).__name__,
        "available": lambda: [package.amp.is_autocast_available(x) for x in ("cpu", "cuda")],
        "any": lambda: package.is_autocast_enabled(),
        "cuda names": lambda: [hasattr(package.cuda.amp, x) for x in ("autocast", "GradScaler")],
        "cpu names": lambda: [hasattr(package.cpu.amp, x) for x in ("autocast", "GradScaler")],
        "nesting": lambda: nesting(package),
        "class method": lambda: decorated(package),
        "generator": lambda: generated(package),
        "gpu": lambda: str(package.get_autocast_gpu_dtype()).split(".")[-1],
        "cpu": lambda: str(package.get_autocast_cpu_dtype()).split(".")[-1],
        "cpu enabled": lambda: package.is_autocast_cpu_enabled(),
        "set": lambda: set_by_hand(package),
        "wrong device": lambda: package.is_autocast_enabled("nothing"),
        "dtype of nothing": lambda: package.get_autocast_dtype("nothing"),
        "ipu": lambda: hasattr(package, "is_autocast_ipu_enabled"),
        "clear": lambda: package.clear_autocast_cache(),
    }
    return {"states": made, **{name: watched(call) for name, call in calls.items()}}


def attributes(mode):
    return [mode.device, str(mode.fast_dtype).split(".")[-1]]


def nesting(package):
    made = [package.autocast_increment_nesting(), package.autocast_increment_nesting()]
    return made + [package.autocast_decrement_nesting(), package.autocast_decrement_nesting()]


def decorated(package):
    class Model(package.nn.Module):
        @package.autocast("cpu")
        def forward(self, x):
            return x @ x

    return str(Model()(package.ones(2, 2)).dtype).split(".")[-1]


def generated(package):
    @package.no_grad()
    @package.autocast("cpu")
    def numbers():
        return package.is_autocast_enabled("cpu")

    return [numbers(), package.is_autocast_enabled("cpu")]


def set_by_hand(package):
    package.set_autocast_enabled("cpu", True)
    made = [package.is_autocast_enabled("cpu")]
    package.set_autocast_dtype("cpu", package.float16)
    made.append(str(package.get_autocast_dtype("cpu")).split(".")[-1])
    package.set_autocast_dtype("cpu", package.bfloat16)
    package.set_autocast_enabled("cpu", False)
    package.set_autocast_cache_enabled(True)
    return made


@scenario
def autocast_types(w):
    """Types of results under autocast, of calls that scripts have."""
    package = w.package
    functional = package.nn.functional
    x, h = package.ones(2, 4), package.ones(2, 4).to(package.bfloat16)
    layer, norm = package.nn.Linear(4, 4), package.nn.LayerNorm(4)
    image, conv = package.ones(1, 2, 5, 5), package.nn.Conv2d(2, 3, 3)
    index = package.tensor([0, 1])
    calls = {
        "linear": lambda: layer(x),
        "linear half": lambda: layer(h),
        "linear double": lambda: layer(x.double()),
        "matmul": lambda: x @ x.T,
        "matmul mixed": lambda: x @ h.T,
        "mm": lambda: package.mm(x, x.T),
        "addmm": lambda: package.addmm(package.ones(2, 2), x, x.T),
        "bmm": lambda: package.bmm(x[None], x.T[None]),
        "baddbmm": lambda: package.baddbmm(package.ones(1, 2, 2), x[None], x.T[None]),
        "einsum": lambda: package.einsum("ij,kj->ik", x, x),
        "conv": lambda: conv(image),
        "norm": lambda: norm(x),
        "norm half": lambda: norm(h),
        "softmax": lambda: h.softmax(-1),
        "log_softmax": lambda: functional.log_softmax(h, -1),
        "gelu": lambda: functional.gelu(h),
        "relu": lambda: functional.relu(h),
        "cross_entropy": lambda: functional.cross_entropy(h, index),
        "mse": lambda: functional.mse_loss(h, h),
        "mse mixed": lambda: functional.mse_loss(h, x),
        "bce": lambda: functional.binary_cross_entropy_with_logits(h, h),
        "bce plain": lambda: functional.binary_cross_entropy(x.sigmoid(), x.sigmoid()),
        "bce half": lambda: functional.binary_cross_entropy(h.sigmoid(), h.sigmoid()),
        "sum": lambda: h.sum(),
        "mean": lambda: h.mean(),
        "prod": lambda: h.prod(),
        "cumsum": lambda: h.cumsum(0),
        "exp": lambda: h.exp(),
        "pow": lambda: h**2,
        "norm2": lambda: h.norm(),
        "add": lambda: h + x,
        "cat": lambda: package.cat([h, x]),
        "stack": lambda: package.stack([h, x]),
        "where": lambda: package.where(h > 0, h, h),
        "attention": lambda: functional.scaled_dot_product_attention(x[None], x[None], x[None]),
        "embedding": lambda: functional.embedding(index, x),
        "dropout": lambda: functional.dropout(h, 0.5),
        "pool": lambda: functional.avg_pool2d(image, 2),
        "max pool": lambda: functional.max_pool2d(image.bfloat16(), 2),
        "interpolate": lambda: functional.interpolate(image, scale_factor=2),
        "gru": lambda: package.nn.GRU(4, 3)(x[None])[0],
        "lstm": lambda: package.nn.LSTM(4, 3)(x[None])[0],
        "multihead": lambda: package.nn.MultiheadAttention(4, 2)(x[None], x[None], x[None])[0],
        "batch norm": lambda: package.nn.BatchNorm1d(4)(h),
        "group norm": lambda: functional.group_norm(image.bfloat16(), 1),
        "layer norm function": lambda: functional.layer_norm(h, (4,)),
        "rms norm": lambda: package.nn.RMSNorm(4)(h),
        "cdist": lambda: package.cdist(x, x),
        "outer": lambda: package.outer(x[0], x[0]),
        "dot": lambda: package.dot(x[0], x[0]),
        "mv": lambda: package.mv(x, x[0]),
        "in place": lambda: package.ones(2, 2).addmm_(x, x.T),
        "inverse": lambda: package.linalg.inv(package.eye(3)),
        "det": lambda: package.linalg.det(package.eye(3).bfloat16()),
        "std": lambda: h.std(),
        "smooth": lambda: functional.smooth_l1_loss(h, h),
        "l1": lambda: functional.l1_loss(h, h),
        "kl": lambda: functional.kl_div(h, h),
        "nll": lambda: functional.nll_loss(h, index),
        "cosine": lambda: functional.cosine_similarity(h, h),
        "triplet": lambda: functional.triplet_margin_loss(h, h, h),
        "tanh": lambda: h.tanh(),
        "prelu": lambda: functional.prelu(h, package.ones(1)),
        "silu": lambda: functional.silu(h),
        "bilinear": lambda: functional.bilinear(x, x, package.ones(3, 4, 4)),
        "chain": lambda: (
            package.chain_matmul(x, x.T, x) if hasattr(package, "chain_matmul") else x.bfloat16()
        ),
        "multi_dot": lambda: package.linalg.multi_dot([x, x.T, x]),
        "tensordot": lambda: package.tensordot(x, x, dims=([1], [1])),
        "unfold": lambda: functional.unfold(image, 2),
        "pad": lambda: functional.pad(h, (1, 1), mode="constant"),
        "pad reflect": lambda: functional.pad(image.bfloat16(), (1, 1), mode="reflect"),
    }
    made = {}
    for name, call in calls.items():
        for dtype in ("bfloat16", "float16"):

            def run(call=call, dtype=dtype):
                with package.autocast("cpu", dtype=getattr(package, dtype)):
                    return str(call().dtype).split(".")[-1]

            made[f"{name} {dtype}"] = watched(run)
    return made


@scenario
def custom_functions(w):
    package = w.package
    made = []

    class Product(package.autograd.Function):
        @staticmethod
        @package.amp.custom_fwd(device_type="cpu", cast_inputs=package.float32)
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            made.append([str(x.dtype).split(".")[-1], package.is_autocast_enabled("cpu")])
            return x @ y

        @staticmethod
        @package.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            made.append([str(grad.dtype).split(".")[-1], package.is_autocast_enabled("cpu")])
            return grad @ y.T, x.T @ grad

    class Plain(Product):
        @staticmethod
        @package.amp.custom_fwd(device_type="cpu")
        def forward(ctx, x, y):
            return Product.forward.__wrapped__(ctx, x, y)

    for kind in (Product, Plain):
        for is_on in (True, False):
            x = package.ones(2, 2, requires_grad=True)
            with package.autocast("cpu", enabled=is_on):
                result = kind.apply(x, x.bfloat16() if kind is Product and is_on else x)
            result.sum().backward()
            made.append([str(result.dtype).split(".")[-1], seen(x.grad)])
    calls = {
        "device": lambda: package.amp.custom_fwd(device_type=5),
        "no device": lambda: package.amp.custom_fwd(lambda: 1),
        "old": lambda: package.cuda.amp.custom_fwd(lambda: 1).__name__,
    }
    return {"seen": made, **{name: watched(call) for name, call in calls.items()}}


@scenario
def scaling(w):
    package = w.package

    def fresh(**options):
        x = package.ones(3, requires_grad=True)
        sgd = package.optim.SGD([x], lr=0.5, **options)
        return x, sgd, package.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)

    def plain_steps(fused=None):
        x, sgd, scaler = fresh(fused=fused)
        made = []
        for factor in (1.0, 2.0, float("inf"), 1.0, float("nan"), 1.0, 1.0, 1.0):
            sgd.zero_grad()
            scaler.scale((x * factor).sum()).backward()
            given = scaler.step(sgd)
            scaler.update()
            made.append([seen(x), scaler.get_scale(), given, seen(scaler.state_dict())])
        return made

    def clipped():
        x, sgd, scaler = fresh()
        scaler.scale((x * 10).sum()).backward()
        scaler.unscale_(sgd)
        norm = package.nn.utils.clip_grad_norm_([x], 1.0)
        scaler.step(sgd)
        scaler.update()
        return [seen(norm), seen(x)]

    def several():
        x, sgd, scaler = fresh()
        y, other, _ = fresh()
        scaler.scale((x * float("inf")).sum() + y.sum()).backward()
        scaler.step(sgd)
        scaler.step(other)
        scaler.update()
        return [seen(x), seen(y), scaler.get_scale()]

    def with_closure():
        x, sgd, scaler = fresh()
        scaler.scale(x.sum()).backward()
        return scaler.step(sgd, closure=lambda: 1)

    def positional():
        x, sgd, scaler = fresh()
        scaler.scale(x.sum()).backward()
        return scaler.step(sgd, lambda: 5)

    def twice(first, second):
        def call():
            x, sgd, scaler = fresh()
            scaler.scale(x.sum()).backward()
            getattr(scaler, first)(sgd)
            getattr(scaler, second)(sgd)

        return call

    def before(name):
        def call():
            _, sgd, scaler = fresh()
            return getattr(scaler, name)(sgd) if name != "update" else scaler.update()

        return call

    def nothing():
        x, sgd, scaler = fresh()
        scaler.scale(x.sum())
        return scaler.step(sgd)

    def update_only():
        x, sgd, scaler = fresh()
        scaler.scale(x.sum()).backward()
        return scaler.update()

    def new_scales():
        made = []
        for value in (4.0, package.tensor(2.0), package.tensor([3.0]), 5):

            def one(value=value):
                x, _, scaler = fresh()
                scaler.scale(x.sum())
                scaler.update(value)
                return scaler.get_scale()

            made.append(watched(one))
        return made

    def off():
        x, sgd, _ = fresh()
        scaler = package.amp.GradScaler("cpu", enabled=False)
        x.sum().backward()
        made = [seen(scaler.scale(x)), scaler.step(sgd), scaler.update(), scaler.get_scale()]
        made += [scaler.is_enabled(), scaler.state_dict(), scaler.unscale_(sgd)]
        made += [scaler.load_state_dict({"a": 1})]
        return [*made, seen(x)]

    def loads(state):
        def call():
            scaler = package.amp.GradScaler("cpu")
            scaler.load_state_dict(state)
            return [scaler.get_scale(), seen(scaler.state_dict())]

        return call

    def half():
        x = package.ones(2, dtype=package.float16, requires_grad=True)
        sgd = package.optim.SGD([x], lr=0.5)
        scaler = package.amp.GradScaler("cpu", init_scale=8.0)
        scaler.scale(x.sum()).backward()
        return scaler.step(sgd)

    state = {"scale": 4.0, "growth_factor": 3.0, "backoff_factor": 0.25, "growth_interval": 9}
    state["_growth_tracker"] = 2

    def lists():
        x, _, scaler = fresh()
        made = scaler.scale([x, (x, [x])])
        return [shown(made), type(scaler.scale(iter([x]))).__name__]

    calls = {
        "steps": plain_steps,
        "fused steps": lambda: plain_steps(True),
        "clipped": clipped,
        "several": several,
        "closure": with_closure,
        "positional": positional,
        "unscale twice": twice("unscale_", "unscale_"),
        "step twice": twice("step", "step"),
        "unscale after step": twice("step", "unscale_"),
        "unscale before scale": before("unscale_"),
        "step before scale": before("step"),
        "update before scale": before("update"),
        "no gradients": nothing,
        "update only": update_only,
        "new scales": new_scales,
        "off": off,
        "load": loads(state),
        "load nothing": loads({}),
        "load less": loads({"scale": 1.0}),
        "half": half,
        "lists": lists,
        "number": lambda: fresh()[2].scale(5),
        "growth": lambda: package.amp.GradScaler("cpu", growth_factor=1.0),
        "backoff": lambda: package.amp.GradScaler("cpu", backoff_factor=1.0),
        "device": lambda: package.amp.GradScaler("cuda").is_enabled(),
        "default": lambda: package.amp.GradScaler().is_enabled(),
        "old": lambda: package.cuda.amp.GradScaler().is_enabled(),
        "pickle": lambda: seen(pickle.loads(pickle.dumps(fresh()[2])).state_dict()),
        "settings": lambda: settings(fresh()[2]),
    }
    return {name: watched(call) for name, call in calls.items()}


def settings(scaler):
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(7)
    made = [scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()]
    return [*made, scaler.get_scale(), scaler._get_growth_tracker()]


# ---- helpers of models ----


@scenario
def helpers(w):
    package = w.package
    utils, t = package.nn.utils, package.tensor

    def with_gradients(*values):
        params = [package.zeros(len(one)).requires_grad_() for one in values]
        for param, one in zip(params, values, strict=True):
            param.grad = t(one)
        return params

    def clip(function, *given, **options):
        def call():
            params = with_gradients([3.0, 4.0], [12.0])
            params.append(package.zeros(2).requires_grad_())
            norm = getattr(utils, function)(params, *given, **options)
            return [seen(norm), seen([one.grad for one in params])]

        return call

    def clip_odd(*given, **options):
        def call():
            params = with_gradients([float("nan"), 1.0], [float("inf")])
            norm = utils.clip_grad_norm_(params, *given, **options)
            return [seen(norm), seen([one.grad for one in params])]

        return call

    def checkpointed(**options):
        def call():
            x = t([2.0, 3.0], requires_grad=True)
            y = package.utils.checkpoint.checkpoint(lambda x, k=1: (x * x * k).sin(), x, **options)
            y.sum().backward()
            return [seen(y), seen(x.grad)]

        return call

    def sequential(count, segments):
        def call():
            x = t([2.0, 3.0], requires_grad=True)
            steps = [package.sin for _ in range(count)]
            y = package.utils.checkpoint.checkpoint_sequential(
                steps, segments, x, use_reentrant=False
            )
            y.sum().backward()
            return [seen(y), seen(x.grad)]

        return call

    def normed(make, **options):
        def call():
            layer = package.nn.Linear(3, 2)
            layer.weight.data.copy_(package.arange(6.0).view(2, 3))
            layer.bias.data.zero_()
            layer = make(layer, **options)
            made = layer(package.ones(1, 3))
            made.sum().backward()
            state = {
                key: seen(one)
                for key, one in layer.state_dict().items()
                if key[-2:] not in ("_u", "_v")
            }
            return [state, seen(made), repr(layer)]

        return call

    def fused():
        conv, norm = package.nn.Conv2d(1, 2, 1), package.nn.BatchNorm2d(2)
        conv.weight.data.fill_(0.5)
        conv.bias.data.fill_(0.25)
        norm.running_mean.fill_(0.5)
        made = utils.fusion.fuse_conv_bn_eval(conv.eval(), norm.eval())
        return seen(made(package.ones(1, 1, 2, 2)))

    calls = {
        "clip": clip("clip_grad_norm_", 1.0),
        "clip inf": clip("clip_grad_norm_", 1.0, "inf"),
        "clip infinity": clip("clip_grad_norm_", 1.0, float("inf")),
        "clip 1": clip("clip_grad_norm_", 2, 1),
        "clip 0": clip("clip_grad_norm_", 2, 0),
        "clip large": clip("clip_grad_norm_", 100.0),
        "clip 0.0": clip("clip_grad_norm_", 0.0),
        "clip foreach": clip("clip_grad_norm_", 1.0, foreach=True),
        "clip value": clip("clip_grad_value_", 3.5),
        "clip value 0": clip("clip_grad_value_", 0),
        "clip odd": clip_odd(1.0),
        "clip odd error": clip_odd(1.0, error_if_nonfinite=True),
        "clip old": clip("clip_grad_norm", 1.0),
        "clip one": lambda: seen(utils.clip_grad_norm_(with_gradients([3.0])[0], 1.0)),
        "clip none": lambda: seen(utils.clip_grad_norm_([], 1.0)),
        "clip generator": lambda: seen(utils.clip_grad_norm_((x for x in []), 1.0)),
        "clip without": lambda: seen(utils.clip_grad_norm_([package.ones(2)], 1.0)),
        "clip text": lambda: utils.clip_grad_norm_(with_gradients([3.0]), "a"),
        "norm": lambda: seen(utils.get_total_norm([t([3.0]), t([4.0])])),
        "vector": lambda: seen(utils.parameters_to_vector([package.ones(2, 2), t([3.0])])),
        "vector of none": lambda: utils.parameters_to_vector([]),
        "checkpoint": checkpointed(use_reentrant=False),
        "checkpoint reentrant": checkpointed(use_reentrant=True),
        "checkpoint unsaid": checkpointed(),
        "checkpoint keyword": checkpointed(use_reentrant=False, k=2),
        "checkpoint keyword reentrant": checkpointed(use_reentrant=True, k=2),
        "checkpoint state": checkpointed(use_reentrant=False, preserve_rng_state=False),
        "checkpoint check": checkpointed(use_reentrant=False, determinism_check="none"),
        "checkpoint wrong": checkpointed(use_reentrant=False, determinism_check="x"),
        "sequential 4 2": sequential(4, 2),
        "sequential 3 2": sequential(3, 2),
        "sequential 2 3": sequential(2, 3),
        "sequential 1 1": sequential(1, 1),
        "weight norm": normed(utils.weight_norm),
        "weight norm none": normed(utils.weight_norm, dim=None),
        "weight norm new": normed(utils.parametrizations.weight_norm),
        "spectral norm new": normed(utils.parametrizations.spectral_norm),
        "spectral norm": lambda: normed(utils.spectral_norm)(),
        "orthogonal": lambda: orthogonal(package),
        "fused": fused,
        "skip init": lambda: type(utils.skip_init(package.nn.Linear, 2, 2)).__name__,
        "stateless": lambda: seen(
            utils.stateless.functional_call(
                package.nn.Linear(1, 1), {"weight": t([[2.0]]), "bias": t([1.0])}, t([[3.0]])
            )
        ),
        "pruned": lambda: pruned(package),
    }
    return {name: watched(call) for name, call in calls.items()}


def orthogonal(package):
    layer = package.nn.utils.parametrizations.orthogonal(package.nn.Linear(3, 3))
    product = layer.weight @ layer.weight.T
    return bool((product - package.eye(3)).abs().max() < 1e-5)


def pruned(package):
    layer = package.nn.Linear(4, 2)
    package.nn.utils.prune.l1_unstructured(layer, "weight", amount=0.5)
    return [sorted(layer.state_dict()), int((layer.weight == 0).sum())]


@scenario
def first_values(w):
    package = w.package
    init = package.nn.init

    def spread(name, *given, shape=(200, 300), **options):
        def call():
            made = getattr(init, name)(package.empty(*shape), *given, **options)
            mean, std = float(made.mean()), float(made.std())
            most = float(made.abs().max())
            return [f"{mean:.2f}".replace("-0.00", "0.00"), f"{std:.2f}", most < 5 * std + 1e-9]

        return call

    calls = {
        "uniform": spread("uniform_", -1, 3),
        "uniform default": spread("uniform_"),
        "normal": spread("normal_", 2, 3),
        "trunc": spread("trunc_normal_", 0, 1, -1, 1),
        "trunc tail": spread("trunc_normal_", 0, 1, 2, 3),
        "xavier": spread("xavier_uniform_"),
        "xavier gain": spread("xavier_normal_", gain=5),
        "kaiming": spread("kaiming_uniform_"),
        "kaiming relu": spread("kaiming_normal_", mode="fan_out", nonlinearity="relu"),
        "kaiming a": spread("kaiming_uniform_", 5**0.5),
        "kaiming conv": spread("kaiming_normal_", shape=(100, 50, 3, 3)),
        "kaiming mode": spread("kaiming_normal_", mode="no"),
        "kaiming word": spread("kaiming_normal_", nonlinearity="no"),
        "kaiming vector": spread("kaiming_normal_", shape=(3,)),
        "kaiming empty": lambda: tuple(init.kaiming_normal_(package.empty(0, 3)).shape),
        "xavier vector": spread("xavier_normal_", shape=(3,)),
        "constant": lambda: init.constant_(package.empty(2), 0.3),
        "ones": lambda: init.ones_(package.empty(2)),
        "zeros": lambda: init.zeros_(package.empty(2)),
        "eye": lambda: init.eye_(package.empty(2, 3)),
        "eye vector": lambda: init.eye_(package.empty(2)),
        "dirac": lambda: init.dirac_(package.empty(3, 2, 3, 3)),
        "dirac groups": lambda: init.dirac_(package.empty(4, 2, 3), 2),
        "dirac wrong": lambda: init.dirac_(package.empty(3, 2, 3), 2),
        "dirac matrix": lambda: init.dirac_(package.empty(3, 2)),
        "orthogonal": lambda: orthogonal_init(package),
        "orthogonal vector": lambda: init.orthogonal_(package.empty(3)),
        "sparse": lambda: (init.sparse_(package.empty(10, 4), 0.25) == 0).sum(0),
        "sparse cube": lambda: init.sparse_(package.empty(2, 2, 2), 0.5),
        "gains": lambda: [
            init.calculate_gain(name)
            for name in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu")
        ],
        "gain": lambda: init.calculate_gain("leaky_relu", 0.5),
        "gain wrong": lambda: init.calculate_gain("gelu"),
        "gain text": lambda: init.calculate_gain("leaky_relu", "a"),
        "gain true": lambda: init.calculate_gain("leaky_relu", True),
        "old uniform": lambda: init.xavier_uniform(package.empty(2, 2)) is not None,
        "old normal": lambda: init.normal(package.empty(2, 2)) is not None,
        "old kaiming": lambda: init.kaiming_normal(package.empty(2, 2)) is not None,
        "generator": lambda: [
            init.normal_(package.empty(2), generator=package.Generator().manual_seed(1)).tolist()
            == init.normal_(package.empty(2), generator=package.Generator().manual_seed(1)).tolist()
        ],
        "fans": lambda: init._calculate_fan_in_and_fan_out(package.empty(4, 3, 5)),
        "parameter": lambda: init.ones_(package.nn.Parameter(package.empty(2))).requires_grad,
        "integer": lambda: init.constant_(package.empty(2, dtype=package.int64), 3),
        "half": lambda: str(
            init.kaiming_uniform_(package.empty(2, 2, dtype=package.bfloat16)).dtype
        )[-8:],
    }
    return {name: watched(call) for name, call in calls.items()}


def orthogonal_init(package):
    made = package.nn.init.orthogonal_(package.empty(3, 5), gain=2)
    return bool((made @ made.T - 4 * package.eye(3)).abs().max() < 1e-4)


@scenario
def averages(w):
    package = w.package
    swa = package.optim.swa_utils

    def averaged(count=4, **options):
        def call():
            model = package.nn.Sequential(package.nn.Linear(2, 2), package.nn.BatchNorm1d(2))
            for one in model.parameters():
                one.data.fill_(0.0)
            given = {key: one(swa) if callable(one) else one for key, one in options.items()}
            average = swa.AveragedModel(model, **given)
            for number in range(count):
                for one in model.parameters():
                    one.data.fill_(float(number**2))
                model[1].running_mean.fill_(number)
                model[1].num_batches_tracked.fill_(number * 10)
                average.update_parameters(model)
            state = average.state_dict()
            other = swa.AveragedModel(model, **given)
            other.load_state_dict(state)
            return [seen(dict(state)), repr(average), seen(dict(other.state_dict()))]

        return call

    def batch_norms(loader, momentum=0.1):
        def call():
            model = package.nn.Sequential(package.nn.BatchNorm1d(2, momentum=momentum))
            model.eval()
            swa.update_bn(loader(), model)
            return [seen(dict(model.state_dict())), model.training, model[0].momentum]

        return call

    def data():
        return [package.arange(8.0).view(4, 2), package.arange(6.0).view(3, 2) * 2]

    calls = {
        "plain": averaged(),
        "buffers": averaged(use_buffers=True),
        "ema": averaged(multi_avg_fn=lambda s: s.get_ema_multi_avg_fn(0.9)),
        "ema buffers": averaged(
            multi_avg_fn=lambda s: s.get_ema_multi_avg_fn(0.9), use_buffers=True
        ),
        "ema one": averaged(avg_fn=lambda s: s.get_ema_avg_fn(0.9)),
        "swa one": averaged(avg_fn=lambda s: s.get_swa_avg_fn()),
        "swa": averaged(multi_avg_fn=lambda s: s.get_swa_multi_avg_fn(), use_buffers=True),
        "both": averaged(
            avg_fn=lambda s: s.get_swa_avg_fn(), multi_avg_fn=lambda s: s.get_swa_multi_avg_fn()
        ),
        "decay": lambda: swa.get_ema_avg_fn(1.5),
        "decay multi": lambda: swa.get_ema_multi_avg_fn(-0.5),
        "norms": batch_norms(data),
        "norms of pairs": batch_norms(lambda: [(one, 1) for one in data()]),
        "norms without momentum": batch_norms(data, None),
        "norms of dicts": batch_norms(lambda: [{"a": 1}]),
        "no norms": lambda: swa.update_bn([1], package.nn.Linear(1, 1)),
        "swalr": lambda: swa.SWALR(
            package.optim.SGD([package.ones(1)], 0.1), 0.5, anneal_strategy="x"
        ),
        "swalr epochs": lambda: swa.SWALR(
            package.optim.SGD([package.ones(1)], 0.1), 0.5, anneal_epochs=-1
        ),
        "swalr float": lambda: swa.SWALR(
            package.optim.SGD([package.ones(1)], 0.1), 0.5, anneal_epochs=1.5
        ),
    }
    return {name: watched(call) for name, call in calls.items()}
