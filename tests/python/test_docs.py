"""Documentation is executed, and names what there is."""

import doctest
import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PLACES

import genesis

FLAGS = re.MULTILINE | re.DOTALL
BLOCK = re.compile(r"^```python\n(.*?)^```", FLAGS)
# What a block prints may follow it; the commands of a console block begin with "$ ".
SHOWN = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", FLAGS)
CONSOLE = re.compile(r"^```console\n(.*?)^```", FLAGS)
EXCERPT = re.compile(
    r"^```(?:py|c)\n(?:#|/\*) (examples/\S+).*?\n(.*?)^```", re.MULTILINE | re.DOTALL
)
MODULES = [
    "genesis",
    "genesis.cpu",
    "genesis.cuda",
    "genesis.ndarray.cuda_memory_manager",
    "genesis._wheels",
    "genesis.array_api",
    "genesis.autograd",
    "genesis.autograd.variable",
    "genesis.distributions.bernoulli",
    "genesis.distributions.categorical",
    "genesis.distributions.exponential",
    "genesis.distributions.gamma",
    "genesis.distributions.independent",
    "genesis.distributions.kl",
    "genesis.distributions.normal",
    "genesis.distributions.transformed_distribution",
    "genesis.distributions.transforms",
    "genesis.distributions.uniform",
    "genesis.func",
    "genesis._explain",
    "genesis.array_api.linalg",
    "genesis.linalg",
    "genesis.nn._attention",
    "genesis.nn.attention",
    "genesis.nn.parallel",
    "genesis.nn.utils.spectral_norm",
    "genesis.nn.functional",
    "genesis.nn.init",
    "genesis.nn.modules._calls",
    "genesis.nn.modules._state",
    "genesis.nn.modules.container",
    "genesis.nn.modules.flatten",
    "genesis.nn.modules.attention",
    "genesis.nn.modules.linear",
    "genesis.nn.modules.loss",
    "genesis.nn.modules.module",
    "genesis.nn.modules.original",
    "genesis.nn.modules.parameters",
    "genesis.nn.modules.rnn",
    "genesis.nn.modules.transformer",
    "genesis.nn.parameter",
    "genesis.func",
    "genesis.nn.utils.convert",
    "genesis.nn.utils.fusion",
    "genesis.nn.utils.parametrize",
    "genesis.nn.utils.prune",
    "genesis.nn.utils.spectral_norm",
    "genesis.nn.utils.stateless",
    "genesis.nn.utils.weight_norm",
    "genesis.nn.utils.rnn",
    "genesis.nn.utils.clip_grad",
    "genesis.optim",
    "genesis.optim._schedulers",
    "genesis.optim._schedulers_curves",
    "genesis.optim._schedulers_cycles",
    "genesis.optim._schedulers_stages",
    "genesis.optim.adafactor",
    "genesis.optim.adam",
    "genesis.optim.lbfgs",
    "genesis.optim.lr_scheduler",
    "genesis.optim.optimizer",
    "genesis.optim.rmsprop",
    "genesis.optim.rprop",
    "genesis.optim.sgd",
    "genesis.optim.swa_utils",
    "genesis.utils.hooks",
    "genesis.utils.data._collate",
    "genesis.utils.data._worker",
    "genesis.utils.data.dataloader",
    "genesis.utils.data.dataset",
    "genesis.utils.data.distributed",
    "genesis.utils.data.sampler",
    "genesis._grad_mode",
    "genesis._memory_views",
    "genesis._memory_pools",
    "genesis._cuda_memory",
    "genesis._nvtx",
    "genesis._memory",
    "genesis._serialization",
    "genesis._tensor",
    "genesis._tensor_names",
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
    "genesis._kernel",
    "genesis._profiling",
    "genesis.backends.cuda",
    "genesis.backends.cuda_kernels",
    "genesis.amp",
    "genesis.amp.autocast_mode",
    "genesis.amp.grad_scaler",
    "genesis.cuda.amp",
    "genesis.cpu.amp",
    "genesis.backends.cpu",
    "genesis.backends.cudnn",
    "genesis.backends.mkl",
    "genesis.backends.mkldnn",
    "genesis.backends.mps",
    "genesis.backends.openmp",
    "genesis.accelerator",
    "genesis.compiler",
    "genesis.random",
    "genesis.version",
    "genesis._torch_names",
    "genesis.nn.modules.activation",
    "genesis.nn.modules.batchnorm",
    "genesis.nn.modules.conv",
    "genesis.nn.modules.distance",
    "genesis.nn.modules.dropout",
    "genesis.nn.modules.normalization",
    "genesis.nn.modules.padding",
    "genesis.nn.modules.pooling",
    "genesis.nn.modules.resize",
    "genesis.nn.modules.sigmoid",
    "genesis.nn.modules.sparse",
    "genesis.nn.utils.parametrizations",
]
CLASSES = [
    "device",
    "Stream",
    "Event",
    "MemoryManager",
    "MemoryRequest",
    "MemoryBlock",
    "GraphPool",
    "Generator",
    "Tensor",
]


class Finder(doctest.DocTestFinder):
    """Functions with a wrapper around them belong to the module that they are written in."""

    def _from_module(self, module, object):
        return super()._from_module(module, inspect.unwrap(object))


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_run(name):
    module = importlib.import_module(name)
    tests = Finder(exclude_empty=True).find(module, name)
    if name.startswith("genesis._tensor_") and hasattr(module, "publish"):
        assert {test.name.rpartition(".")[2] for test in tests} >= {
            one for one in module.__all__ if inspect.isfunction(getattr(module, one))
        } - {"concat", "concatenate"}
    if name == "genesis._C":  # its classes say they live where users find them
        finder = doctest.DocTestFinder()
        tests = [t for c in CLASSES for t in finder.find(getattr(module, c), c, module=False)]
    runner = doctest.DocTestRunner()
    for test in tests:
        runner.run(test)
    assert runner.tries > 0 and runner.failures == 0


def pages(root):
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def test_code_blocks_run(root, fresh, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = [(page, block) for page in pages(root) for block in BLOCK.findall(page.read_text())]
    assert blocks
    for page, block in blocks:
        if page.name != "cuda.md":
            fresh(block)


def test_cuda_blocks(root, build, fresh, tmp_path, monkeypatch):
    """They choose the simulated GPU by themselves, and print what they are shown to."""
    if not (build / "libgenesis_sim.so").exists():
        pytest.skip("the build has no simulator")
    monkeypatch.chdir(tmp_path)
    text = (root / "docs/cuda.md").read_text()
    shown = dict(SHOWN.findall(text))
    assert set(shown) == set(BLOCK.findall(text))
    for block, output in shown.items():
        assert is_same(output, fresh(block).stdout)


def is_same(shown: str, printed: str) -> bool:
    """Whether text is what is shown but for times, addresses, and how lines are broken.

    Dots stand for what was left out.
    """
    for pattern, word in (
        (r"0x[0-9a-f]+", "ADDRESS"),
        (r"[\d.,]+(?: to [\d.,]+)? (?:ns|us|ms|s|seconds|allocations a second)\b", "TIME"),
        (r"\s+", " "),
    ):
        shown, printed = (re.sub(pattern, word, text).strip() for text in (shown, printed))
    parts = [re.escape(part.strip()) for part in shown.split("...")]
    return re.fullmatch(".*?".join(parts), printed) is not None


def test_fusion_blocks(root, fresh):
    """They print what they are shown to."""
    text = (root / "docs/fusion.md").read_text()
    shown = dict(SHOWN.findall(text))
    assert set(shown) == set(BLOCK.findall(text))
    for block, output in shown.items():
        assert is_same(output, fresh(block).stdout)


@pytest.mark.parametrize("place", ["cpu", "sim"])
def test_observability_blocks(root, build, fresh, tmp_path, monkeypatch, place):
    """The page's blocks run on both devices, and print on the CPU what they are shown to."""
    if place == "sim" and not (build / "libgenesis_sim.so").exists():
        pytest.skip("the build has no simulator")
    monkeypatch.chdir(tmp_path)
    text = (root / "docs/observability.md").read_text()
    shown = dict(SHOWN.findall(text))
    assert shown
    for block in BLOCK.findall(text):
        printed = fresh(block, **PLACES[place]).stdout
        if place == "cpu" and block in shown:
            assert is_same(shown[block], printed), printed


def test_excerpts_are_in_the_examples(root):
    text = (root / "docs/observability.md").read_text()
    found = EXCERPT.findall(text)
    found += [
        ("examples/c/leak.c", block) for block in re.findall(r"^```c\n(.*?)^```", text, FLAGS)
    ]
    text = (root / "docs/cuda.md").read_text()
    found += [
        ("examples/c/kernel.c", block) for block in re.findall(r"^```c\n(.*?)^```", text, FLAGS)
    ]
    assert found
    for name, text in found:
        whole = (root / name).read_text()
        for part in text.split("\n...\n"):
            assert part.strip("\n") in whole, f"{name} does not have:\n{part}"


@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="the C program is not sanitized")
def test_the_program_of_the_readme(root, build, tmp_path):
    (text,) = re.findall(r"^```c\n(.*?)^```", (root / "README.md").read_text(), FLAGS)
    (tmp_path / "program.c").write_text(text)
    build_it = ["cc", "-Wall", "-Wextra", "-Werror", tmp_path / "program.c", f"-I{root}/include"]
    build_it += [f"-L{build}", "-lgenesis", f"-Wl,-rpath,{build}", "-o", tmp_path / "program"]
    subprocess.run(build_it, check=True)
    finished = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stdout) == (0, "")


def commands_of(page: Path):
    """Each command of the console blocks with what it is shown to print."""
    for block in CONSOLE.findall(page.read_text()):
        for one in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = one.partition("\n")
            yield command, output


@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="the C programs are not sanitized")
def test_console_blocks(root, build, tmp_path):
    """The commands of the observability page, in order, print what they are shown to."""
    if not (build / "libgenesis_sim.so").exists() or shutil.which("pkg-config") is None:
        pytest.skip("no simulator, or no pkg-config")
    shutil.copytree(root / "examples", tmp_path / "examples")
    (tmp_path / "genesis.pc").write_text(
        "Name: genesis\nDescription: as it is built here\nVersion: 0\n"
        f"Cflags: -I{root}/include\nLibs: -L{build} -lgenesis -Wl,-rpath,{build}\n"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GENESIS_")}
    environment |= PLACES["cpu"] | {
        "PKG_CONFIG_PATH": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    commands = list(commands_of(root / "docs/observability.md"))
    assert commands
    for command, shown in commands:
        finished = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=120,
        )
        printed = finished.stdout.replace(f"{tmp_path}/", "")
        assert is_same(shown, printed), f"{command}:\n{printed}"


def test_the_demo_for_the_simulated_gpu_learns(root):
    """With the sizes that it chooses there: a step takes 40 ms, and less than 1 ms here."""
    demo = importlib.util.module_from_spec(
        spec := importlib.util.spec_from_file_location("demo", root / "examples/demo.py")
    )
    spec.loader.exec_module(demo)
    assert demo.train("cpu", demo.SIMULATED) < 0.1
    assert demo.SIMULATED.steps <= 200 and demo.SIMULATED.samples * demo.SIMULATED.hidden <= 8192
    shown = (root / "sim/driver.c").read_text()
    assert "Genesis simulated GPU" in shown  # the name by which it knows it


def test_examples_run(root, tmp_path):
    for example in sorted((root / "examples").glob("*.py")):
        subprocess.run(
            [sys.executable, example], check=True, capture_output=True, timeout=120, cwd=tmp_path
        )


def test_examples_have_help(root, tmp_path):
    """Those that write files say so, do nothing else then, and refuse what they do not know."""
    writing = [one for one in (root / "examples").glob("*.py") if "to_html" in one.read_text()]
    assert {one.stem for one in writing} >= {"demo", "manager", "out_of_memory"}
    for example in writing:
        for argument, code in (("--help", 0), ("--what", 2)):
            finished = subprocess.run(
                [sys.executable, example, argument],
                capture_output=True,
                text=True,
                timeout=60,
                cwd=tmp_path,
                check=False,
            )
            shown = finished.stdout + finished.stderr
            assert finished.returncode == code and shown.startswith("usage: "), (example, shown)
    assert list(tmp_path.iterdir()) == []


def test_how_many_allocations_an_expression_makes(root):
    """README: one of a large tensor. docs/tensors.md: small ones do not wait on the CPU."""
    shown = (
        "y = ((x + 1) * 2).exp().sum(dim=1)  # of a large tensor: one pass over memory, one alloc"
    )
    assert shown in (root / "README.md").read_text()
    assert "at most 256 elements does not wait" in (root / "docs/tensors.md").read_text()
    names = {"genesis": genesis}
    for shape, count in (((2, 2), 4), ((16, 16), 4), ((257, 1), 1), ((1000, 1000), 1)):
        names["x"] = genesis.ones(*shape, device="cpu")
        genesis.flush()
        before = genesis.memory_stats("cpu").num_allocs
        exec(shown.partition("#")[0], names)
        genesis.flush()
        assert genesis.memory_stats("cpu").num_allocs - before == count, shape


def anchors(page):
    """What a link can name behind # on a page: its headings, as GitHub writes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def test_links_exist(root):
    for page in [*pages(root), root / "CONTRIBUTING.md", root / "SECURITY.md"]:
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", page.read_text()):
            other = page.parent / target if target else page
            assert other.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(other), f"{page.name} links to {target}#{anchor}"
    assert anchors(root / "docs/memory.md") >= {"out-of-memory", "three-policies"}


# The questions that docs/ARCHITECTURE.md answers, each in a paragraph under its heading.
QUESTIONS = [
    "Where is a free across streams decided?",
    "What makes a flush happen?",
    "Where is an operation added?",
    "What may a layer call?",
    "Who owns a pending value?",
    "What are a block's states?",
    "How is a kernel found?",
    "How is a graph captured?",
]
WALKS = ["Walk 1: an allocation", "Walk 2: an expression", "Walk 3: a free across streams"]


def sections(text):
    """The second-level headings of a page, with the text under each."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def paths_missing(root, text):
    """Paths in backticks, below a folder of the repository, that lead to nothing."""
    folders = "bench|docs|examples|include|python|sim|src|tests|tools"
    named = re.findall(rf"`((?:{folders})/[\w./-]+)`", text)
    return [name for name in named if not (root / name).exists()]


def symbols_missing(root, text):
    """Names of C in a text, in or out of backticks, that no source of the library has."""
    named = set(re.findall(r"\b(?:gni?|GNI?)_\w+", text))
    known = set()
    for folder in ("include", "src"):
        for path in (root / folder).rglob("*.[ch]"):
            known |= set(re.findall(r"\b(?:gni?|GNI?)_\w+", path.read_text()))
    return sorted(named - known)


def test_the_architecture_page_answers(root):
    text = (root / "docs/ARCHITECTURE.md").read_text()
    found = sections(text)
    assert list(found)[0] == "Glossary"
    assert [name for name in [*QUESTIONS, *WALKS] if name not in found] == []
    for name in QUESTIONS:
        assert max(len(part) for part in found[name].split("\n\n")) > 300, f"{name}: no paragraph"
    for name in WALKS:
        assert "```" in found[name], f"{name}: no drawing"
    words = re.findall(r"^\| ([\w ]+) \| ", found["Glossary"], re.MULTILINE)[1:]
    assert len(words) > 40 and words == sorted(set(words)), (
        "in the order of the alphabet, each once"
    )


def test_pages_name_what_exists(root):
    for page in [*pages(root), root / "CONTRIBUTING.md", root / "SECURITY.md"]:
        assert paths_missing(root, page.read_text()) == [], page.name
    assert symbols_missing(root, (root / "docs/ARCHITECTURE.md").read_text()) == []
    assert paths_missing(root, "`src/base/no.c` and `tests/python`") == ["src/base/no.c"]
    assert symbols_missing(root, "`gni_nowhere` gn_flush GN_ERROR_SHAPE") == ["gni_nowhere"]


def test_the_environment_table(root):
    """docs/ENVIRONMENT.md lists each variable with the default that the library has."""
    from genesis import _C

    rows = re.findall(
        r"^\| `(GENESIS_\w+)` \| (.*?) \|", (root / "docs/ENVIRONMENT.md").read_text(), re.MULTILINE
    )
    assert dict(rows) == {
        o["name"]: f"`{o['default']}`" if o["default"] else "not set" for o in _C.options()
    }
