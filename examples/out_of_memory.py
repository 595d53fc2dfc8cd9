"""A training loop that keeps too much and runs out of memory, and what explains it.

    python examples/out_of_memory.py [repaired]

Runs on the first GPU, or on the CPU where there is none, with at most 1 GiB of it. It writes
out_of_memory.html, the page, and out_of_memory.json, a snapshot, into the current directory; their
names begin with repaired where that is run. docs/observability.md walks through it.
"""

import argparse

import genesis
from genesis import memory_profiler

MIB = 1 << 20
LAYERS = 4
manager = genesis.memory_manager
total = genesis.cuda.get_device_properties(manager.device).total_memory
manager.configure(memory_fraction=min(1.0, max(0.001, 1024 * MIB / total)))


def make_weights():
    """The parameters of the model."""
    weights = []
    for _ in range(LAYERS):
        weights.append(manager.allocate_block(24 * MIB))
    return weights


def make_state(weights):
    """The optimizer's state: two numbers for each parameter."""
    state = []
    for weight in weights:
        state.append(manager.allocate_block(2 * weight.nbytes))
    return state


def forward(batch):
    """Activations, which backward needs, and the result."""
    kept = []
    for _ in range(LAYERS):
        kept.append(manager.allocate_block(batch * MIB))
        work = manager.allocate_block(2 * batch * MIB)
        work.free()
    logits = manager.allocate_block(batch * MIB)
    return kept, logits


def backward(kept, weights):
    """Gradients come, activations go."""
    gradients = []
    for weight in weights:
        gradients.append(manager.allocate_block(weight.nbytes))
        kept.pop().free()
    return gradients


def train(batches, is_repaired):
    """All steps."""
    with memory_profiler.annotate("build"):
        weights = make_weights()
        state = make_state(weights)
    history = []
    for batch in batches:
        with memory_profiler.annotate("step"):
            with memory_profiler.annotate("forward"):
                kept, logits = forward(batch)
            with memory_profiler.annotate("backward"):
                gradients = backward(kept, weights)
            history.append(0.5 if is_repaired else logits)  # the loss would be enough
            del logits, gradients
    return len(state) + len(history)


def main():
    """Train with the profiler on; look at what it has seen."""
    parser = argparse.ArgumentParser(description="A training loop that runs out of memory.")
    parser.add_argument(
        "which", nargs="?", choices=["repaired"], help="the loop without its mistake"
    )
    is_repaired = parser.parse_args().which is not None
    with memory_profiler.record():
        try:
            train([32, 32, 48, 32, 64, 32, 64, 64, 80, 32], is_repaired)
        except genesis.OutOfMemoryError as error:
            print(error, end="\n\n")
    print(memory_profiler.get_report().summary())
    name = "repaired" if is_repaired else "out_of_memory"
    memory_profiler.get_timeline().to_html(f"{name}.html")
    genesis.cuda.dump_snapshot(f"{name}.json")


if __name__ == "__main__":
    main()
