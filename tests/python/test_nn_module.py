"""Module, Parameter and containers: beside what PyTorch does, and what holds beyond that."""

import copy
import gc
import json
import pickle
import re
import weakref
from pathlib import Path

import module_scripts as scripts
import numpy
import pytest

import genesis
from genesis import nn

RECORDED = json.loads((Path(__file__).parent / "modules_recorded.json").read_text())


def as_here(text):
    """PyTorch's words for what has another name here."""
    text = text.replace("torch.FloatTensor", "genesis.Tensor").replace("torch.", "genesis.")
    text = text.replace("floating point or complex", "floating point")
    text = text.replace(" or Tensor-like object", "").replace("ParametersDict", "ParameterDict")
    text = text.replace("(torch Tensor", "(genesis Tensor").replace("is; ", "is ")
    text = re.sub(r"genesis\.Size\(\[(\d+)\]\)", r"(\1,)", text)
    return re.sub(r"genesis\.Size\(\[([\d, ]*)\]\)", r"(\1)", text)


@pytest.mark.parametrize("script", scripts.SCRIPTS, ids=lambda one: one.__name__)
def test_as_pytorch_does(script):
    found, wanted = json.loads(json.dumps(script(genesis))), RECORDED[script.__name__]
    if script is not scripts.errors:
        assert found == wanted
        return
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        if other is None:
            assert one is None
        else:
            assert one == [other[0], as_here(other[1])]


# ---- parameters ----


def test_a_parameter_is_a_tensor():
    data = genesis.tensor([1.0, 2.0])
    one = nn.Parameter(data)
    assert isinstance(one, genesis.Tensor) and type(one) is nn.Parameter
    assert one.requires_grad and one.is_leaf and not data.requires_grad
    data[0] = 5
    assert one.tolist() == [5, 2]  # the memory is the same
    for made in (one + 1, one.data, one.detach(), one[:1], one.sum(), one.T, one.clone(), -one):
        assert type(made) is genesis.Tensor
    assert not nn.Parameter(data, requires_grad=False).requires_grad
    assert nn.Parameter().shape == (0,)
    with genesis.no_grad():
        assert nn.Parameter(data).requires_grad
        assert one.add_(1) is one and one.mul_(2) is one
    assert one.to("cpu") is one and one.float() is one and one.contiguous() is one
    assert nn.Parameter(one) is not one and nn.Parameter(one).tolist() == one.tolist()
    assert repr(one) == "Parameter containing:\ntensor([12.,  6.], requires_grad=True)"
    with pytest.raises(TypeError, match="Parameter: data is a Tensor or None, not list"):
        nn.Parameter([1.0])
    with pytest.raises(RuntimeError, match="only floating types"):
        nn.Parameter(genesis.tensor([1]))
    assert nn.Parameter(genesis.tensor([1]), requires_grad=False).dtype is genesis.int64


def test_functions_take_parameters_as_tensors():
    one = nn.Parameter(genesis.tensor([[1.0, 2.0], [3.0, 4.0]]))
    x = genesis.tensor([[1.0, 1.0]])
    for made in (
        x @ one,
        genesis.cat([one, x]),
        genesis.where(one > 2, one, 0.0),
        2 * one,
        x - one,
    ):
        assert type(made) is genesis.Tensor and made.requires_grad
    assert genesis.is_tensor(one) and one.unbind()[0].tolist() == [1, 2]
    assert genesis.tensor(one).requires_grad is False and genesis.as_tensor(one) is one
    x[0] = one[1]
    assert x.tolist() == [[3, 4]]
    (made,) = genesis.autograd.grad(one.square().sum(), one)
    assert made.tolist() == [[2, 4], [6, 8]]
    assert genesis.zeros(2).copy_(one.data[0]).tolist() == [1, 2]
    assert genesis.tensor([2, 3])[nn.Parameter(genesis.tensor([1]), False)].tolist() == [3]


def test_a_parameter_has_attributes_and_weak_references():
    one = nn.Parameter(genesis.ones(2))
    one.is_decayed = False
    assert vars(one) == {"is_decayed": False}
    seen = weakref.ref(one)
    y = (one * one).sum()
    leaf = y.grad_fn.next_functions[0][0].next_functions[0][0]
    assert leaf.variable is one
    called = []
    one.register_hook(lambda grad: called.append(type(grad)))
    one.register_post_accumulate_grad_hook(lambda tensor: called.append(tensor is seen()))
    y.backward(retain_graph=True)
    assert called == [genesis.Tensor, True] and type(one.grad) is genesis.Tensor
    one.itself = one
    del one
    gc.collect()
    assert seen() is None
    assert leaf.variable is None


def test_subclasses_of_tensor():
    class Named(nn.Parameter):
        def __new__(cls, data, name):
            made = super().__new__(cls, data)
            made.name = name
            return made

    class Slots(genesis.Tensor):
        __slots__ = ()

    one = Named(genesis.ones(2), "one")
    assert one.name == "one" and isinstance(one, nn.Parameter) and type(one + 1) is genesis.Tensor
    layer = nn.Module()
    layer.one = one
    assert layer.one is one and list(layer.parameters()) == [one]
    other = genesis._C._make_subclass(Slots, genesis.ones(3))
    assert (other + 1).tolist() == [2, 2, 2] and not hasattr(other, "__dict__")
    assert type(Slots([1.0, 2.0])) is Slots and Slots(2, 3).shape == (2, 3)
    with pytest.raises(TypeError, match="Tensor: sizes, or one sequence"):
        Slots(None)
    with pytest.raises(TypeError, match="a subclass of Tensor and a Tensor are expected"):
        genesis._C._make_subclass(genesis.Tensor, genesis.ones(3))
    with pytest.raises(TypeError, match="a subclass of Tensor and a Tensor are expected"):
        genesis._C._make_subclass(int, genesis.ones(3))
    for _ in range(200):
        made = genesis._C._make_subclass(type("Own", (genesis.Tensor,), {}), genesis.ones(2))
        assert (made * 2).tolist() == [2, 2]


def test_copies_and_pickles_of_parameters():
    one = nn.Parameter(genesis.tensor([1.0, 2.0]), requires_grad=False)
    one.note = "kept"
    buffer = nn.Buffer(genesis.tensor([3.0]), persistent=False)
    copied = copy.deepcopy({"one": one, "again": one, "buffer": buffer})
    assert type(copied["one"]) is nn.Parameter and copied["one"] is copied["again"]
    assert copied["one"].tolist() == [1, 2] and not copied["one"].requires_grad
    assert type(copied["buffer"]) is nn.Buffer and not copied["buffer"].persistent
    made = pickle.loads(pickle.dumps([one, one, buffer]))
    assert made[0] is made[1] and type(made[0]) is nn.Parameter and made[0].note == "kept"
    assert made[0].tolist() == [1, 2] and not made[0].requires_grad
    assert type(made[2]) is nn.Buffer and made[2].persistent is False
    shared = copy.copy(one)
    assert type(shared) is nn.Parameter and shared.note == "kept" and shared is not one
    shared.fill_(4)
    assert one.tolist() == [4, 4] and copy.copy(buffer).persistent is False
    trained = nn.Parameter(genesis.ones(2))
    trained.sum().backward()
    assert copy.deepcopy(trained).grad is None and copy.deepcopy(trained).requires_grad


# ---- modules ----


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, 3)
        self.second.weight = nn.Parameter(self.first.weight.data.T.contiguous())
        self.register_buffer("steps", genesis.zeros(2))
        self.register_buffer("count", genesis.tensor(0))

    def forward(self, x):
        return self.second(self.first(x))


def test_copies_and_pickles_of_modules():
    net = Net()
    net.tied = net.first.weight
    net.eval()
    x = genesis.ones(2, 3)
    for made in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert made.tied is made.first.weight and made.tied is not net.tied
        assert not made.training and not made.second.training
        assert made(x).tolist() == net(x).tolist()
        assert list(made.state_dict()) == list(net.state_dict())
    net.register_forward_hook(hooked)
    assert pickle.loads(pickle.dumps(net))(x) == 3


def hooked(module, args, output):
    return 3


def test_conversions_keep_parameters():
    net = Net()
    net(genesis.ones(1, 3)).sum().backward()
    before, gradients = list(net.parameters()), [one.grad for one in net.parameters()]
    assert net.double() is net
    for one, kept, gradient in zip(net.parameters(), before, gradients, strict=True):
        assert one is kept and one.dtype is genesis.float64 and one.requires_grad
        assert one.grad is gradient and gradient.dtype is genesis.float64
    assert net.steps.dtype is genesis.float64 and net.count.dtype is genesis.int64
    for call, dtype in (
        (net.half, genesis.float16),
        (net.bfloat16, genesis.bfloat16),
        (net.float, genesis.float32),
        (lambda: net.to(genesis.float64), genesis.float64),
        (lambda: net.to("cpu", genesis.float32, non_blocking=True), genesis.float32),
        (lambda: net.to(dtype=genesis.float16), genesis.float16),
        (lambda: net.to(genesis.ones(1, dtype=genesis.float64)), genesis.float64),
        (lambda: net.to(device="cpu"), genesis.float64),
        (lambda: net.to(tensor=genesis.ones(1)), genesis.float32),
        (net.cpu, genesis.float32),
    ):
        assert call() is net
        assert {one.dtype for one in net.parameters()} == {dtype}
        assert {one.grad.dtype for one in net.parameters()} == {dtype}
    gradient = net.first.bias.grad
    with pytest.raises(ValueError, match="its type is floating"):
        net.type(genesis.int64)
    assert net.first.bias.grad is gradient
    net.type(genesis.float64)
    assert net.count.dtype is genesis.float64
    net.float()
    net(genesis.ones(1, 3)).sum().backward()  # gradients add up in the new type
    assert net.first.bias.grad.dtype is genesis.float32
    with pytest.raises(TypeError, match="no argument 'some'"):
        net.to(some=1)
    empty = Net().to_empty(device="cpu")
    assert empty.first.weight.shape == (4, 3) and isinstance(empty.first.weight, nn.Parameter)


SIMULATED = """
import copy
import genesis as g
from genesis import nn
net = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 2)))
weight, x = net[0].weight, g.ones(2, 3)
net(x).sum().backward()
wanted = weight.grad.tolist()
assert net.cuda() is net and net[0].weight is weight
assert str(weight.device) == str(weight.grad.device) == "cuda:0"
assert net.state_dict()["1.0.bias"].is_cuda
net(x.cuda()).sum().backward()
assert g.allclose(weight.grad.cpu(), 2 * g.tensor(wanted), rtol=1e-4)
other = copy.deepcopy(net).cpu()
net.load_state_dict(other.state_dict())
assert weight.is_cuda and other[0].weight.tolist() == weight.tolist()
net.half().float().to("cpu")
assert weight.grad.device.type == "cpu" and net(x).device.type == "cpu"
layer = nn.Linear(2, 2, device="cuda")
seen = []
layer.register_full_backward_hook(lambda module, given, grads: seen.append(given[0].is_cuda))
layer(g.ones(1, 2, device="cuda", requires_grad=True)).sum().backward()
assert layer.weight.is_cuda and seen == [True]
waiting = layer.weight.detach() * 0 + 3
layer.weight.grad = None
layer.weight.data = g.zeros(2, 2)
assert waiting.tolist() == [[3, 3], [3, 3]] and layer.weight.tolist() == [[0, 0], [0, 0]]
"""


def test_modules_on_a_gpu(fresh):
    fresh(SIMULATED, GENESIS_CUDA_DRIVER="sim")


def test_a_parameter_of_a_graph_is_converted():
    layer = nn.Linear(2, 1, bias=False)
    y = layer(genesis.ones(1, 2)).sum()
    x, values = genesis.ones(1, 2, requires_grad=True), layer.weight.tolist()
    z = (layer.weight * x).sum()
    layer.double()
    y.backward()
    assert layer.weight.grad.dtype is genesis.float64 and layer.weight.grad.tolist() == [[1, 1]]
    z.backward()
    assert x.grad.tolist() == values  # those of the forward pass
    layer(genesis.ones(1, 2, dtype=genesis.float64)).backward()
    assert layer.weight.grad.tolist() == [[3, 3]]


def test_gradients_of_modules():
    net = Net()
    net(genesis.ones(1, 3)).sum().backward()
    kept = net.first.weight.grad
    net.zero_grad(set_to_none=False)
    assert net.first.weight.grad is kept and kept.abs().sum().item() == 0
    net.zero_grad()
    assert all(one.grad is None for one in net.parameters())
    assert net.requires_grad_(False) is net
    assert not any(one.requires_grad for one in net.parameters())
    assert not net(genesis.ones(1, 3)).requires_grad


def test_states_are_copied_or_assigned():
    net, other = Net(), Net().double()
    kept = net.first.weight
    net.load_state_dict(other.state_dict())
    assert net.first.weight is kept and kept.dtype is genesis.float32
    assert kept.tolist() == other.first.weight.float().tolist()
    net.first.weight.requires_grad_(False)
    net.load_state_dict(other.state_dict(), assign=True)
    assert net.first.weight is not kept and net.first.weight.dtype is genesis.float64
    assert isinstance(net.first.weight, nn.Parameter) and not net.first.weight.requires_grad
    assert net.steps.dtype is genesis.float64
    state = net.state_dict()
    assert type(state["first.weight"]) is genesis.Tensor
    assert not state["first.bias"].requires_grad
    state["first.bias"].fill_(7)
    assert net.first.bias.tolist() == [7] * 4  # the memory is the same
    assert net.state_dict(keep_vars=True)["first.bias"] is net.first.bias
    scalar = nn.Module()
    scalar.register_buffer("one", genesis.tensor(0.0))
    scalar.load_state_dict({"one": genesis.tensor([3.0])})  # as very old states have it
    assert scalar.one.item() == 3
    found = net.load_state_dict({"first.bias": genesis.ones(4), "more": 1}, strict=False)
    assert found.missing_keys[0] == "steps" and found.unexpected_keys == ["more"]
    assert "missing_keys=['steps'" in repr(found)


def test_extra_state():
    class Extra(nn.Module):
        def __init__(self, value):
            super().__init__()
            self.value = value

        def get_extra_state(self):
            return {"value": self.value}

        def set_extra_state(self, state):
            self.value = state["value"]

    one, other = nn.Sequential(Extra(1)), nn.Sequential(Extra(2))
    assert dict(other.state_dict()) == {"0._extra_state": {"value": 2}}
    one.load_state_dict(other.state_dict())
    assert one[0].value == 2
    with pytest.raises(RuntimeError, match="Module has no extra state"):
        nn.Module().get_extra_state()


def test_attributes():
    net = Net()
    assert {"first", "steps", "forward", "training"} <= set(dir(net))
    net.steps = genesis.ones(1)
    assert net._buffers["steps"].tolist() == [1]
    net.first = None
    assert net.first is None and [name for name, _ in net.named_children()] == ["second"]
    net.first = nn.Parameter(genesis.ones(1))  # a parameter in a module's place
    assert "first" not in net._modules and net.first.tolist() == [1]
    net.first = None
    assert "first" in net._parameters
    del net.first
    assert not hasattr(net, "first")
    net.made = nn.Buffer(genesis.ones(2), persistent=False)
    assert "made" not in net.state_dict() and "made" in dict(net.named_buffers())
    net.made = nn.Buffer(genesis.ones(2))
    assert "made" in net.state_dict()
    net.plain = 3
    assert net.__dict__["plain"] == 3
    net.plain = nn.Identity()
    assert "plain" not in net.__dict__
    del net.plain, net.steps
    assert not hasattr(net, "steps")


def test_a_class_may_find_other_attributes():
    class Wrapper(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

    wrapper = Wrapper(nn.Linear(2, 3))
    assert wrapper.out_features == 3 and wrapper.weight is wrapper.inner.weight
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'weigth'") as caught:
        _ = wrapper.weigth
    assert caught.value.name == "weigth"
    assert nn.Module.__getattr__(wrapper, "inner") is wrapper.inner


def test_names_that_a_class_knows():
    class One(nn.Module):
        fixed = None

        def __init__(self, kind):
            super().__init__()
            if kind == "parameter":
                self.value = nn.Parameter(genesis.ones(1))
            elif kind == "module":
                self.value = nn.Identity()
            elif kind == "plain":
                self.value = 3
            self.fixed = nn.Identity()

    one, two, three, four = (One(kind) for kind in ("parameter", "module", "plain", "none"))
    assert not hasattr(One, "value") and not hasattr(four, "value")
    with pytest.raises(AttributeError, match="'One' object has no attribute 'value'"):
        _ = four.value
    assert isinstance(one.value, nn.Parameter) and isinstance(two.value, nn.Identity)
    assert three.value == 3 and vars(three)["value"] == 3
    assert one.fixed is None  # the class comes first, as everywhere in Python
    one._parameters["value"] = None
    assert one.value is None
    del one._parameters["value"], two.value, three.value
    assert not any(hasattr(module, "value") for module in (one, two, three))
    with pytest.raises(AttributeError, match="'One' object has no attribute 'value'"):
        del three.value
    one.value = genesis.ones(2)
    assert vars(one)["value"].tolist() == [1, 1]

    class Other(One):
        value = property(lambda self: 7)

    assert Other("none").value == 7
    for place in range(150):
        setattr(four, f"layer{place}", nn.Identity())
    assert isinstance(four.layer149, nn.Identity) and four.layer0 is four._modules["layer0"]
    kept = pickle.loads(pickle.dumps(vars(One)["value"]))
    assert kept.__get__(one) is one.value
    copied = pickle.loads(pickle.dumps(Net()))
    assert copied.first.weight is copied.first._parameters["weight"]
    with pytest.raises(ValueError, match="the part is 0, 1 or 2"):
        genesis._C._ModuleAttribute("value", 3)


def test_attributes_of_classes_come_first():
    class One(nn.Module):
        def __init__(self, names):
            super().__init__()
            for name in names:
                setattr(self, name, nn.Identity())

    class Mixin:
        early, late = 1, property(lambda self: 2)

    One(["early"])
    assert "early" in vars(One)

    class Both(One, Mixin):
        pass

    One(["late"])  # a class that has it is there already
    assert "late" not in vars(One)
    both = Both([])
    assert both.early == 1 and both.late == 2 and Both.early == 1
    both.early = 5
    assert both.early == 5
    plain = nn.Module()
    plain.some_name = nn.Identity()
    assert "some_name" not in vars(nn.Module) and isinstance(plain.some_name, nn.Identity)


def test_calls_give_keywords_on():
    class Sum(nn.Module):
        def forward(self, a, b=2, *, c=3):
            return a + b + c

    module = Sum()
    assert module(1) == 6 and module(1, 1) == 5 and module(a=1, c=0) == 3
    assert nn.Module.__call__(module, 1, c=1) == 4
    with pytest.raises(TypeError, match="forward"):
        module()

    class Twice(Sum):
        def __call__(self, *args, **kwargs):
            return 2 * super().__call__(*args, **kwargs)

    assert Twice()(1, c=1) == 8
    module.forward = lambda x: -x  # of one object
    assert module(3) == -3


def test_registration_hooks():
    log = []

    def hook(module, name, value):
        log.append(name)
        return nn.Parameter(value * 2) if name == "doubled" else None

    functions = nn.modules.module
    handles = [
        functions.register_module_parameter_registration_hook(hook),
        functions.register_module_buffer_registration_hook(hook),
        functions.register_module_module_registration_hook(hook),
    ]
    module = nn.Module()
    with genesis.no_grad():
        module.doubled = nn.Parameter(genesis.ones(1))
    module.register_buffer("buffer", None)
    module.child = nn.Identity()
    assert log == ["doubled", "buffer", "child"] and module.doubled.tolist() == [2]
    for one in handles:
        one.remove()
    module.more = nn.Identity()
    assert len(log) == 3


def test_handles_do_not_keep_modules_alive():
    module = nn.Identity()
    handle = module.register_forward_hook(hooked)
    restored = pickle.loads(pickle.dumps(handle))
    seen = weakref.ref(module)
    del module
    assert seen() is None
    handle.remove()
    restored.remove()


def test_modules_form_no_cycles():
    gc.collect()
    gc.disable()
    try:
        net = Net()
        net.register_full_backward_hook(lambda module, grad_input, grad_output: None)
        net.register_forward_hook(lambda module, args, output: output)
        x = genesis.ones(1, 3, requires_grad=True)
        net(x).sum().backward()
        seen = [weakref.ref(one) for one in (net, net.first, net.first.weight)]
        del net
        assert [one() for one in seen] == [None] * 3
    finally:
        gc.enable()


def test_backward_hooks_refuse_other_counts():
    for register, text in (
        ("register_full_backward_hook", "invalid number of grad_input, got 2, but expected 1"),
        ("register_full_backward_pre_hook", "invalid number of grad_output, got 2, but expected 1"),
    ):
        layer = nn.Linear(2, 2)
        getattr(layer, register)(lambda module, *grads: (grads[0][0], None))
        with pytest.raises(RuntimeError, match=text):
            layer(genesis.ones(1, 2, requires_grad=True)).sum().backward()
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda module, given, grads: (genesis.ones(1, 2),))
    with pytest.raises(RuntimeError, match="no input requires gradient should always return None"):
        layer(genesis.ones(1, 2)).sum().backward()


def test_backward_hooks_of_several_values():
    class Several(nn.Module):
        def forward(self, x, number, y):
            return x * number, "text", y * x

    log = []
    module = Several()
    module.register_full_backward_hook(
        lambda module, given, grads: log.append([one is None for one in (*given, *grads)])
    )
    x, y = genesis.ones(2, requires_grad=True), genesis.ones(2)
    first, text, second = module(x, 3, y)
    assert text == "text"
    (first.sum() + second.sum()).backward()
    assert log == [[False, True, True, False, True, False]] and x.grad.tolist() == [4, 4]
    with genesis.no_grad():
        module(x, 3, y)
    assert len(log) == 1
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple"):
        listing = nn.Identity()
        listing.register_full_backward_hook(print)
        listing([x])


def test_the_text_of_indented_modules():
    class Lines(nn.Module):
        def extra_repr(self):
            return "one\n\ntwo"

    net = nn.Sequential(Lines(), nn.Sequential())
    assert repr(net) == (
        "Sequential(\n  (0): Lines(\n    one\n\n    two\n  )\n  (1): Sequential()\n)"
    )
    values = nn.ParameterList([genesis.ones(2, 3), 4])
    assert repr(values) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [genesis.float32 of size 2x3]\n"
        "    (1): Object of type: int\n"
        ")"
    )


# ---- data ----


def test_what_is_assigned_to_data_may_have_another_type():
    one = nn.Parameter(genesis.ones(2, 3))
    view = one.detach()
    one.data = genesis.zeros(3, 2, dtype=genesis.float64)
    assert one.shape == (3, 2) and one.dtype is genesis.float64 and view.tolist() == [[1] * 3] * 2
    one.square().sum().backward()
    assert one.grad.shape == (3, 2)
    with pytest.raises(ValueError, match="data: the tensor has a gradient, which would not fit"):
        one.data = genesis.zeros(2, 2)
    one.data = genesis.ones(3, 2, dtype=genesis.float64)  # where it fits it stays
    assert one.grad is not None and one.tolist() == [[1, 1]] * 3
    with pytest.raises(ValueError, match="its type is floating"):
        one.grad = None
        one.data = genesis.zeros(3, 2, dtype=genesis.int64)
    with pytest.raises(ValueError, match="if it is a leaf"):
        (one * 2).data = genesis.zeros(3, 2)


def test_others_keep_the_memory_that_a_tensor_had():
    x = genesis.arange(4.0)
    array, view, imported = x.numpy(), memoryview(x), numpy.from_dlpack(x)
    x.data = genesis.zeros(2)
    made = [genesis.full((4,), 9.0) + 0 for _ in range(20)]
    assert array.tolist() == view.tolist() == imported.tolist() == [0, 1, 2, 3]
    assert len(made) == 20 and x.tolist() == [0, 0]


# ---- utils ----


@pytest.mark.parametrize("dim", [0, 1, -1, None])
def test_weight_norm(dim):
    layer = nn.Linear(3, 2)
    weight = layer.weight.detach().clone()
    assert nn.utils.weight_norm(layer, dim=dim) is layer
    shapes = {0: (2, 1), 1: (1, 3), -1: (), None: ()}
    assert layer.weight_g.shape == shapes[dim] and "weight" not in layer._parameters
    x = genesis.ones(4, 3)
    y = layer(x)
    assert (layer.weight - weight).abs().max().item() < 1e-6
    y.sum().backward()
    assert layer.weight_g.grad.shape == shapes[dim] and layer.weight_v.grad.shape == (2, 3)
    with genesis.no_grad():
        layer.weight_g.mul_(2)
    layer(x)
    assert (layer.weight - 2 * weight).abs().max().item() < 1e-6
    with pytest.raises(RuntimeError, match="two weight_norm hooks on the same parameter weight"):
        nn.utils.weight_norm(layer)
    nn.utils.remove_weight_norm(layer)
    assert isinstance(layer.weight, nn.Parameter) and not layer._forward_pre_hooks
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found in Linear"):
        nn.utils.remove_weight_norm(layer)


def test_parametrized_modules_are_copied_and_cached():
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
    copied = copy.deepcopy(layer)
    assert copied.weight.tolist() == layer.weight.tolist() and type(copied) is type(layer)
    assert copied.parametrizations.weight.original0 is not layer.parametrizations.weight.original0
    assert layer.weight is not layer.weight
    with nn.utils.parametrize.cached(), nn.utils.parametrize.cached():
        assert layer.weight is layer.weight
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(layer)
    buffered = nn.Module()
    buffered.register_buffer("one", genesis.ones(2))
    nn.utils.parametrize.register_parametrization(buffered, "one", nn.Identity())
    assert [name for name, _ in buffered.named_buffers()] == ["parametrizations.one.original"]
    with pytest.raises(RuntimeError, match="Identity does not implement right_inverse"):
        buffered.one = genesis.zeros(2)
    nn.utils.parametrize.remove_parametrizations(buffered, "one")
    assert type(buffered) is nn.Module and buffered.one.tolist() == [1, 1]


@pytest.mark.skipif(not hasattr(nn.functional, "normalize"), reason="there is no normalize")
def test_spectral_norm():
    layer = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3), n_power_iterations=30)
    weight = layer.weight.detach()
    assert numpy_norm(weight) == pytest.approx(1, abs=1e-3)
    layer(genesis.ones(1, 4)).sum().backward()
    assert layer.parametrizations.weight.original.grad.shape == (3, 4)
    layer.eval()
    kept = layer.parametrizations.weight[0]._u.tolist()
    assert layer.weight.shape == (3, 4) and layer.parametrizations.weight[0]._u.tolist() == kept
    with pytest.raises(ValueError, match="n_power_iterations to be positive"):
        nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
    with pytest.raises(IndexError, match="expected to be in range of"):
        nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2), dim=2)
    with pytest.raises(ValueError, match="has no parameter or buffer with name 'some'"):
        nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2), "some")
    transposed = nn.utils.parametrizations.spectral_norm(nn.ConvTranspose1d(2, 5, 3))
    assert transposed.parametrizations.weight[0]._u.shape == (5,)


def numpy_norm(matrix):
    return numpy.linalg.norm(matrix.numpy(), 2)


def test_parameters_as_a_vector():
    layer = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (9,) and vector.requires_grad
    kept = layer.weight
    nn.utils.vector_to_parameters(genesis.arange(9.0), layer.parameters())
    assert layer.weight is kept and kept.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert layer.bias.tolist() == [6, 7, 8]
    with pytest.raises(TypeError, match="expected genesis.Tensor, but got: list"):
        nn.utils.vector_to_parameters([1.0], layer.parameters())
