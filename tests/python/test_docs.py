"""Documentation is executed, and names what there is."""

import doctest
import importlib
import re
import subprocess
import sys

import pytest

BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
MODULES = [
    "genesis",
    "genesis.cpu",
    "genesis.cuda",
    "genesis.ndarray.cuda_memory_manager",
    "genesis._memory_views",
    "genesis._memory_pools",
    "genesis._memory",
    "genesis._leaks",
    "genesis.adapters",
    "genesis.adapters.cupy",
    "genesis.adapters.numba",
    "genesis.adapters.torch",
    "genesis._recording",
    "genesis._replay",
    "genesis._report",
    "genesis._snapshot",
    "genesis._timeline",
    "genesis._timeline_page",
    "genesis.memory_profiler",
    "genesis._sites",
    "genesis._types",
    "genesis._C",
]
CLASSES = [
    "device",
    "Stream",
    "Event",
    "MemoryManager",
    "MemoryRequest",
    "MemoryBlock",
    "GraphPool",
]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_run(name):
    module = importlib.import_module(name)
    tests = doctest.DocTestFinder(exclude_empty=True).find(module, name)
    if name == "genesis._C":  # its classes say they live where users find them
        finder = doctest.DocTestFinder()
        tests = [t for c in CLASSES for t in finder.find(getattr(module, c), c, module=False)]
    runner = doctest.DocTestRunner()
    for test in tests:
        runner.run(test)
    assert runner.tries > 0 and runner.failures == 0


def pages(root):
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def test_code_blocks_run(root, fresh):
    blocks = [(page, block) for page in pages(root) for block in BLOCK.findall(page.read_text())]
    assert blocks
    for _, block in blocks:
        fresh(block)


def test_examples_run(root):
    for example in sorted((root / "examples").glob("*.py")):
        subprocess.run([sys.executable, example], check=True, capture_output=True, timeout=120)


def test_links_exist(root):
    for page in [*pages(root), root / "CONTRIBUTING.md", root / "SECURITY.md"]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def listed_files(root):
    """The files of the repository, as git has them, or as they lie there without git."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0:
        return [line for line in listing.stdout.splitlines() if (root / line).exists()]
    return [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]


def test_the_architecture_page_names_every_source_file(root):
    text = (root / "docs/ARCHITECTURE.md").read_text()
    named = set(re.findall(r"`([\w./-]+\.(?:c|h|cu|cpp|hpp|py|pyi))`", text))
    folders = ("include/", "src/", "python/", "tests/", "bench/", "examples/", "sim/", "tools/")
    sources = {
        name
        for name in listed_files(root)
        if name.startswith(folders) and re.search(r"\.(c|h|cu|cpp|hpp|py|pyi)$", name)
    }
    assert sources - named == set(), "files that docs/ARCHITECTURE.md does not name"
    assert named - sources == set(), "names in docs/ARCHITECTURE.md without a file"


def test_the_environment_table(root):
    """docs/ENVIRONMENT.md lists each variable with the default that the library has."""
    from genesis import _C

    rows = re.findall(
        r"^\| `(GENESIS_\w+)` \| (.*?) \|", (root / "docs/ENVIRONMENT.md").read_text(), re.MULTILINE
    )
    assert dict(rows) == {
        o["name"]: f"`{o['default']}`" if o["default"] else "not set" for o in _C.options()
    }
