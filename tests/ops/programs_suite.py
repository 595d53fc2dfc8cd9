"""What programs do around a model, in PyTorch and in Genesis: data, mixed precision, files.

    python tests/ops/programs_suite.py [--verbose] [PATTERN ...]

Each scenario below is a function of a package, PyTorch or Genesis. What it sees (values, types,
texts, warnings, errors) is compared, line by line. PATTERN is a glob of scenarios' names. PyTorch
(tested with 2.15) and NumPy must be installed, the former of which the test environment has not.
The exit status says whether all differences are KNOWN.
"""

from __future__ import annotations

import argparse
import fnmatch
import re
import sys
from collections import Counter
from functools import partial
from importlib import import_module
from inspect import isclass, isfunction, signature

import programs_data
import programs_files
import programs_training
import torch
from optimizers_suite import World, difference, watched
from programs_parts import SCENARIOS, scenario

import genesis

PARTS = (programs_data, programs_files, programs_training)  # which have put theirs in SCENARIOS

# Differences that are meant: scenario, its line, what is in the text, and why.
KNOWN = [
    (
        "*",
        "*",
        r"AssertionError', here|AssertionError.*, here \{'error'",
        "a wrong argument is no assertion",
    ),
    ("*", "*", r"^\['error'\]\[[12]\]: ", "errors have words of our own; types that fit"),
    ("*", "*", "UnpicklingError|At least one stride", "what PyTorch cannot take"),
    ("names", "*", "missing", "SparseAdam, pipes of data, policies of checkpoints"),
    (
        "names",
        "*",
        "grad_scale|generator|device_type|bwd|function|default_generator",
        "more may be left out",
    ),
    ("helpers", "clip 0", "", "how many elements are not 0; PyTorch says it of tensors"),
    ("helpers", "spectral norm*", "values", "other random numbers"),
    ("helpers", "checkpoint unsaid", "use_reentrant", "there is one way to do it"),
    ("helpers", "checkpoint keyword reentrant|sequential 2 3", "", "PyTorch fails"),
    ("first_values", "*", r"\['gives'\]\[[234]\]: ", "other random numbers"),
    ("averages", "swa", "addcdiv", "PyTorch fails"),
    ("loading", "*", "InfiniteConstantSampler", "an iterator has its loader's length"),
    ("arguments_of_loaders", "pickled loader", "", "PyTorch's cannot be used"),
    ("errors_of_workers", "StopIteration*", "", "an error is no end"),
    ("workers", "same iterator", "", "an iterator that is old says so"),
    ("autocast_modes", "float32|int", "warnings", "words of our own"),
    ("autocast_modes", "ipu", "", "there is no IPU"),
    ("autocast_modes", "*", "In CPU autocast|autocast is off", "words of our own"),
    ("autocast_types", "*", "'error'", "PyTorch fails, since an earlier block keeps its weights"),
    ("autocast_types", "gru*", "", "as an LSTM"),
    ("autocast_types", "chain *", "", "there is no chain_matmul"),
    ("autocast_types", "rms norm*|kl*", "warnings", "advice of PyTorch's"),
    ("scaling", "new scales", "doesn't match the broadcast shape", "one element is a number"),
    ("scaling", "device|default|old", "warnings", "words of our own"),
    ("files", "strided|expanded", "strides", "elements lie in their order in a file"),
    ("files", "size", "", "a shape is a tuple"),
    ("files", "generator", "", "another generator"),
    ("files", "array number|array integer", "", "numbers of NumPy are numbers of Python"),
    (
        "files_of_torch",
        "array number*|array integer*",
        "",
        "numbers of NumPy are numbers of Python",
    ),
    ("states_across", "LBFGS", r"'al'", "what a step needs alone is not kept"),
]

# ---- names and signatures ----

MODULES = [
    *("optim", "optim.lr_scheduler", "optim.swa_utils", "amp", "utils.data", "utils.checkpoint"),
    *("nn.utils", "nn.utils.rnn", "nn.utils.parametrize", "nn.utils.parametrizations", "nn.init"),
    *("nn.utils.clip_grad", "utils.data.distributed", "utils.data.dataloader", "cuda.amp"),
    *("cpu.amp", "func"),
]


def arguments_of(value):
    """The names of what a function or a class takes, with plain defaults."""
    made = []
    try:
        parameters = signature(value).parameters.values()
    except ValueError:  # an exception
        return made
    for one in parameters:
        is_plain = isinstance(one.default, (int, float, str, bool, tuple, type(None)))
        made.append(f"{one.name}={one.default!r}" if is_plain else one.name)
    return made


@scenario
def names(w):
    """Public names of modules, and the arguments of what they name."""
    made = {}
    for path in MODULES:
        theirs = import_module(f"torch.{path}")
        module = import_module(f"{w.package.__name__}.{path}")
        wanted = getattr(theirs, "__all__", None) or [x for x in dir(theirs) if x[0] != "_"]
        for name in wanted:
            own, value = getattr(theirs, name, None), getattr(module, name, None)
            if isclass(own) or isfunction(own):
                found = arguments_of(value) if isclass(value) or isfunction(value) else "missing"
                made[f"{path}.{name}"] = found
    return made


# ---- all of it ----


def known(name, line, text):
    for names_of, lines, what, why in KNOWN:
        is_named = any(fnmatch.fnmatch(line, one) for one in lines.split("|"))
        is_named = is_named and fnmatch.fnmatch(name, names_of)
        if is_named and re.search(what, text):
            return why
    return None


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--verbose", action="store_true", help="what is known, too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    total: Counter[str] = Counter()
    for name, function in SCENARIOS.items():
        if not any(fnmatch.fnmatch(name, one) for one in options.patterns):
            continue
        sides = [watched(partial(function, world)) for world in (World(torch), World(genesis))]
        theirs, ours = (side.get("gives", side) for side in sides)
        lines = theirs if isinstance(theirs, dict) else {"all": theirs}
        mine = ours if isinstance(ours, dict) else {"all": ours}
        for line, value in lines.items():
            found = difference(value, mine.get(line, "nothing"), None)
            why = known(name, line, found) if found else None
            total["same" if not found else "known" if why else "different"] += 1
            if found and (not why or options.verbose):
                print(f"{name}: {line}\n    {found[:600]}", flush=True)
    print(dict(total))
    return int(total["different"] > 0)


if __name__ == "__main__":
    sys.exit(main())
