"""PyTorch's own samples of its modules, given to PyTorch and to Genesis.

    python tests/ops/modules_suite.py [--device cuda] [PATTERN ...]

Takes each entry of PyTorch's database of modules (ModuleInfo) that has a namesake in genesis.nn.
Each sample is built in both with the same arguments, in float32 and float64, for training and for
evaluation. Compared are: the text; names, shapes and types of the state dict, which is loaded both
ways; parameters as they are made, by their mean and spread; results; gradients of inputs and
parameters, in float64 differentiated twice; buffers afterwards; copies; inputs that are
not contiguous; and `inplace`. What PyTorch refuses should be refused with the same kind of error.
PATTERN is a glob of names, as in "Conv*". Random modules are compared with a probability of 0.
PyTorch (tested with 2.15) and expecttest must be installed, which the test environment has not.
Each module has a process of its own. The exit status says whether all differences are KNOWN.
"""

from __future__ import annotations

import argparse
import copy
import fnmatch
import io
import json
import os
import pickle
import signal
import sys
import warnings
from collections import Counter
from inspect import signature

import torch
from opinfo_suite import (
    UnsupportedError,
    copied,
    difference,
    known,
    outcome,
    theirs_of,
    with_leaves,
    words,
)
from torch.nn.utils.rnn import PackedSequence
from torch.testing._internal.common_modules import ModuleErrorEnum, module_db

import genesis

SECONDS = 300  # for a module
DTYPES = (torch.float32, torch.float64)

# Differences that are meant: module, kind, what is in the text, and why.
INTERNAL = (
    "activation_relu_or_gelu",
    "call_super_init",
    "use_nested_tensor",
)  # attributes of PyTorch's own fast paths
KNOWN = [
    ("CTCLoss", "gradients", "", "PyTorch's is that of log_softmax()'s input"),
    ("CTCLoss", "values", "strided", "PyTorch ignores the stride of targets in a row"),
    ("Transformer*", "strides", "", "rows are added up contiguously, and stay so"),
    ("*", "text", "NonDynamicallyQuantizableLinear", "nothing is quantized: it is a Linear"),
    ("*", "error", "^RuntimeError.*here (Type|Value)Error", "a wrong type or value is named so"),
]


def largest(gradients):
    """The largest absolute value of all gradients."""
    sizes = [one.abs().nan_to_num().max() for one in gradients if one is not None and one.numel()]
    return max(sizes, default=torch.zeros(())).item()


def gradients_differ(theirs, ours, most, is_none_zero=False):
    """What differs between gradients of one leaf, or None. `most` is the largest of all leaves."""
    if is_none_zero and theirs is not None and ours is None:
        ours = genesis.zeros(theirs.shape, dtype=getattr(genesis, str(theirs.dtype)[6:]))
    if is_none_zero and theirs is None and ours is not None:
        theirs = torch.zeros_like(theirs_of(ours.detach()))
    if theirs is None or ours is None:
        return None if theirs is ours else f"{words(theirs)}, here {ours!r}"
    theirs, ours = theirs.detach(), theirs_of(ours.detach())
    found = difference(theirs, ours, theirs.dtype == torch.float64)
    if found or theirs.dtype == torch.float64 or theirs.numel() == 0:
        return found
    if torch.isclose(ours, theirs, 1e-4, 2e-5 * most + 1e-7, equal_nan=True).all():
        return None
    return f"values: {words(theirs.flatten()[:4])}, here {words(ours.flatten()[:4])}"


def transformer_layer(value, device):
    """A layer of a transformer, which TransformerEncoder takes as an argument."""
    made = genesis.nn.TransformerEncoderLayer(
        value.linear1.in_features,
        value.self_attn.num_heads,
        value.linear1.out_features,
        value.dropout.p,
        getattr(genesis.nn.functional, value.activation.__name__),
        value.norm1.eps,
        value.self_attn.batch_first,
        value.norm_first,
        value.linear1.bias is not None,
    )
    made.load_state_dict({key: copied(one, device) for key, one in value.state_dict().items()})
    return made.train(value.training)


def given(value, device, leaves):
    """Arguments as ours; `leaves` gets the tensors that require a gradient."""
    if isinstance(value, PackedSequence):
        parts = with_leaves(list(value), lambda one: copied(one, device), leaves)
        return genesis.nn.utils.rnn.PackedSequence(*parts)
    if isinstance(value, torch.nn.TransformerEncoderLayer):
        return transformer_layer(value, device)
    if isinstance(value, (list, tuple)):
        made = [given(one, device, leaves) for one in value]
        return made if isinstance(value, list) else tuple(made)
    if callable(value) and hasattr(genesis.nn.functional, getattr(value, "__name__", "")):
        return getattr(genesis.nn.functional, value.__name__)
    if isinstance(value, type) and value.__module__.startswith("torch.nn"):
        return getattr(genesis.nn, value.__name__)
    return with_leaves(value, lambda one: copied(one, device), leaves)


def theirs_given(value, leaves):
    if isinstance(value, (list, tuple)) and not isinstance(value, PackedSequence):
        made = [theirs_given(one, leaves) for one in value]
        return made if isinstance(value, list) else tuple(made)
    if isinstance(value, PackedSequence):
        return PackedSequence(*with_leaves(list(value), copied, leaves))
    return with_leaves(value, copied, leaves)


def flat(value):
    """The tensors and other parts of a result, in their order."""
    if isinstance(value, (list, tuple)):
        return [part for one in value for part in flat(one)]
    return [value]


def tamed(module):
    """A module whose dropout leaves all elements."""
    for one in module.modules():
        if type(one).__name__.endswith("Dropout"):
            one.p = 0.0
        if isinstance(getattr(one, "dropout", None), float):
            one.dropout = 0.0
    return module


class Sample:
    """A sample of a module, and what is compared of it."""

    def __init__(self, info, sample, dtype, training, device):
        self.theirs_class = info.module_cls
        self.ours_class = getattr(genesis.nn, info.module_cls.__name__)
        self.made, self.forward = sample.constructor_input, sample.forward_input
        self.dtype, self.training, self.device = dtype, training, device
        self.is_lazy = info.is_lazy
        self.has_second = dtype == torch.float64 and info.supports_gradgrad
        self.mine = getattr(genesis, str(dtype)[6:])

    def text(self):
        parts = [*self.made.args, *self.made.kwargs.items()]
        inputs = [*self.forward.args, *self.forward.kwargs.items()] if self.forward else []
        return f"{words(parts)[:150]} of {words(inputs)[:250]}"

    def theirs(self, **more):
        arguments = theirs_given(list(self.made.args), [])
        options = {key: theirs_given(one, []) for key, one in self.made.kwargs.items()}
        module = self.theirs_class(*arguments, **{**options, **more})
        module = tamed(module.to(self.dtype).train(self.training))
        if self.is_lazy:
            self.lazy_text = f"{module}, {list(module.state_dict())}"
            args, named = theirs_given(list(self.forward.args), []), self.forward.kwargs.items()
            with torch.no_grad():
                module(*args, **{key: theirs_given(one, []) for key, one in named})
        return module

    def ours(self, **more):
        arguments = given(list(self.made.args), self.device, [])
        options = {key: given(one, self.device, []) for key, one in self.made.kwargs.items()}
        module = self.ours_class(*arguments, **{**options, **more})
        module = tamed(module.to(self.device).to(self.mine).train(self.training))
        if self.is_lazy:
            text = f"{module}, {list(module.state_dict())}"
            if text != self.lazy_text:
                raise AssertionError(f"{self.lazy_text}, here {text}")
            args, named = given(list(self.forward.args), self.device, []), self.forward.kwargs
            with genesis.no_grad():
                module(*args, **{key: given(one, self.device, []) for key, one in named.items()})
        return module

    def pair(self):
        """Both modules with the same parameters, or (None, None) where both refuse."""
        theirs, refusal = outcome(self.theirs)
        ours, error = outcome(self.ours)
        if refusal is not None or error is not None:
            if refusal is None:
                self.say("refused", f"{type(error).__name__}: {error}")
            elif error is None:
                self.say("accepted", f"{type(refusal).__name__}: {refusal}")
            return None, None
        state = {key: copied(one, self.device) for key, one in theirs.state_dict().items()}
        _, error = outcome(lambda: ours.load_state_dict(state))
        if error is not None:
            self.say("state", f"{type(error).__name__}: {error}")
            return None, None
        return theirs, ours

    def compare(self, say):
        self.say = say
        theirs, ours = self.pair()
        if theirs is None:
            return
        self.compare_text(theirs, ours)
        self.compare_state(theirs, ours)
        self.compare_forward(theirs, ours, "")
        self.compare_copies(theirs, ours)
        if "inplace" in signature(self.theirs_class).parameters:
            self.compare_forward(self.theirs(inplace=True), self.ours(inplace=True), "in place: ")
        theirs, ours = self.pair()
        self.compare_forward(theirs, ours, "strided: ", is_strided=True)

    def compare_text(self, theirs, ours):
        if repr(theirs) != repr(ours):
            self.say("text", f"{theirs!r}, here {ours!r}")
        names, mine = list(signature(theirs.forward).parameters), signature(ours.forward).parameters
        if names != list(mine):
            self.say("arguments", f"forward({', '.join(names)}), here ({', '.join(mine)})")
        lost = [name for name in vars(theirs) if name[0] != "_" and not hasattr(ours, name)]
        lost = [name for name in lost if name not in INTERNAL]
        if lost:
            self.say("attributes", f"missing: {' '.join(lost)}")
        for name, value in vars(theirs).items():
            is_plain = isinstance(value, (bool, int, float, str, tuple, list, type(None)))
            if is_plain and name[0] != "_" and getattr(ours, name, value) != value:
                self.say("attributes", f"{name}: {value!r}, here {getattr(ours, name)!r}")

    def compare_state(self, theirs, ours):
        for kind in ("state_dict", "named_parameters", "named_buffers", "named_children"):
            names, mine = list(dict(getattr(theirs, kind)())), list(dict(getattr(ours, kind)()))
            if names != mine:
                self.say("state", f"{kind}: {names}, here {mine}")
        found = difference(
            list(theirs.state_dict().values()), list(ours.state_dict().values()), True
        )
        if found:
            self.say("state", found)
        for (name, one), two in zip(theirs.named_parameters(), ours.parameters(), strict=False):
            if one.requires_grad != two.requires_grad or not isinstance(two, genesis.nn.Parameter):
                self.say("state", f"{name}: {two!r}")
        back = {key: theirs_of(one) for key, one in ours.state_dict().items()}
        _, error = outcome(lambda: theirs.load_state_dict(back))
        if error is not None:
            self.say("state", f"PyTorch does not take ours: {error}")
        flags = [one.training for one in theirs.modules()], [one.training for one in ours.modules()]
        if flags[0] != flags[1]:
            self.say("state", f"training: {flags[0]}, here {flags[1]}")

    def inputs(self, is_strided):
        """Arguments of forward(), and the leaves among them: PyTorch's, then ours."""
        leaves, mine = [], []
        values = [list(self.forward.args), dict(self.forward.kwargs)]
        args, options = values[0], values[1]
        theirs = (
            theirs_given(args, leaves),
            {key: theirs_given(one, leaves) for key, one in options.items()},
        )
        ours = (
            given(args, self.device, mine),
            {key: given(one, self.device, mine) for key, one in options.items()},
        )

        def apart(value):
            """The same elements, every second place."""
            if isinstance(value, (torch.Tensor, genesis.Tensor)) and value.ndim:
                library = torch if isinstance(value, torch.Tensor) else genesis
                return library.stack([value, value], -1)[..., 1]
            return value

        if is_strided:
            theirs = list(map(apart, theirs[0])), {k: apart(v) for k, v in theirs[1].items()}
            ours = list(map(apart, ours[0])), {k: apart(v) for k, v in ours[1].items()}
        return theirs, leaves, ours, mine

    def compare_forward(self, theirs, ours, where, is_strided=False):
        if self.forward is None:
            return
        (args, options), leaves, (my_args, my_options), my_leaves = self.inputs(is_strided)
        if where.startswith("in place"):
            args, my_args = ([one.clone() for one in some] for some in (args, my_args))
        results, refusal = outcome(lambda: theirs(*args, **options))
        mine, error = outcome(lambda: ours(*my_args, **my_options))
        if error is None:
            _, error = outcome(lambda: [theirs_of(detached(one)) for one in flat(mine)])
        if refusal is not None or error is not None:
            if refusal is None:
                self.say("refused", f"{where}{type(error).__name__}: {error}")
            elif error is None:
                self.say("accepted", f"{where}{type(refusal).__name__}: {refusal}")
            return
        if type(results).__name__ != type(mine).__name__:
            self.say("structure", f"{where}{type(results).__name__}, here {type(mine).__name__}")
        found = difference(flat(results), [detached(one) for one in flat(mine)], True)
        if found:
            self.say(found.partition(":")[0], where + found)
            return
        if where.startswith("in place"):
            found = difference(args, list(map(detached, my_args)), True)
            if found:
                self.say("changed", f"{where}the inputs afterwards: {found}")
        buffers = list(theirs.buffers()), list(ours.buffers())
        found = difference(*buffers, True)
        if found:
            self.say("buffers", where + found)
        layouts = [
            (one.stride(), two.stride())
            for one, two in zip(flat(results), flat(mine), strict=True)
            if isinstance(one, torch.Tensor) and one.numel() and one.stride() != two.stride()
        ]
        if layouts:
            self.say("strides", f"{where}{layouts[0][0]}, here {layouts[0][1]}")
        pairs = list(zip(theirs.parameters(), ours.parameters(), strict=True))
        pairs = [one for one in pairs if one[0].requires_grad]
        leaves += [one for one, _ in pairs]
        my_leaves += [one for _, one in pairs]
        self.compare_gradients(where, leaves, flat(results), my_leaves, flat(mine))

    def compare_gradients(self, where, leaves, results, my_leaves, my_results):
        chosen = []
        for number, one in enumerate(results):
            if not isinstance(one, torch.Tensor):
                continue
            if one.requires_grad != my_results[number].requires_grad:
                self.say("gradients", f"{where}a result requires a gradient: {one.requires_grad}")
                return
            chosen += [number] if one.requires_grad else []
        if not chosen or not leaves:
            return
        seeds = [torch.randn_like(results[number]) for number in chosen]
        my_seeds = [copied(one, self.device) for one in seeds]
        if self.has_second:
            seeds = [one.requires_grad_() for one in seeds]
            my_seeds = [one.requires_grad_() for one in my_seeds]
        roots = [results[number] for number in chosen]
        my_roots = [my_results[number] for number in chosen]
        options = {"create_graph": self.has_second, "allow_unused": True}
        first, refusal = outcome(lambda: torch.autograd.grad(roots, leaves, seeds, **options))
        if refusal is not None:
            return
        mine, error = outcome(
            lambda: genesis.autograd.grad(my_roots, my_leaves, my_seeds, **options)
        )
        if error is not None:
            self.say("gradients", f"{where}{type(error).__name__}: {error}")
            return
        for number, pair in enumerate(zip(first, mine, strict=True)):
            found = gradients_differ(*pair, largest(first))
            if found:
                self.say("gradients", f"{where}leaf {number}: {found}")
                return
        if self.has_second:
            self.compare_second(where, first, mine, [*leaves, *seeds], [*my_leaves, *my_seeds])

    def compare_second(self, where, first, mine, leaves, my_leaves):
        chosen = [i for i, one in enumerate(first) if one is not None and one.requires_grad]
        if not chosen:
            return
        seeds = [torch.randn_like(first[i]) for i in chosen]
        theirs, refusal = outcome(
            lambda: torch.autograd.grad(
                [first[i] for i in chosen], leaves, seeds, allow_unused=True
            )
        )
        if refusal is not None:
            return
        kept = [n for n, i in enumerate(chosen) if mine[i].requires_grad]
        my_seeds = [copied(seeds[n], self.device) for n in kept]
        ours, error = outcome(
            lambda: (
                genesis.autograd.grad(
                    [mine[chosen[n]] for n in kept], my_leaves, my_seeds, allow_unused=True
                )
                if kept
                else [None] * len(theirs)
            )
        )
        if error is not None:
            self.say("second", f"{where}{type(error).__name__}: {error}")
            return
        found = [
            gradients_differ(*pair, largest(theirs), True)
            for pair in zip(theirs, ours, strict=True)
        ]
        for number, one in enumerate(found):
            if one:
                self.say("second", f"{where}leaf {number}: {one}")
                return

    def compare_copies(self, theirs, ours):
        """deepcopy(), pickle, and save() give a module with the same text and parameters."""
        for what, make in (
            ("deepcopy", copy.deepcopy),
            ("pickle", lambda module: pickle.loads(pickle.dumps(module))),
        ):
            _, refusal = outcome(lambda make=make: make(theirs))
            made, error = outcome(lambda make=make: make(ours))
            if error is not None:
                if refusal is None:
                    self.say("copies", f"{what}: {type(error).__name__}: {error}")
                continue
            pairs = list(made.state_dict().values()), list(ours.state_dict().values())
            is_same = all(map(genesis.equal, *pairs))
            if repr(made) != repr(ours) or not is_same:
                self.say("copies", f"{what}: {made!r}")
        file = io.BytesIO()
        genesis.save(ours.state_dict(), file)
        file.seek(0)
        made, error = outcome(lambda: ours.load_state_dict(genesis.load(file)))
        if error is not None:
            self.say("copies", f"save: {type(error).__name__}: {error}")


def detached(value):
    return value.detach() if isinstance(value, genesis.Tensor) else value


def compare_beginnings(sample, say, times=40):
    """Parameters as they are made: the same constants, or about the same mean and spread."""
    torch.manual_seed(1)
    genesis.manual_seed(1)
    if outcome(sample.theirs)[1] or outcome(sample.ours)[1]:
        return
    made = [[sample.theirs().state_dict() for _ in range(times)]]
    made += [[sample.ours().state_dict() for _ in range(times)]]
    for name in made[0][0]:
        theirs = torch.stack([one[name].double() for one in made[0]]).flatten()
        ours = torch.stack([theirs_of(one[name]).double() for one in made[1]]).flatten()
        if theirs.numel() < times * 4 and theirs.unique().numel() > 1:
            continue
        if theirs.shape != ours.shape:
            return
        if theirs.numel() == 0:
            continue
        spread, mine = theirs.std().item(), ours.std().item()
        far = theirs.abs().max().item(), ours.abs().max().item()
        noise = 6 * max(spread, 1e-12) / theirs.numel() ** 0.5
        is_near = abs((theirs.mean() - ours.mean()).item()) <= noise
        if not is_near or abs(spread - mine) > 2 * noise or abs(far[0] - far[1]) > far[0] * 0.4:
            say(
                "beginning",
                f"{name}: spread {spread:.4}, most {far[0]:.4}, here {mine:.4}, {far[1]:.4}",
            )


def compare_mistakes(info, dtype, training, device, say):
    made = info.module_error_inputs_func(
        info, device="cpu", dtype=dtype, requires_grad=False, training=training
    )
    for mistake in made:
        sample = Sample(info, mistake.module_error_input, dtype, training, device)
        where = sample.text()
        is_early = mistake.error_on == ModuleErrorEnum.CONSTRUCTION_ERROR

        def run(sample=sample, is_early=is_early):
            module = sample.ours()
            if not is_early:
                args = given(list(sample.forward.args), device, [])
                named = sample.forward.kwargs.items()
                result = module(*args, **{key: given(one, device, []) for key, one in named})
                [theirs_of(detached(one)) for one in flat(result)]

        def run_theirs(sample=sample, is_early=is_early):
            module = sample.theirs()
            if not is_early:
                module(*sample.forward.args, **sample.forward.kwargs)

        _, refusal = outcome(run_theirs)
        try:
            _, error = outcome(run)
        except UnsupportedError:
            continue
        if refusal is None:
            continue
        if error is None:
            say("accepted", f"{type(refusal).__name__}: {refusal}", where)
        elif not isinstance(error, type(refusal)):
            theirs = f"{type(refusal).__name__}: {refusal}"
            say("error", f"{theirs}, here {type(error).__name__}: {error}", where)
        else:
            say("same", "", "")


def run(info, device, write):
    names = {*signature(info.module_cls).parameters} - {"args", "kwargs"}
    if names - {*signature(getattr(genesis.nn, info.module_cls.__name__)).parameters}:
        write("arguments", f"{signature(info.module_cls)}", "the constructor")
    for dtype in DTYPES:
        for training in (True, False) if info.train_and_eval_differ else (True,):
            torch.manual_seed(1)
            options = {"device": "cpu", "dtype": dtype, "training": training}
            made = info.module_inputs_func(info, requires_grad=True, **options)
            for number, one in enumerate(made):
                sample = Sample(info, one, dtype, training, device)
                mode = "training" if training else "evaluation"
                where = f"{str(dtype)[6:]}, {mode}: {sample.text()}"
                said = []

                def say(kind, text, where=where, said=said):
                    said.append(kind)
                    write(kind, text, where)

                try:
                    sample.compare(say)
                    if number == 0 and dtype == torch.float32 and training:
                        compare_beginnings(sample, say)
                except UnsupportedError:
                    said.append("unsupported")
                    write("unsupported", "", where)
                if not said:
                    write("same", "", where)
            if info.module_error_inputs_func is not None:
                compare_mistakes(info, dtype, training, device, write)


def findings(info, device):
    """Kind, text and place of all that was found, from a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        with os.fdopen(writer, "w") as file:
            run(info, device, lambda *found: print(json.dumps(found), file=file, flush=True))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        found = [json.loads(line) for line in file]
    status = os.waitpid(child, 0)[1]
    return [*found, ["crash", f"status {status}", ""]] if status else found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    total: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    missing = []
    for info in module_db:
        name = info.module_cls.__name__
        if not any(fnmatch.fnmatch(name, pattern) for pattern in options.patterns):
            continue
        if not hasattr(genesis.nn, name):
            missing.append(name)
            continue
        total["modules"] += 1
        shown: Counter[str] = Counter()
        for kind, text, where in findings(info, options.device):
            why = None if kind in ("same", "unsupported") else known(name, kind, text, KNOWN)
            kind = kind if why is None else "known"
            total[kind] += 1
            shown[kind] += 1
            if why is not None:
                reasons[why, name] += 1
            elif kind not in ("same", "unsupported") and shown[kind] <= 3:
                print(f"{name}: {kind}: {text[:600]}\n    {where}", flush=True)
    for (why, name), count in sorted(reasons.items()):
        print(f"known: {name}: {why} ({count})")
    print(f"no namesake: {' '.join(missing) or 'none'}")
    print(dict(total))
    return int(bool(set(total) - {"modules", "same", "unsupported", "known"}))


if __name__ == "__main__":
    sys.exit(main())
