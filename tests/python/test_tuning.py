"""What tuning has found, as Python shows it, on the simulated GPU."""

from conftest import BUILD

GATHER = """
import genesis
x = genesis.arange(8200.0, device="cuda")
y = x[genesis.arange(8199, -1, -1, device="cuda")]
assert y.tolist() == list(range(8199, -1, -1))
found = genesis.cuda.tuning_choices()
"""


def test_choices_are_kept_and_forgotten(fresh, tmp_path):
    """One process measures, the next one finds it, and clear_kernel_cache() removes it."""
    place = {
        "GENESIS_CUDA_DRIVER": str(BUILD / "libgenesis_sim.so"),
        "GENESIS_KERNEL_CACHE_DIR": str(tmp_path / "cache"),
        "GENESIS_AUTOTUNE": "max",
    }
    check = """
assert len(found) == 1, found
one = found[0]
assert isinstance(one, genesis.cuda.TuningChoice)
assert one.kernel == "index_get" and one.problem.startswith("bytes bytes=32768..49151 ")
assert "Genesis simulated GPU, sm_90" in one.device
assert one.device.endswith(", genesis " + genesis.__version__)
assert one.chosen is one.candidates[0] and one.chosen.values == {"items": 4, "unit": 4}
assert [c.values["items"] for c in one.candidates] == [4, 1, 2, 8]
assert all(0 < c.milliseconds < 1 for c in one.candidates)
lines = str(one).splitlines()
assert len(lines) == 5 and lines[1].startswith("  * ") and lines[1].endswith("items=4 unit=4")
print(one.candidates)
"""
    first = fresh(GATHER + check, **place)
    listing = "import genesis\nfound = genesis.cuda.tuning_choices()\n"  # and no device is used
    again = fresh(listing + check, **place)
    assert first.stdout == again.stdout
    fresh(
        listing + "assert len(found) == 1\ngenesis.cuda.clear_kernel_cache()\n"
        "assert genesis.cuda.tuning_choices() == []",
        **place,
    )


def test_off_and_on_measure_nothing_here(fresh, tmp_path):
    """The simulated GPU has no clock, and with `off` nobody asks."""
    for mode in ("off", "on"):
        fresh(
            GATHER + "assert found == [], found",
            GENESIS_CUDA_DRIVER=str(BUILD / "libgenesis_sim.so"),
            GENESIS_KERNEL_CACHE_DIR=str(tmp_path / mode),
            GENESIS_AUTOTUNE=mode,
        )
