"""Models of transformers and torchvision on PyTorch's allocator, plain and expandable, and on ours.

    python bench/bench_torch_models.py [--rounds 3] [--models llama,resnet,gpt2,compiled,graphs]

Needs a GPU and PyTorch; nothing is downloaded, weights and data are random. A model whose library
is missing is left out. Three rounds take about two minutes a model on an H200.

llama     transformers' Llama, trained with AdamW, batches of another length at each step, bfloat16
resnet    torchvision's ResNet-50, trained with SGD on what two workers of a DataLoader make
gpt2      transformers' GPT-2 in generate(), prompts of another length at each step
compiled  a small transformer by torch.compile, trained
graphs    the same with mode="reduce-overhead": PyTorch's own allocator makes CUDA graphs, and on
          Genesis the model is compiled without them

For each model and round three processes run in lock-step, as in bench_gpt.py: one takes a step and
waits for the GPU while the others wait for their turn, and who begins changes with each step. Every
step calls torch.cuda's statistics and resets their peaks, as training scripts do, within its time.
The third runs as ``python -m genesis run --under torch``. Everything is deterministic: results must
be equal, bit for bit, between the allocators and between the rounds.

device: what the device's free memory went down by during this process' steps, with what libraries
take beside the allocator. ``--tiny`` runs small models on the CPU, to try the program itself.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PEERS = ("PyTorch", "expandable", "Genesis")
NEEDED = {"llama": "transformers", "resnet": "torchvision", "gpt2": "transformers"}
STEPS = {"llama": 40, "resnet": 40, "gpt2": 12, "compiled": 40, "graphs": 40}
TINY_STEPS = 3
WARM_UP = {"llama": 8, "resnet": 8, "gpt2": 2, "compiled": 8, "graphs": 8}  # steps not compared
ENVIRONMENT = {
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # cuBLAS is deterministic
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
}
EXPANDABLE = {
    "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
    "PYTORCH_ALLOC_CONF": "expandable_segments:True",  # its newer name
}
MIB = 1 << 20


# ---- the models: each has step(), which returns a tensor with the bits to compare ----------------

# is_strict: PyTorch is to refuse what is not deterministic; else it warns, and uses what it has.


class Llama:
    """transformers' Llama with batches of changing length."""

    is_strict = True  # without, its attention is not deterministic

    def __init__(self, torch: Any, device: str, is_tiny: bool) -> None:
        from transformers import LlamaConfig, LlamaForCausalLM

        self.torch, self.device = torch, device
        self.batch, self.longest = (2, 32) if is_tiny else (8, 1536)
        self.words = 128 if is_tiny else 32000
        width = 32 if is_tiny else 1024
        config = LlamaConfig(
            vocab_size=self.words,
            hidden_size=width,
            intermediate_size=11 * width // 4,
            num_hidden_layers=2 if is_tiny else 16,
            num_attention_heads=max(2, width // 64),
            num_key_value_heads=max(2, width // 64),
            max_position_embeddings=2048,
            use_cache=False,
        )
        with torch.device(device):
            self.model = LlamaForCausalLM(config).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.random = torch.Generator().manual_seed(1)

    def step(self) -> Any:
        """Forward, backward and AdamW."""
        torch = self.torch
        low = self.longest // 6
        length = int(torch.randint(low, self.longest + 1, (1,), generator=self.random))
        tokens = torch.randint(self.words, (self.batch, length), generator=self.random)
        tokens = tokens.to(self.device)
        with torch.autocast(self.device, dtype=torch.bfloat16):
            loss = self.model(input_ids=tokens, labels=tokens).loss
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


class Images:
    """A dataset of random batches, the same for each index."""

    def __init__(self, torch: Any, batch: int, size: int, count: int) -> None:
        self.torch, self.batch, self.size, self.count = torch, batch, size, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        torch = self.torch
        random = torch.Generator().manual_seed(index)
        shape = (self.batch, 3, self.size, self.size)
        images = torch.randint(256, shape, dtype=torch.uint8, generator=random)
        return images, torch.randint(1000, (self.batch,), generator=random)


class ResNet:
    """torchvision's ResNet-50 with two workers that make the data."""

    is_strict = False

    def __init__(self, torch: Any, device: str, is_tiny: bool) -> None:
        from torchvision.models import resnet18, resnet50

        self.torch, self.device = torch, device
        with torch.device(device):
            self.model = (resnet18 if is_tiny else resnet50)().train()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        images = Images(torch, 2 if is_tiny else 96, 32 if is_tiny else 224, 1000)
        loader = torch.utils.data.DataLoader(
            images, batch_size=None, num_workers=2, pin_memory=device == "cuda"
        )
        self.batches = iter(loader)

    def step(self) -> Any:
        """Forward, backward and SGD."""
        torch = self.torch
        images, labels = (one.to(self.device, non_blocking=True) for one in next(self.batches))
        with torch.autocast(self.device, dtype=torch.bfloat16):
            scores = self.model(images.float() / 255)
            loss = torch.nn.functional.cross_entropy(scores, labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


class GPT2:
    """transformers' GPT-2 that writes text."""

    is_strict = True  # without, what it writes differs from run to run

    def __init__(self, torch: Any, device: str, is_tiny: bool) -> None:
        from transformers import GPT2Config, GPT2LMHeadModel

        self.torch, self.device = torch, device
        sizes = {"n_layer": 2, "n_head": 2, "n_embd": 32, "vocab_size": 128} if is_tiny else {}
        config = GPT2Config(**sizes, eos_token_id=None, bos_token_id=None, pad_token_id=0)
        self.words, self.more = config.vocab_size, 4 if is_tiny else 16
        self.batch, self.longest = (2, 16) if is_tiny else (16, 512)
        with torch.device(device):
            self.model = GPT2LMHeadModel(config).eval()
        self.random = torch.Generator().manual_seed(1)

    def step(self) -> Any:
        """A prompt, and what the model writes after it."""
        torch = self.torch
        length = int(torch.randint(4, self.longest + 1, (1,), generator=self.random))
        prompt = torch.randint(self.words, (self.batch, length), generator=self.random)
        prompt = prompt.to(self.device)
        with torch.no_grad(), torch.autocast(self.device, dtype=torch.bfloat16):
            made = self.model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=self.more,
                do_sample=True,
                top_k=50,
            )
        return made.cpu()


class Compiled:
    """A small transformer by torch.compile."""

    is_strict = True
    mode: str | None = None

    def __init__(self, torch: Any, device: str, is_tiny: bool) -> None:
        self.torch, self.device = torch, device
        self.width, layers = (32, 2) if is_tiny else (768, 6)
        self.batch, self.length = (2, 16) if is_tiny else (16, 512)
        with torch.device(device):
            layer = torch.nn.TransformerEncoderLayer(
                self.width,
                self.width // 16 if is_tiny else self.width // 64,
                4 * self.width,
                dropout=0.0,
                activation="gelu",
                batch_first=True,
                norm_first=True,
            )
            stack = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).train()
        self.model = torch.compile(stack, mode=self.mode, dynamic=False)
        self.optimizer = torch.optim.AdamW(stack.parameters(), lr=1e-4)
        self.random = torch.Generator().manual_seed(1)

    def step(self) -> Any:
        """Forward, backward and AdamW."""
        torch = self.torch
        shape = (self.batch, self.length, self.width)
        x = torch.randn(shape, generator=self.random).to(self.device)
        with torch.autocast(self.device, dtype=torch.bfloat16):
            loss = (self.model(x) - x).float().square().mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach().clone()


class Graphs(Compiled):
    """The same, and PyTorch makes CUDA graphs of it."""

    mode = "reduce-overhead"


MODELS = {"llama": Llama, "resnet": ResNet, "gpt2": GPT2, "compiled": Compiled, "graphs": Graphs}


# ---- a process that takes a step for each line that it reads ------------------------------------


class Meter:
    """What a process knows of its memory."""

    def __init__(self, torch: Any, device: str) -> None:
        self.torch, self.is_gpu = torch, device == "cuda"
        self.used = 0
        if self.is_gpu:
            torch.cuda.init()
            torch.cuda.synchronize()

    def free(self) -> int:
        """What the device has free; only this process works now."""
        return self.torch.cuda.mem_get_info()[0] if self.is_gpu else 0

    def read(self) -> dict[str, int]:
        """PyTorch's statistics since the last reading, as a training script asks for them."""
        cuda = self.torch.cuda
        stats = cuda.memory_stats()
        found = {
            "live": cuda.max_memory_allocated(),
            "reserved": cuda.max_memory_reserved(),
            "requested": stats.get("requested_bytes.all.peak", 0),
            "calls": stats.get("num_device_alloc", 0) + stats.get("num_device_free", 0),
        }
        assert cuda.memory_allocated() <= found["live"] and cuda.memory_reserved() >= 0
        if self.is_gpu:
            cuda.reset_peak_memory_stats()
        return found


def work(name: str, device: str) -> None:
    """Answers each line of the standard input with a line: the first is for making the model."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is not an answer
    import torch

    if name in NEEDED:
        import_module(NEEDED[name])
    if sys.stdin.readline() != "make\n":
        return
    torch.use_deterministic_algorithms(True, warn_only=not MODELS[name].is_strict)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cudnn.benchmark = False
    torch.manual_seed(0)
    meter = Meter(torch, device)
    before = meter.free()
    model = MODELS[name](torch, device, is_tiny=device == "cpu")
    meter.used += before - meter.free()
    print(json.dumps({"version": torch.__version__}), file=answers)
    while sys.stdin.readline() == "step\n":
        before = meter.free()
        begin = time.perf_counter()
        bits = model.step()
        figures = meter.read()
        if device == "cuda":
            torch.cuda.synchronize()  # nothing of this process runs during the others' turns
        seconds = time.perf_counter() - begin
        meter.used += before - meter.free()
        told = bits.tolist() if bits.dim() else float(bits).hex()
        answer = {"seconds": seconds, "bits": told, "device": meter.used, **figures}
        print(json.dumps(answer), file=answers)


# ---- the process that asks ----------------------------------------------------------------------


class WorkerError(Exception):
    """Why a process did not go on."""


class Worker:
    """A process on one allocator, and what it told."""

    def __init__(self, peer: str, model: str, device: str, folder: str) -> None:
        self.peer = peer
        self.answers: list[dict[str, Any]] = []
        self.log = tempfile.TemporaryFile("w+", dir=folder)  # noqa: SIM115 - closed in end()
        start = [sys.executable]
        if peer == "Genesis":
            start += ["-m", "genesis", "run", "--under", "torch"]
        own = {"TORCHINDUCTOR_CACHE_DIR": str(Path(folder, "inductor"))}  # compiled once for all
        if peer == "expandable":
            own |= EXPANDABLE
        kept = {name: value for name, value in os.environ.items() if name not in EXPANDABLE}
        self.process = subprocess.Popen(
            [*start, str(Path(__file__).resolve()), "work", model, device],
            env=kept | ENVIRONMENT | own,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )

    def ask(self, what: str) -> dict[str, Any]:
        """The answer to a line."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            print(what, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass  # it ended; why is told below
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.process.wait()
        self.log.seek(0)
        tail = "".join(self.log.readlines()[-15:])
        raise WorkerError(f"the process on {self.peer} ended by {self.process.returncode}:\n{tail}")

    def step(self) -> None:
        """One step, with the GPU to itself."""
        self.answers.append(self.ask("step"))

    def end(self) -> None:
        """Lets the process end; one that does not is stopped."""
        if self.process.stdin is not None:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def most(self, figure: str) -> int:
        """The largest of a figure over all steps."""
        return max(answer[figure] for answer in self.answers)

    def times(self, model: str, is_tiny: bool) -> list[float]:
        """Of the steps that are compared."""
        first = 0 if is_tiny else WARM_UP[model]
        return [answer["seconds"] for answer in self.answers[first:]]


def run_round(model: str, device: str, folder: str, number: int) -> list[Worker]:
    """A step by each of them in turn; who begins changes, and the order turns around."""
    workers: list[Worker] = []
    try:
        workers += [Worker(peer, model, device, folder) for peer in PEERS]
        for worker in workers:  # one after another: what the device has free less is each one's own
            worker.ask("make")
        for step in range(TINY_STEPS if device == "cpu" else STEPS[model]):
            first = (step + number) % len(workers)
            order = workers[first:] + workers[:first]
            for worker in order[:: -1 if step // len(workers) % 2 else 1]:
                worker.step()
    finally:
        for worker in workers:
            worker.end()
    return workers


def ratios(model: str, is_tiny: bool, ours: Worker, own: Worker) -> list[float]:
    """Of the same steps on two allocators."""
    pairs = zip(ours.times(model, is_tiny), own.times(model, is_tiny), strict=True)
    return [one / other for one, other in pairs]


HEAD = (
    "| allocator | median step, ms | same step / PyTorch's (by rounds) | peak live, MiB "
    "| peak reserved, MiB | reserved / live | requested, MiB | device, MiB | driver calls |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def report(model: str, is_tiny: bool, rounds: list[list[Worker]]) -> None:
    """The table of a model."""
    print(f"\n### {model}\n\n{HEAD}")
    for index, peer in enumerate(PEERS):
        mine = [workers[index] for workers in rounds]
        times = [one for worker in mine for one in worker.times(model, is_tiny)]
        by_round = [ratios(model, is_tiny, workers[index], workers[0]) for workers in rounds]
        every = statistics.median(one for found in by_round for one in found)
        each = ", ".join(f"{statistics.median(found):.3f}" for found in by_round)
        live, reserved, requested, device, calls = (
            max(worker.most(figure) for worker in mine)
            for figure in ("live", "reserved", "requested", "device", "calls")
        )
        print(
            f"| {peer} | {statistics.median(times) * 1e3:.2f} | {every:.4f} ({each}) "
            f"| {live / MIB:.0f} | {reserved / MIB:.0f} | {reserved / live if live else 0:.4f} "
            f"| {requested / MIB:.0f} | {device / MIB:.0f} | {calls} |"
        )
    seen = {
        peer: {json.dumps([a["bits"] for a in workers[index].answers]) for workers in rounds}
        for index, peer in enumerate(PEERS)
    }
    if len(set().union(*seen.values())) == 1:
        print("\nResults: equal, bit for bit, on all allocators in all rounds.", flush=True)
    else:
        differ = [peer for peer in PEERS if len(seen[peer]) > 1]
        within = f"; different between rounds on {', '.join(differ)}" if differ else ""
        print(f"\nResults: NOT EQUAL between the allocators{within}.", flush=True)


def main() -> int:
    """All models."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--tiny", action="store_true", help="small models on the CPU")
    arguments = parser.parse_args()
    names = arguments.models.split(",")
    unknown = [name for name in names if name not in MODELS]
    if unknown or arguments.rounds < 1:
        parser.error(f"models are {', '.join(MODELS)}; at least one round")
    failed = False
    device = "cpu" if arguments.tiny else "cuda"
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            if name in NEEDED and find_spec(NEEDED[name]) is None:
                print(f"\n### {name}\n\nleft out: {NEEDED[name]} is not installed", flush=True)
                continue
            begin = time.perf_counter()
            try:
                rounds = [run_round(name, device, folder, i) for i in range(arguments.rounds)]
            except WorkerError as error:
                print(f"\n### {name}\n\nfailed: {error}", flush=True)
                failed = True
                continue
            report(name, arguments.tiny, rounds)
            print(f"{time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)
    return int(failed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        work(sys.argv[2], sys.argv[3])
    else:
        sys.exit(main())
