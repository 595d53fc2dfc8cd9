"""genesis.nn.functional: layers, norms, activations, dropout and attention beside PyTorch.

layer_results.json has what PyTorch gave: record_layers.py. Gradients are also checked by
differences: tests/ops/gradient_samples_nn_layers.py.
"""

import json
from pathlib import Path

import layer_cases
import pytest

import genesis

RESULTS = json.loads(Path(__file__).with_name("layer_results.json").read_text())
RUNS = {f"{case.name} {kind}": (case, kind) for case in layer_cases.cases() for kind in case.kinds}


def is_near(one, wanted, kind):
    if one != one or wanted != wanted:
        return one != one and wanted != wanted
    if abs(wanted) == float("inf"):
        return one == wanted
    share, least = (2e-5, 1e-5) if kind == "float32" else (1.6e-2, 8e-3)
    return abs(one - wanted) <= share * abs(wanted) + least


def test_all_calls_are_recorded():
    assert {*RUNS} == {*RESULTS}


@pytest.mark.parametrize("name", RUNS)
def test_results_and_gradients_are_those_of_pytorch(name):
    case, kind = RUNS[name]
    found, wanted = layer_cases.run(genesis, case, kind), RESULTS[name]
    assert found.keys() == wanted.keys()
    for what, values in wanted.items():
        assert len(found[what]) == len(values), what
        pairs = zip(found[what], map(float, values), strict=True)
        apart = [(one, other) for one, other in pairs if not is_near(one, other, kind)]
        assert not apart, (what, apart[:4])
