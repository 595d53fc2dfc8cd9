"""Programs with modules that are run with PyTorch and here: each gives what is to be the same."""

from collections import OrderedDict


def _net(package, log=None):
    """A module with a child that is there twice, buffers, and a parameter that is shared."""
    nn = package.nn

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(package.tensor([2.0, 3.0]))
            self.register_buffer("mean", package.tensor([0.5]))
            self.register_buffer("hidden", package.tensor([0.25]), persistent=False)
            self.register_buffer("nothing", None)
            self.register_parameter("bias", None)

        def forward(self, x, scale=1.0):
            if log is not None:
                log.append("forward")
            return x * self.weight * scale

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = Inner()
            self.again = self.first
            self.second = Inner()
            self.second.weight = self.first.weight
            self.none = None
            self.add_module("empty", None)
            self.layers = nn.ModuleList([nn.Identity(), Inner()])
            self.scale = nn.Parameter(package.tensor(1.5))

        def forward(self, x):
            return self.second(self.first(x)) * self.scale

    return Net()


def names(package):
    """Names of everything, in order."""
    net = _net(package)
    found = {
        "parameters": [name for name, _ in net.named_parameters()],
        "with_duplicates": [name for name, _ in net.named_parameters(remove_duplicate=False)],
        "of_itself": [name for name, _ in net.named_parameters("net", recurse=False)],
        "prefixed": [name for name, _ in net.named_parameters("net")],
        "buffers": [name for name, _ in net.named_buffers()],
        "modules": [name for name, _ in net.named_modules()],
        "modules_twice": [name for name, _ in net.named_modules(remove_duplicate=False)],
        "children": [name for name, _ in net.named_children()],
        "state": list(net.state_dict()),
        "metadata": list(net.state_dict()._metadata),
        "with_prefix": list(net.state_dict(prefix="net.")),
        "counts": [len(list(net.parameters())), len(list(net.buffers())), len(list(net.modules()))],
    }
    applied = []
    net.apply(lambda module: applied.append(type(module).__name__))
    found["applied"] = applied
    net.eval()
    found["training"] = [module.training for module in net.modules()]
    return found


def hooks(package):
    """The order in which hooks are called, and what becomes of what they give."""
    log, nn = [], package.nn
    net = _net(package, log)
    inner, x = net.first, package.tensor([1.0, 1.0])

    def noted(name, answer=None):
        def hook(*args):
            log.append(name)
            return answer(*args) if answer is not None else None

        return hook

    one = inner.register_forward_pre_hook(noted("pre 1"))
    inner.register_forward_pre_hook(noted("pre 2", lambda m, a: a[0] + 1))
    inner.register_forward_pre_hook(noted("pre first"), prepend=True)
    inner.register_forward_pre_hook(
        noted("pre kwargs", lambda m, a, k: (a, {"scale": 10.0})), with_kwargs=True
    )
    inner.register_forward_hook(noted("post 1"))
    two = inner.register_forward_hook(noted("post 2", lambda m, a, o: o + 1))
    inner.register_forward_hook(noted("post first"), prepend=True)
    inner.register_forward_hook(
        noted("post kwargs", lambda m, a, k, o: o + k["scale"]), with_kwargs=True
    )
    common = nn.modules.module.register_module_forward_pre_hook(noted("common pre"))
    after = nn.modules.module.register_module_forward_hook(noted("common post"))
    results = [inner(x).tolist()]
    one.remove()
    two.remove()
    two.remove()
    common.remove()
    results.append(inner(x, scale=3.0).tolist())
    after.remove()
    inner.register_forward_hook(noted("always"), always_call=True)
    inner.register_forward_hook(noted("not always"))
    inner.register_forward_pre_hook(noted("raises", lambda m, a: 1 / 0))
    try:
        inner(x)
    except ZeroDivisionError:
        log.append("caught")
    return {"log": log, "results": results}


def backward_hooks(package):
    """Hooks of gradients: their order, their arguments, and what becomes of what they give."""
    log = []
    net = _net(package)

    def lists(grads):
        return [None if one is None else one.tolist() for one in grads]

    def pre(name, factor=None):
        def hook(module, grads):
            log.append([name, lists(grads)])
            return None if factor is None else tuple(one * factor for one in grads)

        return hook

    def post(name, factor=None):
        def hook(module, grad_input, grad_output):
            log.append([name, lists(grad_input), lists(grad_output)])
            return None if factor is None else tuple(one * factor for one in grad_input)

        return hook

    net.first.register_full_backward_pre_hook(pre("pre 1"))
    net.first.register_full_backward_pre_hook(pre("pre 2", 2.0))
    net.first.register_full_backward_pre_hook(pre("pre first"), prepend=True)
    net.first.register_full_backward_hook(post("post 1"))
    net.first.register_full_backward_hook(post("post 2", 3.0))
    net.first.register_full_backward_hook(post("post first"), prepend=True)
    net.second.register_full_backward_hook(post("second"))
    net.register_full_backward_hook(post("net"))
    common = package.nn.modules.module.register_module_full_backward_hook(post("common"))
    x = package.tensor([1.0, -1.0], requires_grad=True)
    net(x).sum().backward()
    common.remove()
    grads = [x.grad.tolist(), net.first.weight.grad.tolist(), net.scale.grad.tolist()]
    net.zero_grad()
    return {"log": log, "grads": grads, "zeroed": net.scale.grad is None}


def state_hooks(package):
    """Hooks of states."""
    log = []
    net = _net(package)
    inner = net.first
    inner.register_state_dict_pre_hook(lambda m, prefix, keep: log.append(["pre", prefix, keep]))
    inner.register_state_dict_post_hook(
        lambda m, state, prefix, meta: log.append(["post", sorted(state), prefix, meta])
    )
    net._register_state_dict_hook(lambda m, state, prefix, meta: {"only": len(state)})
    result = dict(net.state_dict(keep_vars=True))
    other = _net(package)

    def renames(module, state, prefix, meta, strict, missing, unexpected, errors):
        log.append(["load pre", prefix, sorted(state), strict])
        if prefix + "middle" in state:
            state[prefix + "mean"] = state.pop(prefix + "middle")

    def forgives(module, keys):
        log.append(["load post", list(keys.missing_keys), list(keys.unexpected_keys)])
        keys.missing_keys.clear()

    other.first.register_load_state_dict_pre_hook(renames)
    other.register_load_state_dict_post_hook(forgives)
    state = _net(package).state_dict()
    state["first.middle"] = package.tensor([9.0])
    del state["first.mean"], state["scale"]
    loaded = other.load_state_dict(state)
    return {
        "log": log,
        "result": result,
        "loaded": [list(one) for one in loaded],
        "text": str(loaded),
        "mean": other.first.mean.tolist(),
    }


def _caught(call):
    try:
        call()
    except Exception as error:
        text = error.args[0] if isinstance(error, KeyError) else str(error)
        return [type(error).__name__, text]
    return None


def errors(package):
    """What is wrong, in the words of both."""
    nn = package.nn
    net, linear = _net(package), nn.Linear(2, 3)
    tensor = package.tensor([1.0])
    parameter = nn.Parameter(tensor)

    class Early(nn.Module):
        def __init__(self, kind):
            if kind == "parameter":
                self.one = nn.Parameter(tensor)
            elif kind == "module":
                self.one = nn.Identity()
            elif kind == "register":
                self.register_parameter("one", parameter)
            else:
                self.register_buffer("one", tensor)

    class Extra(nn.Module):
        def get_extra_state(self):
            return 3

        def set_extra_state(self, state):
            self.state = state

    calls = [
        lambda: Early("parameter"),
        lambda: Early("module"),
        lambda: Early("register"),
        lambda: Early("buffer"),
        lambda: net.register_parameter("a.b", parameter),
        lambda: net.register_parameter("", parameter),
        lambda: net.register_parameter("train", parameter),
        lambda: net.register_parameter(3, parameter),
        lambda: net.register_parameter("new", 3),
        lambda: net.register_parameter("new", nn.Parameter(tensor) * 2),
        lambda: net.register_buffer("a.b", tensor),
        lambda: net.register_buffer("", tensor),
        lambda: net.register_buffer("scale", tensor),
        lambda: net.register_buffer(3, tensor),
        lambda: net.register_buffer("new", 3),
        lambda: net.add_module("a.b", linear),
        lambda: net.add_module("", linear),
        lambda: net.add_module("scale", linear),
        lambda: net.add_module(3, linear),
        lambda: net.add_module("new", 3),
        lambda: setattr(net, "scale", 3),
        lambda: setattr(net, "first", 3),
        lambda: setattr(net.first, "mean", 3),
        lambda: delattr(net, "unknown"),
        lambda: net.unknown,
        lambda: net.get_submodule("first.unknown"),
        lambda: net.get_submodule("first.weight"),
        lambda: net.get_parameter("first.unknown"),
        lambda: net.get_parameter("first.mean"),
        lambda: net.get_buffer("first.weight"),
        lambda: net.set_submodule("", linear),
        lambda: net.set_submodule("first.new", linear, strict=True),
        lambda: net.set_submodule("first.weight", linear),
        lambda: net.train(1),
        lambda: nn.Module()(1),
        lambda: nn.Module(1),
        lambda: nn.Module(some=1),
        lambda: net.to(package.int64),
        lambda: linear.load_state_dict(3),
        lambda: linear.load_state_dict({}),
        lambda: linear.load_state_dict(
            {"weight": tensor, "bias": package.zeros(3), "more": tensor}
        ),
        lambda: linear.load_state_dict({"weight": 3, "bias": package.zeros(3)}),
        lambda: net.load_state_dict({"first.unknown": tensor}, strict=True),
        lambda: Extra().load_state_dict({}),
        lambda: nn.Module().load_state_dict({"_extra_state": 3}),
        lambda: nn.Sequential(linear)[1],
        lambda: nn.Sequential(linear) + [linear],
        lambda: nn.Sequential(linear) * 0,
        lambda: nn.Sequential(linear) * "a",
        lambda: nn.Sequential(linear).insert(3, linear),
        lambda: nn.Sequential(linear).insert(0, 3),
        lambda: nn.Sequential(3),
        lambda: nn.ModuleList([linear])[-2],
        lambda: nn.ModuleList(3),
        lambda: nn.ModuleList([3]),
        lambda: nn.ModuleList()(1),
        lambda: nn.ModuleDict(3),
        lambda: nn.ModuleDict([("a", linear, 3)]),
        lambda: nn.ModuleDict({"a": 3}),
        lambda: nn.ModuleDict()["a"],
        lambda: nn.ParameterList([tensor])[1],
        lambda: nn.ParameterList(tensor),
        lambda: nn.ParameterList([tensor])(1),
        lambda: nn.ParameterDict(3),
        lambda: nn.ParameterDict({"a": tensor})("a"),
        lambda: nn.ParameterDict([("a",)]),
        lambda: nn.ParameterDict()["a"],
    ]
    return [_caught(call) for call in calls]


def containers(package):
    """What containers hold after changes."""
    nn = package.nn
    layers = [nn.Identity() for _ in range(6)]
    for place, layer in enumerate(layers):
        layer.place = place

    def held(container):
        return [[name, one.place] for name, one in container._modules.items()]

    found = {}
    one = nn.Sequential(*layers[:3])
    found["slice"] = held(one[1:])
    found["last"] = one[-1].place
    one.append(layers[3]).extend([layers[4]]).insert(1, layers[5])
    found["inserted"] = held(one)
    del one[0]
    found["deleted"] = held(one)
    del one[1:3]
    found["deleted_slice"] = held(one)
    found["popped"] = [one.pop(-1).place, len(one)]
    found["added"] = held(one + nn.Sequential(layers[0]))
    one += nn.Sequential(layers[1], layers[2])
    one[0] = layers[3]
    found["set"] = held(one)
    found["times"] = held(one * 2)
    one *= 2
    found["times_itself"] = held(one)
    named = nn.Sequential(OrderedDict([("a", layers[0]), ("b", layers[1])]))
    found["named"] = [held(named), named.a.place, [name for name in dir(named) if len(name) == 1]]
    many = nn.ModuleList(layers[:2])
    many += [layers[2]]
    many.insert(0, layers[3])
    many[1] = layers[4]
    found["list"] = [held(many), held(many + [layers[5]]), held(many[::2])]
    del many[-1]
    found["list_popped"] = [many.pop(0).place, held(many), layers[4] in many]
    table = nn.ModuleDict({"a": layers[0]})
    table["b"] = layers[1]
    table.update({"a": layers[2], "c": layers[3]})
    found["dict"] = [held(table), list(table.keys()), "a" in table, len(table)]
    found["dict_popped"] = [table.pop("a").place, list(table)]
    values = nn.ParameterList([package.tensor([1.0]), 3])
    values.append(package.tensor([2.0]))
    values[0] = package.tensor([5.0])
    found["parameters"] = [
        [name for name, _ in values.named_parameters()],
        len(values),
        values[-1].tolist(),
        [type(one).__name__ for one in values],
        len(values[1:]),
        list(values.state_dict()),
    ]
    words = nn.ParameterDict({"z": package.tensor([1.0]), "a": package.tensor([2.0])})
    words["m"] = package.tensor([3.0])
    other = words | nn.ParameterDict({"a": package.tensor([4.0])})
    found["words"] = [
        list(words),
        list(reversed(words)),
        [name for name, _ in words.named_parameters()],
        words.get("q"),
        words.setdefault("n", package.tensor([5.0])).tolist(),
        words.popitem()[0],
        words.pop("z").tolist(),
        [[name, one.tolist()] for name, one in other.items()],
        list(words.fromkeys(["k"]).keys()),
        "a" in words,
    ]
    return found


def parametrizations(package):
    """Tensors that are computed of others."""
    nn = package.nn
    parametrize = nn.utils.parametrize

    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).T

        def right_inverse(self, x):
            return x.triu()

    class Twice(nn.Module):
        def forward(self, x):
            return 2 * x

        def right_inverse(self, x):
            return x / 2

    class Taller(nn.Module):
        def forward(self, x):
            return package.cat([x, x])

    layer = nn.Linear(2, 2)
    with package.no_grad():
        layer.weight.copy_(package.tensor([[1.0, 2.0], [3.0, 4.0]]))
        layer.bias.zero_()
    found = {}
    parametrize.register_parametrization(layer, "weight", Symmetric())
    found["symmetric"] = [layer.weight.tolist(), type(layer).__name__, list(layer.state_dict())]
    parametrize.register_parametrization(layer, "weight", Twice())
    found["twice"] = layer.weight.tolist()
    layer.weight = package.tensor([[2.0, 4.0], [4.0, 8.0]])
    found["assigned"] = [
        layer.weight.tolist(),
        layer.parametrizations.weight.original.tolist(),
        layer(package.ones(1, 2)).tolist(),
    ]
    layer(package.ones(1, 2)).sum().backward()
    found["gradient"] = layer.parametrizations.weight.original.grad.tolist()
    found["asked"] = [
        parametrize.is_parametrized(layer),
        parametrize.is_parametrized(layer, "bias"),
        parametrize.type_before_parametrizations(layer).__name__,
        repr(layer),
    ]
    parametrize.remove_parametrizations(layer, "weight")
    found["removed"] = [layer.weight.tolist(), type(layer).__name__, list(layer.state_dict())]
    nn.utils.parametrizations.weight_norm(layer, dim=1)
    found["norm"] = [
        [[name, list(one.shape)] for name, one in layer.named_parameters()],
        layer.parametrizations.weight.original0.tolist(),
    ]
    old = nn.Linear(2, 2)
    with package.no_grad():
        old.weight.copy_(package.tensor([[3.0, 0.0], [4.0, 2.0]]))
        old.bias.zero_()
    state = {
        "weight_g": package.tensor([[10.0, 1.0]]),
        "weight_v": old.weight.detach(),
        "bias": old.bias.detach(),
    }
    found["loaded"] = [str(layer.load_state_dict(state)), layer.weight.tolist()]
    calls = [
        lambda: parametrize.register_parametrization(layer, "none", Twice()),
        lambda: parametrize.register_parametrization(nn.Linear(2, 2), "weight", Taller()),
        lambda: parametrize.remove_parametrizations(layer, "bias"),
        lambda: parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False),
        lambda: layer.__getstate__(),
    ]
    found["errors"] = [_caught(call)[0] for call in calls]
    return found


SCRIPTS = [parametrizations, names, hooks, backward_hooks, state_hooks, errors, containers]
