"""Every public name is documented."""

import importlib

import genesis
from genesis import _C

MODULES = [
    "genesis",
    "genesis.autograd",
    "genesis.cpu",
    "genesis.cuda",
    "genesis.ndarray.cuda_memory_manager",
]


def test_every_public_name_is_documented():
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        assert module.__doc__
        for name in module.__all__:
            value = getattr(module, name)
            if name != "__version__":
                assert value.__doc__, f"{module_name}.{name}"
    for value in filter(lambda one: isinstance(one, type), vars(_C).values()):
        for name, member in vars(value).items():
            if not name.startswith("_"):
                assert member.__doc__, f"{value.__name__}.{name}"


def test_dir_and_wrong_names():
    assert set(genesis.__all__) <= set(dir(genesis))
    assert not hasattr(genesis, "no_such_name")
