"""Writes the files of PyTorch's torch.save that test_torch_files.py reads.

    /opt/torchenv/bin/python tests/python/record_torch_files.py

They lie in tests/python/torch_files/. What is in them follows from the code here, and the test
says it again.
"""

from collections import Counter, OrderedDict
from pathlib import Path

import torch

FOLDER = Path(__file__).with_name("torch_files")
DTYPES = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "bfloat16", "float32", "float64",
]  # fmt: skip


class Own:
    """An object of a class of its own."""


def training():
    """What a program saves while it trains."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    with torch.no_grad():
        for number, one in enumerate(model.parameters()):
            one.copy_(torch.arange(one.numel()).reshape(one.shape) + number)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4])
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    scheduler.step()
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "epoch": 3,
        "best": 0.25,
    }


def shared():
    """Tensors that share memory, and parameters."""
    base = torch.arange(12.0).reshape(3, 4)
    weight = torch.nn.Parameter(torch.ones(2, 2))
    return {
        "base": base,
        "row": base[1],
        "transposed": base.T,
        "steps": base[::2, 1::2],
        "wide": torch.tensor([5.0]).expand(3, 2),
        "weight": weight,
        "tied": weight,
        "frozen": torch.nn.Parameter(torch.zeros(1), requires_grad=False),
        "leaf": torch.ones(1, requires_grad=True),
        "empty": torch.empty(0, 3),
        "scalar": torch.tensor(7),
    }


def containers():
    """Everything that is not a tensor."""
    same = [1, 2]
    return {
        "list": [1, -5, 300, 70000, 2**40, -(2**70), 2.5, True, None, "text"],
        "nan": float("nan"),
        "unicode": "naïve \U0001f600",
        "tuple": (1, (2, (3,)), ()),
        "five": (1, 2, 3, 4, 5),
        "set": {1, "a"},
        "frozen": frozenset([2]),
        "bytes": b"\x00\xffabc",
        "bytearray": bytearray(b"xy"),
        "complex": 3 + 1j,
        "ordered": OrderedDict(b=1, a=2),
        "counter": Counter("aab"),
        "size": torch.Size([2, 3]),
        "dtype": torch.bfloat16,
        "device": torch.device("cpu"),
        "same": [same, same],
        3: {(1, "a"): 0.5},
        None: True,
    }


def main():
    """Write all files."""
    FOLDER.mkdir(exist_ok=True)
    dtypes = {name: torch.arange(6).reshape(2, 3).to(getattr(torch, name)) for name in DTYPES}
    torch.save(dtypes, FOLDER / "dtypes.pt")
    torch.save(training(), FOLDER / "training.pt")
    torch.save(shared(), FOLDER / "shared.pt")
    torch.save(containers(), FOLDER / "containers.pt")
    torch.save(containers(), FOLDER / "protocol4.pt", pickle_protocol=4)
    torch.save(torch.arange(5), FOLDER / "tensor.pt")
    torch.save({"a": torch.ones(2)}, FOLDER / "old.pt", _use_new_zipfile_serialization=False)
    torch.save(shared(), FOLDER / "old_shared.pt", _use_new_zipfile_serialization=False)
    torch.save(training(), FOLDER / "old_training.pt", _use_new_zipfile_serialization=False)
    torch.save(torch.nn.Linear(1, 1), FOLDER / "module.pt")
    torch.save({"x": [Own()]}, FOLDER / "own.pt")
    torch.save({"x": torch.ones(1, dtype=torch.complex64)}, FOLDER / "complex.pt")
    torch.save({"x": torch.ones(2).to_sparse()}, FOLDER / "sparse.pt")


if __name__ == "__main__":
    main()
