"""PyTorch's own samples of its operations, given to PyTorch and to Genesis.

    python tests/ops/opinfo_suite.py [--gradients] [--missing] [--device cuda] [--limit N]
        [--dtypes a,b] [PATTERN ...]

Takes each entry of PyTorch's database of operations (OpInfo) that has a namesake here: a function,
a method, or a method in place; those of nn.functional, linalg and special in the modules of these
names. --missing lists the others. Runs the database's samples through both, with and without out=,
and compares shapes, types and values; what PyTorch refuses should be refused. PATTERN is a glob of
names, N a bound for the samples of one operation and dtype: on the simulated GPU, which
GENESIS_CUDA_DRIVER names, 5 take some minutes. PyTorch (tested with 2.15) and expecttest must be
installed, which the test environment has not. Each operation has a process of its own. The exit
status says whether all differences are KNOWN.

With --gradients the samples that PyTorch can differentiate go forward and backward in both, with
the same random gradients of the results; in float64 the gradients are differentiated once more. In
the narrower types a gradient may be as far from PyTorch's in float64 as rounding explains, or as
PyTorch's own is. The differences that are meant are KNOWN_GRADIENTS.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import os
import re
import signal
import sys
from collections import Counter
from functools import partial
from inspect import signature

import torch
from torch.testing._internal.common_methods_invocations import op_db

import genesis
import genesis.nn.functional as F  # noqa: N812

SECONDS = 300  # for an operation
DTYPES = "float32,float64,float16,bfloat16,int64,int32,int16,int8,uint8,bool"
RANDOM = {"bernoulli", "exponential", "multinomial", "normal", "rand", "randn", "randint"}
RANDOM |= {"rand_like", "randn_like", "randint_like", "uniform"}
RANDOM |= {"empty", "empty_like", "empty_strided", "new_empty"}  # whose elements may be anything
RANDOM |= {"dropout", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "rrelu"}
RANDOM |= {"fractional_max_pool2d", "fractional_max_pool3d"}
TIES = {
    "argsort",
    "kthvalue",
    "median",
    "mode",
    "msort",
    "nanmedian",
    "sort",
    "topk",
}  # any of equal ones may be it
TOLERANCE = {  # relative, absolute: PyTorch's own sums are no better
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1e-5, 1e-5),
    torch.float16: (4e-3, 4e-3),
    torch.bfloat16: (3e-2, 3e-2),
}

# The database calls something else by the name, or looks at memory before a view's first element.
LEFT_OUT = "masked.* sparse.* norm.nuc normal.in_place "
LEFT_OUT += "as_strided.partial_views"

# Entries that take their arguments in another order than the function.
OURS = {
    "linalg.lstsq.grad_oriented": lambda a, b, driver: genesis.linalg.lstsq(a, b, driver=driver)[
        :2
    ],
    "linalg.pinv.singular": lambda a, b: genesis.linalg.pinv(a @ b.mT),
    "polygamma": lambda input, n: genesis.polygamma(n, input),
    "einsum": lambda operands, equation: genesis.einsum(equation, *operands),
    "embedding": lambda weight, index, **options: F.embedding(index, weight, **options),
    "embedding_bag": lambda weight, index, **options: F.embedding_bag(index, weight, **options),
    "where": lambda input, condition, other: genesis.where(condition, input, other),
}

# Differences that are meant: operation, kind, what is in the text, which ends with the type as in
# UINT8, and why.
KNOWN = [
    ("*", "refused", "lie at one address", "PyTorch writes to such views without seeing it"),
    ("*", "refused", "does not fit a tensor of", "out= is not resized"),
    ("*", "refused", "must be a tensor among the operands", "two numbers are Python's"),
    ("*", "refused", "'genesis.Tensor' object but received a", "the method of a number"),
    ("*", "accepted", "out tensor to have dtype|dtype for input and out", "out= may be wider"),
    ("*", "accepted", "dtype to be equal to src.dtype", "values are converted as copy_() does"),
    ("*", "accepted", "single memory location", "a view is whole when it comes to a GPU"),
    ("*", "refused", "convert it to a floating type|floating numbers, not", "layers are of those"),
    ("*", "refused", "there are no sparse gradients", "there are none"),
    ("addmv|baddbmm", "dtype|refused", "float32", "factors with fractions make fractions"),
    ("all|any", "dtype", "uint8", "the answer is bool, of uint8 as well"),
    ("aminmax", "accepted", "must not overlap", "the second stays"),
    ("arange", "accepted", "inconsistent with step", "it is empty, as Python's range is"),
    ("float_power", "accepted", "requires dtype Double", "results are stored as floating numbers"),
    ("linalg.cross", "accepted", "must have", "the inputs are broadcast"),
    ("nn.functional.batch_norm", "refused", "at least a batch and", "of no dimensions"),
    ("nn.functional.grid_sample", "refused", "bicubic", "of 4D input alone"),
    ("nn.functional.grid_sample", "values", "FLOAT16$", "coordinates are computed in float32"),
    ("nn.functional.group_norm", "accepted", "greater than 0", "nothing is divided by 0"),
    ("nn.functional.hardtanh", "dtype", "", "bounds with fractions make fractions"),
    ("nn.functional.hardtanh", "accepted", "cannot be greater", "as in clamp()"),
    ("nn.functional.interpolate*", "accepted", "not implemented for", "halves have antialias"),
    ("nn.functional.interpolate*|*upsample*", "values", "UINT8$", "it is rounded once"),
    ("nn.functional.m*pool*", "accepted", "Expected", "of no images nothing is computed"),
    ("nn.functional.scaled_dot*", "values", "FLOAT16$", "probabilities are rounded"),
    ("nn.functional.softsign", "values", " INT8$", "1 more than 127 is 128"),
    ("*_distance|*_loss", "values", "UINT8$", "differences of bytes are not bytes"),
    ("*polygamma*", "values", "here inf|nan, here -?0", "infinite at a pole, 0 at infinity"),
    ("*trapz|*trapezoid", "values", "INT8$", "differences of bytes are not bytes"),
    ("cov", "accepted", "weights", "weights of observations are not looked at"),
    ("matrix_exp|nextafter", "refused", "not defined for b?float16", "halves are not"),
    ("histc", "values", "", "PyTorch divides halves as halves"),
    ("index_add", "accepted", "source tensor shape", "the source is broadcast"),
    ("narrow", "accepted", "0-dim integral", "True is an integer"),
    ("scatter", "refused", "cannot be stored as", "fractions are not cut off"),
    ("sign", "values", "0.0, here nan", "the sign of NaN is NaN"),
    ("square", "dtype|accepted", "torch.bool|Long", "of bool it is bool"),
]


KNOWN_GRADIENTS = [
    ("nn.functional.ctc_loss", "values", "", "PyTorch's is that of log_softmax()'s input"),
    ("nn.functional.ctc_loss", "none", "has no gradient", "PyTorch has no second one, either"),
    ("linalg.eigvalsh", "values", "FLOAT32$", "eigenvectors are rounded"),
    ("nn.functional.scaled_dot*", "values", "FLOAT16$", "probabilities are rounded"),
    ("linalg.lstsq*", "lost", "", "residuals, and what is no number, have no gradient"),
    ("linalg.matrix_power", "lost", "", "the power 0 is the identity, which needs none"),
    ("linalg.norm*", "second", "nan, here 0.0", "at 0 it is 0, as the first one"),
    ("linalg.slogdet", "lost", "", "the sign has none"),
    ("cov", "values|second", "", "weights of float32 are float64 here, and not rounded between"),
]


# Results of which PyTorch's samples say what is unique.
GAUGED = {"eigh", "linalg.eigh", "linalg.svd", "svd"}

# Where the entries of a namespace have their namesakes.
HOMES = {
    "": genesis,
    "linalg": genesis.linalg,
    "nn.functional": genesis.nn.functional,
    "special": genesis.special,
}


class UnsupportedError(Exception):
    """A sample with something that Genesis has no word for: complex numbers, sparse layouts."""


def copied(value, device=None):
    """A copy of arguments, for PyTorch, or as ours; tensors keep their strides and offsets."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.ndim > 16 or value.is_complex():
            raise UnsupportedError
        value = value.resolve_neg()
        copy = torch.empty(0, dtype=value.dtype)
        place = value.storage_offset(), value.size(), value.stride()
        copy.set_(value.untyped_storage().clone(), *place)
        return copy if device is None else genesis.from_dlpack(copy).to(device)
    if isinstance(value, (list, tuple)):
        made = [copied(one, device) for one in value]
        return made if isinstance(value, list) else tuple(made)
    if device is None:
        return value
    if isinstance(value, torch.dtype) and hasattr(genesis, str(value)[6:]):
        return getattr(genesis, str(value)[6:])
    if isinstance(value, (complex, torch.dtype, torch.layout, torch.memory_format)):
        raise UnsupportedError
    return device if isinstance(value, torch.device) else value


def theirs_of(value):
    if isinstance(value, genesis.Tensor):
        return torch.from_dlpack(value.cpu().clone())
    return getattr(torch, value.name) if isinstance(value, genesis.dtype) else value


def difference(theirs, ours, has_values):
    """What differs between two results, or None."""
    if isinstance(theirs, (list, tuple)):
        if not isinstance(ours, (list, tuple)) or len(theirs) != len(ours):
            return f"structure: {len(theirs)} results, here {ours!r}"
        found = (difference(*pair, has_values) for pair in zip(theirs, ours, strict=True))
        return next((one for one in found if one), None)
    ours = theirs_of(ours)
    if not isinstance(theirs, torch.Tensor) or not isinstance(ours, torch.Tensor):
        is_same = theirs is ours or theirs == ours or (theirs != theirs and ours != ours)
        if isinstance(theirs, float) and isinstance(ours, float):
            is_same = is_same or math.isclose(theirs, ours, rel_tol=1e-2)
        return None if is_same else f"values: {theirs!r}, here {ours!r}"
    if theirs.shape != ours.shape:
        return f"shape: {tuple(theirs.shape)}, here {tuple(ours.shape)}"
    if theirs.dtype != ours.dtype:
        return f"dtype: {theirs.dtype}, here {ours.dtype}"
    if not has_values:
        return None
    relative, absolute = TOLERANCE.get(theirs.dtype, (0, 0))
    is_wrong = ~torch.isclose(ours, theirs, relative, absolute, equal_nan=True)
    if not is_wrong.any():
        return None
    at = tuple(is_wrong.nonzero()[0].tolist())
    count = f"{int(is_wrong.sum())} of {is_wrong.numel()}, at {at}"
    return f"values: {count} {theirs[at].item()!r}, here {ours[at].item()!r}"


def words(value):
    if isinstance(value, torch.Tensor):
        strides = "" if value.is_contiguous() else f"/{value.stride()}"
        elements = f"={value.tolist()}" if value.numel() <= 4 else ""
        return f"{str(value.dtype)[6:]}{tuple(value.shape)}{strides}{elements}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(words, value)) + "]"
    return repr(value)


def outcome(call):
    try:
        return call(), None
    except UnsupportedError:
        raise
    except Exception as error:
        return None, error


class Operation:
    """An entry of the database, and the ways to call it: PyTorch's and ours."""

    def __init__(self, info):
        self.info = info
        home, _, self.name = info.name.rpartition(".")
        self.full_name = ".".join(filter(None, (info.name, info.variant_test_name)))
        self.has_values = self.name not in RANDOM
        ours = OURS.get(self.full_name) or OURS.get(self.name)
        ours = ours or getattr(HOMES.get(home, genesis), self.name, None)
        is_method = home not in HOMES or home in ("", "special")
        method = getattr(genesis.Tensor, self.name, None) if is_method else None
        in_place = getattr(genesis.Tensor, self.name + "_", None)
        if home == "nn.functional" and callable(ours):
            has_word = "inplace" in signature(ours).parameters
            in_place = partial(ours, inplace=True) if has_word else in_place
        self.ways = []
        if callable(ours) and not isinstance(ours, (type, genesis.dtype)):
            self.ways.append(("function", info.op, ours))
            if info.supports_out and self.has_values and "out" in signature(ours).parameters:
                self.ways.append(("out", info.op, ours))
        if callable(method) and (info.method_variant or not self.ways):
            self.ways.append(("method", info.method_variant or info.op, method))
        if callable(in_place) and info.inplace_variant:
            self.ways.append(("in place", info.inplace_variant, in_place))

    def has_gradients(self):
        return self.info.supports_autograd and self.has_values

    def tamed(self, sample):
        """A sample whose dropout leaves all elements."""
        if self.name == "scaled_dot_product_attention" and "dropout_p" in sample.kwargs:
            sample.kwargs["dropout_p"] = 0.0
        if self.name == "multi_head_attention_forward":
            sample.args = (*sample.args[:9], 0.0, *sample.args[10:])
        return sample

    def has_values_of(self, sample):
        """Whether both libraries must give the same values."""
        is_still = sample.kwargs.get("training") is False or sample.kwargs.get("p") in (0, 1)
        return self.has_values or ("drop" in self.name and is_still)

    def gradient_samples(self, dtypes, limit):
        """(dtype, sample): those with tensors that require a gradient."""
        for name in dtypes:
            dtype = getattr(torch, name)
            if dtype.is_floating_point and dtype in self.info.supported_backward_dtypes("cpu"):
                torch.manual_seed(1)
                made = self.info.sample_inputs("cpu", dtype, requires_grad=True)
                for _, sample in zip(range(limit), made, strict=False):
                    yield name, self.tamed(sample)

    def samples(self, dtypes, limit):
        """(dtype, kind, sample): those of the database, its references, and its mistakes."""
        for name in dtypes:
            dtype = getattr(torch, name)
            if dtype not in self.info.supported_dtypes("cpu"):
                continue
            torch.manual_seed(1)
            has_references = self.info.reference_inputs_func is not None
            for kind in ("sample", "reference") if has_references else ("sample",):
                made = getattr(self.info, f"{kind}_inputs")("cpu", dtype, requires_grad=False)
                for _, sample in zip(range(limit), made, strict=False):
                    yield name, kind, self.tamed(sample)
        if self.info.error_inputs_func is not None:
            for mistake in self.info.error_inputs("cpu"):
                yield "-", "error", mistake.sample_input

    def compare(self, way, theirs, ours, sample, device):
        """What came of it, in a word and in many."""
        given = [sample.input, *sample.args]
        mine = copied(given, device)
        options = {key: copied(one, device) for key, one in sample.kwargs.items()}
        options.pop("requires_grad", None)
        theirs_given = copied(given)
        theirs_options = {key: copied(one) for key, one in sample.kwargs.items()}
        expected, refusal = outcome(lambda: theirs(*theirs_given, **theirs_options))
        if way == "out":
            if refusal is not None or "out" in options or not isinstance(expected, torch.Tensor):
                raise UnsupportedError
            if not expected.is_complex():
                room = torch.ones_like(expected)
                room = room.mT.contiguous().mT if room.ndim > 1 else room
                options["out"] = copied(room, device)

        def run():
            made = ours(*mine, **options)
            theirs_of(made)  # what waits is computed, and reports what is wrong
            return made

        made, error = outcome(run)
        if refusal is not None and error is None:
            kind = "lenient" if isinstance(refusal, TypeError) else "accepted"
            return kind, f"{type(refusal).__name__}: {refusal}"
        if error is not None:
            is_odd = isinstance(error, (AttributeError, SystemError, AssertionError))
            kind = "odd" if is_odd else "refused" if refusal is None else "same"
            return kind, f"{type(error).__name__}: {error}"
        results = expected if isinstance(expected, (list, tuple)) else [expected]
        if any(isinstance(one, torch.Tensor) and one.is_complex() for one in results):
            raise UnsupportedError
        if self.name in TIES:
            made, expected = self.untied(made, expected, given, mine, sample.kwargs)
        if self.full_name in GAUGED:
            process = sample.output_process_fn_grad
            expected, made = process(expected), process(tuple(map(theirs_of, made)))
        found = difference(expected, made, self.has_values_of(sample))
        if found and "values" in found and self.is_as_near(theirs, given, sample, expected, made):
            found = None
        is_pure = way in ("function", "method") and self.name[-1] != "_" and "out" not in options
        if not found and is_pure:
            named = [key for key in theirs_options if key in options]
            after = [theirs_given, [theirs_options[key] for key in named]]
            found = difference(after, [mine, [options[key] for key in named]], True)
            return ("changed", f"changed: {found}") if found else ("same", "")
        return (found.partition(":")[0], found) if found else ("same", "")

    def is_as_near(self, theirs, given, sample, expected, made):
        """Whether results are about as near to PyTorch's in float64 as its own are."""
        options = {key: wide(one) for key, one in sample.kwargs.items()}
        exact, refusal = outcome(lambda: theirs(*map(wide, given), **options))
        if refusal is not None:
            return False
        for one, ours, right in zip(*map(tensors_in, (expected, made, exact)), strict=True):
            if not one.is_floating_point() or one.shape != right.shape:
                return False
            rounding = torch.finfo(one.dtype).eps
            ours, right, one = theirs_of(ours).double(), right.double(), one.double()
            far, most = (ours - right).abs().max(), (one - right).abs().max()
            if not far <= 1.5 * most + rounding * right.abs().max():
                return False
        return True

    def untied(self, made, expected, given, mine, options):
        """Results with the elements that indices name in place of these."""
        places = given[2:] if self.name in ("kthvalue", "topk") else given[1:]
        dim = options.get("dim", places[0] if places else -1)
        if dim is None or (isinstance(expected, torch.Tensor) and self.name != "argsort"):
            return made, expected

        def named(x, indices):
            x, indices = theirs_of(x), theirs_of(indices)
            wide = indices if indices.ndim == x.ndim else indices.unsqueeze(dim)
            return x.gather(dim, wide) if x.ndim else x

        if isinstance(expected, torch.Tensor):
            return named(mine[0], made), named(given[0], expected)
        ours, theirs = named(mine[0], made[1]), named(given[0], expected[1])
        return (made[0], ours), (expected[0], theirs)

    def run_gradients(self, dtypes, limit, device, say):
        ways = [one for one in self.ways if one[0] != "out"]
        has_function = ways[0][0] == "function"
        ways = [one for one in ways if not (has_function and one[0] == "method")]
        for dtype, sample in self.gradient_samples(dtypes, limit):
            for number, way in enumerate(ways):
                pair = GradientPair(self, way, sample, device)
                try:
                    kind, text = pair.compare(dtype == "float64" and self.info.supports_gradgrad)
                except UnsupportedError:
                    kind, text = "unsupported", ""
                shown = [sample.input, *sample.args, *sample.kwargs.items()]
                given = words(shown)[:400] if kind not in ("same", "unsupported") else ""
                say([kind, text[:400], f"{way[0]}, {dtype}: {given}", number == 0])

    def run(self, dtypes, limit, device, say):
        for dtype, sort, sample in self.samples(dtypes, limit):
            for way, theirs, ours in self.ways:
                try:
                    kind, text = self.compare(way, theirs, ours, sample, device)
                except UnsupportedError:
                    kind, text = "unsupported", ""
                shown = [sample.input, *sample.args, *sample.kwargs.items()]
                given = words(shown)[:400] if kind not in ("same", "unsupported") else ""
                is_first = way == self.ways[0][0]
                say([kind, text[:400], f"{way}, {dtype} {sort}: {given}", is_first])


# ---- gradients ----


def with_leaves(value, make, leaves):
    """Arguments as `make` copies them; the tensors that require a gradient are put in `leaves`."""
    if isinstance(value, (list, tuple)):
        made = [with_leaves(one, make, leaves) for one in value]
        return made if isinstance(value, list) else tuple(made)
    if not isinstance(value, torch.Tensor):
        return make(value)
    copy = make(value.detach())
    if value.requires_grad:
        leaves.append(copy.requires_grad_())
    return copy


def wide(value):
    if isinstance(value, (list, tuple)):
        return type(value)(map(wide, value))
    copy = copied(value)
    is_floating = isinstance(copy, torch.Tensor) and copy.is_floating_point()
    return copy.double() if is_floating else copy


def tensors_in(value):
    if isinstance(value, (list, tuple)):
        return [tensor for one in value for tensor in tensors_in(one)]
    return [value] if isinstance(value, (torch.Tensor, genesis.Tensor)) else []


def of_equals(gradient, values):
    """The sums of the gradients of equal elements."""
    if values is None or values.numel() == 0:
        return gradient
    places = values.flatten().unique(return_inverse=True)[1]
    sums = torch.zeros(values.numel(), dtype=torch.float64)
    return sums.index_add(0, places, gradient.flatten().double()).to(gradient.dtype)


def gradient_difference(theirs, ours, exact, values):
    """What differs between gradients of one input. None is 0; `exact` is PyTorch's in float64.

    With the input's `values` the gradients of equal elements are summed before.
    """
    if theirs is None and ours is None:
        return None
    ours = theirs_of(ours.detach()) if ours is not None else torch.zeros_like(theirs)
    theirs = theirs.detach() if theirs is not None else torch.zeros_like(ours)
    exact = exact.detach().double() if exact is not None else theirs.double()
    if theirs.shape == ours.shape:
        theirs, ours, exact = (of_equals(one, values) for one in (theirs, ours, exact))
    found = difference(theirs, ours, theirs.dtype == torch.float64)
    if found or theirs.dtype == torch.float64 or not theirs.numel():
        return found
    rounding = torch.finfo(theirs.dtype).eps
    as_far = (theirs.double() - exact).abs().nan_to_num(0, 0).max()
    most = exact.abs().nan_to_num(0, 0).max()
    far = (ours.double() - exact).abs()
    is_right = far <= rounding * (2 * exact.abs() + most + 1 / 16) + 3 * as_far
    is_right |= (ours == theirs) | (ours == exact.to(ours.dtype))
    is_right |= ours.isnan() & (exact.isnan() | theirs.isnan())
    if is_right.all():
        return None
    at = tuple((~is_right).nonzero()[0].tolist())
    count = f"{int((~is_right).sum())} of {is_right.numel()}, at {at}"
    shown = f"{theirs[at].item()!r}, exactly {exact[at].item()!r}, here {ours[at].item()!r}"
    return f"values: {count} {shown}"


def refused(error):
    kind = "none" if "has no gradient" in str(error) else "refused"
    return kind, f"{type(error).__name__}: {error}"


class GradientPair:
    """A sample that goes forward and backward in both."""

    def __init__(self, operation, way, sample, device):
        name, self.theirs, self.ours = way
        self.is_in_place = name == "in place" or operation.name[-1] == "_"
        self.has_ties = operation.name in TIES
        is_gauged = operation.full_name in GAUGED
        self.process = sample.output_process_fn_grad if is_gauged else lambda results: results
        self.sample, self.device = sample, device

    def forward(self, call, make):
        """The leaves, and the tensors of the result."""
        leaves: list = []
        first, *rest = with_leaves([self.sample.input, *self.sample.args], make, leaves)
        options = {
            key: with_leaves(one, make, leaves)
            for key, one in self.sample.kwargs.items()
            if key != "requires_grad"
        }
        if self.is_in_place:
            first = first.clone()
        return leaves, tensors_in(self.process(call(first, *rest, **options)))

    def mine(self):
        """The same here; where it fails with gradients alone, what it says."""

        def run():
            return self.forward(self.ours, lambda value: copied(value, self.device))

        made, error = outcome(run)
        if error is not None:
            with genesis.no_grad():
                _, other = outcome(run)
            if other is not None:
                raise UnsupportedError  # without gradients, too
        return made, error

    def compare(self, has_second):
        """What came of it, in a word and in many."""
        made, refusal = outcome(lambda: self.forward(self.theirs, copied))
        if refusal is not None or any(one.is_complex() for one in made[1]):
            raise UnsupportedError
        leaves, results = made
        if not leaves or not any(one.requires_grad for one in results):
            raise UnsupportedError
        chosen = [number for number, one in enumerate(results) if one.requires_grad]
        given = [torch.randn_like(results[number]) for number in chosen]
        if has_second:
            given = [one.requires_grad_() for one in given]
        roots = [results[number] for number in chosen]
        options = {"create_graph": has_second, "allow_unused": True}
        first, refusal = outcome(lambda: torch.autograd.grad(roots, leaves, given, **options))
        if refusal is not None:
            raise UnsupportedError
        made, error = self.mine()
        if error is not None:
            return refused(error)
        my_leaves, my_results = made
        for one, mine in zip(results, my_results, strict=True):
            if one.requires_grad != mine.requires_grad:
                kind = "lost" if one.requires_grad else "extra"
                return kind, f"{kind}: the result requires a gradient: {one.requires_grad}"
        my_roots = [my_results[number] for number in chosen]
        my_given = with_leaves(given, lambda value: copied(value, self.device), my_second := [])
        mine, error = outcome(
            lambda: genesis.autograd.grad(my_roots, my_leaves, my_given, **options)
        )
        if error is not None:
            return refused(error)
        if any(one is not None and two is None for one, two in zip(first, mine, strict=True)):
            return "lost", "lost: an input has no gradient"
        values = [one.detach() for one in leaves] if self.has_ties else [None] * len(leaves)
        found = self.difference(first, mine, self.exact(given, chosen), values)
        if found or not has_second:
            return (found.partition(":")[0], found) if found else ("same", "")
        return self.compare_second(first, mine, [*leaves, *given], [*my_leaves, *my_second])

    def exact(self, given, chosen):
        """PyTorch's gradients in float64, or None."""
        made, refusal = outcome(lambda: self.forward(self.theirs, wide))
        if refusal is not None:
            return None
        leaves, results = made
        results = [results[number] for number in chosen]
        given = [one.detach().to(two.dtype) for one, two in zip(given, results, strict=True)]
        return torch.autograd.grad(results, leaves, given, allow_unused=True)

    def difference(self, theirs, ours, exact, values):
        found = map(gradient_difference, theirs, ours, exact or theirs, values)
        said = ((number, text) for number, text in enumerate(found) if text)
        return next((f"{text} (input {number})" for number, text in said), None)

    def compare_second(self, first, mine, leaves, my_leaves):
        """The gradients of the gradients."""
        chosen = [
            number
            for number, one in enumerate(first)
            if one is not None and one.requires_grad and mine[number] is not None
        ]
        if not chosen:
            return "same", ""
        given = [torch.randn_like(first[number]) for number in chosen]
        theirs, refusal = outcome(
            lambda: torch.autograd.grad(
                [first[number] for number in chosen], leaves, given, allow_unused=True
            )
        )
        if refusal is not None:
            return "same", ""
        has_graph = [number for number in chosen if mine[number].requires_grad]
        my_given = [copied(one, self.device) for one in given]
        my_given = [my_given[chosen.index(number)] for number in has_graph]
        ours, error = outcome(
            lambda: (
                genesis.autograd.grad(
                    [mine[number] for number in has_graph], my_leaves, my_given, allow_unused=True
                )
                if has_graph
                else [None] * len(theirs)
            )
        )
        if error is not None:
            return "second", f"second: {type(error).__name__}: {error}"
        found = self.difference(theirs, ours, None, [None] * len(theirs))
        return ("second", f"second: {found}") if found else ("same", "")


def findings(operation, options):
    """Kind, text and place of all that was found, from a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        with os.fdopen(writer, "w") as file:
            run = operation.run_gradients if options.gradients else operation.run
            run(
                options.dtypes.split(","),
                options.limit,
                options.device,
                lambda found: print(json.dumps(found), file=file),
            )
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        found = [json.loads(line) for line in file]
    status = os.waitpid(child, 0)[1]
    return [*found, ["crash", f"status {status}", "", False]] if status else found


def known(name, kind, text, rows):
    """Why a difference is meant, or None."""
    for names, kinds, what, why in rows:
        is_named = any(fnmatch.fnmatch(name, one) for one in names.split("|"))
        if is_named and kind in kinds.split("|") and re.search(what, text):
            return why
    return None


def gradients_print(total, reasons, without):
    for (why, name), count in sorted(reasons.items()):
        print(f"known: {name}: {why} ({count})")
    print(f"no gradient here: {' '.join(sorted(without)) or 'none'}")
    left = total["unsupported"]
    print(
        f"{total['operations']} operations and {total['samples']} samples compared, some of them "
        f"in place, too; {left} calls have no gradient in PyTorch, or no word here"
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--missing", action="store_true", help="list entries without a namesake")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtypes", default=DTYPES)
    parser.add_argument("--limit", type=int, default=1_000_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = KNOWN_GRADIENTS if options.gradients else KNOWN
    total: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    without: set[str] = set()
    if options.missing:
        names = {one.info.name for one in map(Operation, op_db) if not one.ways}
        print(*sorted(names), sep="\n")
        return 0
    for one in map(Operation, op_db):
        name = one.full_name
        is_wanted = any(fnmatch.fnmatch(name, pattern) for pattern in options.patterns)
        if not is_wanted or any(fnmatch.fnmatch(name, other) for other in LEFT_OUT.split()):
            continue
        if not one.ways or (options.gradients and not one.has_gradients()):
            continue
        found = findings(one, options)
        total["operations"] += any(kind != "unsupported" for kind, *_ in found)
        total["samples"] += sum(is_first for kind, *_, is_first in found if kind != "unsupported")
        shown: Counter[str] = Counter()
        for kind, text, where, _ in found:
            is_fine = kind in ("same", "unsupported", "lenient")
            dtype = where.partition(", ")[2].partition(" ")[0].rstrip(":").upper()
            why = None if is_fine else known(name, kind, f"{text} {dtype}", rows)
            kind = kind if why is None else "known"
            total[kind] += 1
            shown[kind] += 1
            without |= {name} if kind == "none" else set()
            if why is not None:
                reasons[why, name] += 1
            elif not is_fine and shown[kind] <= 3:
                print(f"{name}: {kind}: {text}\n    {where}", flush=True)
    if options.gradients:
        gradients_print(total, reasons, without)
    print(dict(total))
    fine = {"operations", "samples", "same", "unsupported", "lenient", "known"}
    return int(bool(set(total) - fine))


if __name__ == "__main__":
    sys.exit(main())
