"""Functions that are made of others, on a GPU, real or simulated: random ones of the test.

``python tests/ops/device_composites.py [how many] [seed]``
"""

from __future__ import annotations

import random
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

import composites
import test_composites

# A GPU computes these by functions of its own.
OTHERS = (
    *("sinh", "cosh", "exp2", "gelu tanh", "float_power", "pow", "logaddexp", "atan2", "hypot"),
    *(
        "ldexp",
        "logaddexp2",
        "logit",
        "logit eps",
        "xlogy",
        "celu",
        "elu",
        "elu alpha",
        "logsigmoid",
        "mish",
        "selu",
        "softplus",
        "softplus beta",
    ),
)


def put_on_the_gpu():
    """The tests' tensors are made there, and results read from there."""
    make, read = test_composites.tensor_of, test_composites.elements
    test_composites.tensor_of = lambda values, dtype: make(values, dtype).cuda()
    test_composites.elements = lambda made: read(made.cpu())


def main(count: int, seed: int):
    warnings.simplefilter("ignore")  # NumPy's, about NaN
    put_on_the_gpu()
    draw = random.Random(seed)
    tables = {1: composites.ONE, 2: composites.TWO, 3: composites.THREE}
    while count > 0:
        operands = draw.choice([1, 2, 2, 3])
        name = draw.choice([*tables[operands]])
        case = tables[operands][name]
        if name in OTHERS:
            case = case._replace(ulps=4 * case.ulps + 2)
        dtypes = [draw.choice(test_composites.DTYPES) for _ in range(operands)]
        values = [test_composites.some_of(dtype, 6) for dtype in dtypes]
        count -= test_composites.check(name, case, dtypes, values)


if __name__ == "__main__":
    given = [int(one) for one in sys.argv[1:]]
    main(*(given + [20, 1][len(given) :]))
