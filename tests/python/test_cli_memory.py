"""python -m genesis memory: show, diff, html and replay."""

import json
import pickle
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
from recording_models import random_model, training_recording

from genesis import __main__ as command_line
from genesis._recording import ALLOC, EVENT, FREE, FREE_COMPLETED, FREE_REQUESTED, Recording
from genesis._replay import Settings, Trace, read_recording, replay
from genesis._snapshot import dump


@pytest.fixture
def shell(monkeypatch, capsys):
    """Run the command line here; gives the exit code, output and errors."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["genesis", "memory", *map(str, arguments)])
        try:
            code = command_line.main()
        except SystemExit as error:
            code = error.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def simulator(build):
    if not (build / "libgenesis_sim.so").exists():
        pytest.skip("the build has no simulator")


@pytest.fixture
def sample(tmp_path):
    """A snapshot of training steps."""
    path = tmp_path / "steps.json"
    dump(training_recording(), path)
    return path


def cells(output, name):
    """The two columns of a row of the replay's table."""
    line = next(line for line in output.splitlines() if line.startswith(name))
    return re.split(r"\s{2,}", line.strip())[1:]


# ---- show, diff, html ---------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["json", "pickle"])
def test_show(shell, tmp_path, ending):
    recording = random_model(3, 400).recording()
    path = tmp_path / f"x.{ending}"
    dump(recording, path)
    code, output, errors = shell("show", path)
    assert (code, errors) == (0, "")
    assert "cuda:0 at the end" in output and "cpu at the end" in output
    assert "model_1.py:10 (layer1)" in output and "by annotation" in output


def test_names_cannot_command_the_terminal(shell, tmp_path):
    """Names come from a file; nothing in them is more than text."""
    bad = "\x1b]0;x\x07\r\x9b31m\u202e\x00\ud800\n"
    frames = [{"name": f"f{bad}", "filename": f"/a{bad}.py", "line": 3}]
    alloc = {"action": "alloc", "addr": 4096, "size": 100, "time_us": 5, "stream": 0}
    blocks = [{"size": 512, "requested_size": 100, "state": "active_allocated", "frames": frames}]
    snapshot = {
        "device_traces": [
            [
                {**alloc, "frames": frames, "user_metadata": f"step{bad}"},
                {**alloc, "action": "oom", "size": 1 << 40},
            ]
        ],
        "segments": [{"address": 4096, "total_size": 512, "device": 0, "blocks": blocks}],
        "external_annotations": [
            {"name": f"step{bad}", "stage": stage, "device": 0, "time_us": time}
            for stage, time in (("START", 1), ("END", 9))
        ],
        "genesis": {"devices": [f"cuda:0{bad}"]},
    }
    for ending, write in (("json", lambda x: json.dumps(x).encode()), ("pickle", pickle.dumps)):
        path, empty = tmp_path / f"x.{ending}", tmp_path / "empty.json"
        path.write_bytes(write(snapshot))
        empty.write_text('{"device_traces": [[]], "segments": []}')
        for arguments in (("show", path), ("diff", empty, path)):
            code, output, errors = shell(*arguments)
            assert (code, errors) == (0, "")
            assert output.isascii() and not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", output)
            assert r"(f\x1b]0;x\x07" in output and r"\x9b31m\u202e\x00\ud800" in output
        path.write_bytes(write({"device_traces": bad}))
        code, output, errors = shell("show", path)
        assert code == 2 and errors.isascii() and errors.count("\n") == 1 and "\x1b" not in errors


def test_show_counts_what_it_does_not_know(shell, tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"device_traces": [[{"action": "teleport"}]], "segments": []}')
    assert "left out: 1 entry with an action" in shell("show", path)[1]


def test_diff(shell, tmp_path):
    def block(address, size, site):
        base = {"segment_id": 1, "segment_address": 4096, "segment_bytes": 8192, "device": 0}
        more = {"state": "live", "stream_id": 0, "site": site, **base}
        return {"address": address, "nbytes": size, "requested": size, **more}

    sites = training_recording().sites
    idle = {**block(8192, 4096, 0), "state": "global_cached"}
    one = Recording(sites=sites, devices=["cuda:0"], blocks=[block(4096, 1024, 1), idle])
    grown = [block(4096, 1024, 1), block(5120, 2048, 2), idle]
    two = Recording(sites=sites, devices=["cuda:0"], blocks=grown)
    dump(one, tmp_path / "a.json")
    dump(two, tmp_path / "b.pickle")
    code, output, _ = shell("diff", tmp_path / "a.json", tmp_path / "b.pickle")
    assert code == 0
    assert re.search(r"cuda:0 live +1.0 KiB +3.0 KiB +\+2.0 KiB", output)
    assert re.search(r"cuda:0 segments +1 +1 +\+0", output)
    assert re.search(r"\+2.0 KiB +\+1 block   model_2.py:20 \(layer2\)", output)
    assert re.search(r"\+2.0 KiB +\+1 block   2048 bytes", output)
    assert "model_1.py" not in output
    code, output, _ = shell("diff", tmp_path / "b.pickle", tmp_path / "a.json")
    assert re.search(r"-2.0 KiB +-1 block   model_2.py", output)
    assert "nothing changed" in shell("diff", tmp_path / "a.json", tmp_path / "a.json")[1]


def test_diff_of_other_devices(shell, tmp_path):
    for name in ("cuda:0", "cpu"):
        dump(random_model(1, 50, (name,)).recording(), tmp_path / f"{name[:3]}.json")
    code, output, _ = shell("diff", tmp_path / "cud.json", tmp_path / "cpu.json")
    assert code == 0 and "cuda:0 live" in output and "cpu live" in output


def test_html(shell, sample, tmp_path, monkeypatch):
    page = types.ModuleType("genesis._timeline_page")
    page.write_page = lambda recording, path: Path(path).write_text(f"{len(recording)}")
    monkeypatch.setitem(sys.modules, "genesis._timeline_page", page)
    code, output, _ = shell("html", sample, "-o", tmp_path / "page.html")
    assert code == 0 and "page.html" in output
    assert int((tmp_path / "page.html").read_text()) == len(read_recording(str(sample)))
    code, _, errors = shell("html", sample, "-o", tmp_path / "none" / "page.html")
    assert code == 2 and "No such file" in errors


def test_html_beside_the_snapshot(shell, sample):
    code, output, _ = shell("html", sample)
    assert code == 0 and str(sample.with_suffix(".html")) in output
    assert "<html" in sample.with_suffix(".html").read_text()[:200]


def test_a_reader_that_has_enough(sample):
    command = [sys.executable, "-m", "genesis", "memory", "show", sample]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b"" and process.wait() == 1


def test_output_that_has_no_room(sample):
    command = [sys.executable, "-m", "genesis", "memory", "show", sample]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert re.fullmatch("python -m genesis: .*No space left on device\n", done.stderr)


@pytest.mark.parametrize("content", [None, b"", b"\x80nonsense", b"{}", b"a,b,c\n", b"[1, 2"])
def test_bad_files_are_one_line_and_2(shell, tmp_path, content):
    path = tmp_path / "x"
    if content is not None:
        path.write_bytes(content)
    for arguments in (("show", path), ("diff", path, path), ("replay", path)):
        code, output, errors = shell(*arguments)
        assert (code, output) == (2, "")
        assert str(path) in errors and errors.count("\n") == 1


def test_usage_errors(shell, sample):
    assert shell()[0] == 2 and shell("show")[0] == 2
    assert shell("replay", sample, "--policy", "magic")[0] == 2
    for option in ("--memory", "--segment-size"):
        code, _, errors = shell("replay", sample, option, "lots")
        assert code == 2 and option in errors and errors.count("\n") == 1
        for size in ("1", "900TiB"):
            code, _, errors = shell("replay", sample, option, size)
            assert code == 2 and re.search(f"{option}: from 2 MiB to .* not {size}", errors)
    code, _, errors = shell("replay", sample, "--device", "cpu", "--memory", "16TiB")
    assert code == 2 and "cpu has" in errors and errors.count("\n") == 1
    code, _, errors = shell("replay", sample, "--device", "cpu", "--policy", "virtual")
    assert code == 2 and "pool and direct" in errors
    code, _, errors = shell("replay", sample, "--trace-device", "cuda:9")
    assert code == 2 and "cuda:0" in errors


def test_the_module_runs(sample):
    done = subprocess.run(
        [sys.executable, "-m", "genesis", "memory", "show", sample],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "cuda:0 at the end" in done.stdout


# ---- traces -------------------------------------------------------------------------------------


def event(kind, address, size=100, stream=0, device=0):
    return EVENT.pack(0, address, 512, size, stream, 0, 0, 0, kind, device, 0)


def test_steps_of_a_trace():
    data = event(FREE, 9) + event(ALLOC, 1) + event(ALLOC, 2, 200, 77) + event(FREE_REQUESTED, 1)
    data += event(FREE_COMPLETED, 1) + event(ALLOC, 3, 0) + event(ALLOC, 2, 300)
    data += event(ALLOC, 4, 5, 0, 1)
    trace = Trace.of(Recording(data, devices=["cuda:0", "cuda:1"]))
    assert list(trace.steps) == [
        *(0, 101, 0),
        *(1, 201, 1),
        *(0, 0, 0),
        *(0, 1, 0),
        *(1, 0, 0),  # its free was not recorded
        *(1, 301, 0),
    ]
    assert (trace.allocations, trace.frees, trace.older) == (4, 2, 1)
    assert (trace.slots, trace.streams, trace.device) == (2, 1, "cuda:0")
    assert Trace.of(Recording(data, devices=["cuda:0", "cuda:1"]), 1).allocations == 1


def test_what_was_live_before_can_come_first():
    model = random_model(7, 400, ("cuda:0",))
    recording = model.recording(lost=len(model.rows) // 2)
    trace, longer = Trace.of(recording), Trace.of(recording, with_older=True)
    assert trace.older > 0 and longer.older == 0
    older = longer.allocations - trace.allocations
    assert older == len(recording.live_at(-1)) and longer.frees == trace.frees + trace.older


def test_the_logs_of_rmm(tmp_path):
    head = "Thread,Time,Action,Pointer,Size,Stream\n"
    path = tmp_path / "x.csv"
    path.write_text(
        head
        + "1,12:00:00.0,allocate,0x10,100,0x0\n1,12:00:00.1,allocate,0x20,50,0x7\n"
        + "1,12:00:00.2,free,0x10,100,0x0\n1,12:00:00.3,allocate failure,(nil),999,0x0\n"
        + "1,12:00:00.4,dance,0x10,1,0x0\n"
    )
    recording = read_recording(str(path))
    assert recording.usage(0).live == [100, 150, 50, 50] and recording.ignored == 1
    recorded = Trace.of(recording).recorded
    assert recorded == (150, 150, None, None, 1) and recorded.fragmentation is None
    for line in ("1,2,allocate,0x10", "1,2,allocate,zz,1,0", "1,2,allocate,0x1,-1,0"):
        path.write_text(head + line + "\n")
        with pytest.raises(ValueError, match="line 2"):
            read_recording(str(path))


def test_what_was_recorded():
    model = random_model(5, 500, ("cuda:0",))
    recorded = Trace.of(model.recording()).recorded
    assert recorded.peak_live == max(account[0] for account in model.account)
    assert recorded.peak_requested == max(account[1] for account in model.account)
    assert recorded.peak_reserved == max(account[3] for account in model.account)
    assert recorded.driver_calls == sum(row[8] in (5, 6) for row in model.rows)
    assert 0 <= recorded.fragmentation < 1


# ---- replays ------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [None, "virtual", "pool", "direct"])
def test_replay_on_the_simulated_gpu(simulator, policy):
    model = random_model(5, 600, ("cuda:0",))
    trace = Trace.of(model.recording())
    outcome, used = replay(trace, Settings(policy=policy))
    assert used == (policy or "virtual")
    assert outcome.peak_requested == max(account[1] for account in model.account)
    assert outcome.peak_requested <= outcome.peak_live <= outcome.peak_reserved
    assert outcome.driver_calls > 0 and outcome.out_of_memory == 0
    if policy == "direct":
        # Everything is freed at the end, and a request of no bytes needs no call.
        assert outcome.driver_calls == 2 * trace.allocations


def test_replay_on_the_cpu():
    trace = Trace.of(random_model(5, 300, ("cpu",)).recording())
    assert replay(trace, Settings("cpu"))[1] == "pool"
    outcome, policy = replay(trace, Settings("cpu", "direct"))
    assert policy == "direct" and outcome.peak_live == outcome.peak_requested


def test_replay_with_little_memory(simulator):
    data = b"".join(event(ALLOC, number + 1, 4 << 20) for number in range(16))
    data += event(FREE, 1) + event(FREE, 16) + event(ALLOC, 1, 4 << 20)
    trace = Trace.of(Recording(data, devices=["cuda:0"]))
    outcome, _ = replay(trace, Settings(memory=32 << 20, policy="pool"))
    assert outcome.out_of_memory >= 8
    assert outcome.peak_reserved <= 32 << 20 and outcome.peak_requested <= 32 << 20


def test_replay_ignores_the_settings_of_this_process(simulator, monkeypatch):
    monkeypatch.setenv("GENESIS_CUDA_ALLOCATOR", "direct")
    monkeypatch.setenv("SIM_GPU_MEMORY", "1")
    trace = Trace.of(random_model(5, 100, ("cuda:0",)).recording())
    assert replay(trace, Settings())[1] == "virtual"


def test_replay_prints_a_table(simulator, shell, root):
    path = root / "bench/alloc/traces/sample_torch.json"
    code, output, errors = shell("replay", path, "--policy", "pool", "--segment-size", "4MiB")
    assert (code, errors) == (0, "")
    assert "134 allocations and 122 frees of cuda:0, 1 stream besides" in output
    assert "left out: 1 free of blocks from before the recording" in output
    assert "4.0 KiB that were live before" in output
    for name in ("peak live", "peak requested", "peak reserved", "fragmentation", "driver calls"):
        assert len(cells(output, name)) == 2
    assert cells(output, "out of memory") == ["1", "0"]
    assert "genesis, pool" in output
    _, output, _ = shell("replay", path, "--with-older")
    assert "135 allocations and 123 frees" in output and "before the recording" not in output


def test_replay_of_a_log_does_not_know_segments(simulator, shell, root):
    _, output, _ = shell("replay", root / "bench/alloc/traces/sample_rmm.csv")
    assert cells(output, "peak reserved")[0] == "-" and cells(output, "fragmentation")[0] == "-"


def test_replay_without_allocations_or_device(shell, tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"device_traces": [[]], "segments": []}))
    code, _, errors = shell("replay", path)
    assert code == 2 and "no allocations" in errors


def test_replay_says_why_it_failed(shell, sample, monkeypatch):
    monkeypatch.setenv("GENESIS_CUDA_DRIVER", "/no/such/driver.so")
    code, _, errors = shell("replay", sample, "--device", "cuda")
    assert code == 2 and "/no/such/driver.so" in errors and errors.count("\n") == 1
