"""The thread that submits kernels: nobody can tell that it is there."""

import pytest
from conftest import BUILD, simulate_script

START = """
import ctypes, os
import genesis
from genesis import cuda

sim = ctypes.CDLL(os.environ["GENESIS_CUDA_DRIVER"])
x = genesis.arange(1000, dtype=genesis.float32, device="cuda")


def many(count=100, y=x):
    for _ in range(count):
        y = y + 1
        genesis.flush()
    return y
"""


@pytest.fixture
def queued(fresh):
    """Run a program with the thread, in which a launch takes as long as it takes a driver."""
    simulator = BUILD / "libgenesis_sim.so"
    if not simulator.exists():
        pytest.skip("the build has no simulator")

    def run(code, **environment):
        fresh(
            START + code + "\nassert sim.sim_control_finding_count() == 0\n",
            GENESIS_CUDA_DRIVER=str(simulator),
            GENESIS_LAUNCH_THREAD="on",
            **{"SIM_GPU_SCHEDULE": "random", "SIM_GPU_DELAY_US": "3"} | environment,
        )

    return run


@pytest.mark.parametrize("schedule", ["eager", "lazy", "random"])
def test_results_are_those_of_the_order(queued, schedule):
    queued(
        """
for count in (1, 5, 6, 7, 22, 23, 24, 100):
    assert many(count).sum().item() == 499500 + 1000 * count
y = many()
genesis.flush()
y *= 2
z = many(3, y)
assert z[0].item() == 203 and y[0].item() == 200
""",
        SIM_GPU_SCHEDULE=schedule,
    )


def test_streams_and_events_are_in_order(queued):
    queued("""
a, b = cuda.Stream(), cuda.Stream()
for _ in range(20):
    with cuda.stream(a):
        y = many(30)
        event = a.record_event()
    with cuda.stream(b):
        z = many(30, y)
    b.wait_event(event)
    with cuda.stream(a):
        w = many(30, z)
    assert w[0].item() == 90
event.synchronize()
assert event.query()
""")


def test_who_knows_an_address_finds_everything_submitted(queued):
    queued("""
y = many()
pointer = y.data_ptr()
copy = (ctypes.c_float * 1000)()
context = ctypes.c_void_p()
assert sim.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert sim.cuCtxPushCurrent_v2(context) == 0


def read():
    address = ctypes.c_uint64(ctypes.addressof(copy))
    assert sim.cuMemcpyAsync(address, ctypes.c_uint64(pointer), ctypes.c_size_t(4000), None) == 0
    assert sim.cuStreamSynchronize(None) == 0
    return copy[0]


assert read() == 100
for i in range(50):  # from now on nothing is left to the thread
    y += 1
    genesis.flush()
    assert read() == 101 + i
del y
assert many(50)[0].item() == 50
""")


def test_graphs_are_captured_whole(queued):
    queued("""
static = genesis.zeros(8, device="cuda")
many(30)
graph = cuda.CUDAGraph()
with cuda.graph(graph):
    out = static + 1
    for _ in range(30):
        out = out * 1 + 1
        genesis.flush()
for i in range(3):
    static.fill_(i)
    graph.replay()
    assert out[0].item() == 31 + i
assert many(30)[0].item() == 30
""")


def test_a_launch_that_fails_is_reported_and_the_rest_goes_on(queued):
    queued(
        """
many(30)
genesis.cuda.synchronize()
for i in range(10):
    many(10)
    sim.sim_control_fail(b"cuLaunchKernelEx", 8, 701, 0)
    try:
        many(30)
        genesis.cuda.synchronize()
    except RuntimeError as error:
        assert "cuLaunchKernelEx failed" in str(error), error
    else:
        raise AssertionError("nothing was reported")
    assert many(30)[0].item() == 30
""",
        GENESIS_LAUNCH_TOGETHER="off",
    )


def test_launches_that_wait_are_submitted_together(queued):
    queued("""
graphs = lambda: sim.sim_control_call_count(b"cuGraphLaunch")
for _ in range(1000):  # the thread may have no processor: then the caller submits what waits
    assert many(100)[0].item() == 100
    if graphs() > 100:
        break
assert graphs() > 100
made = sim.sim_control_call_count(b"cuGraphInstantiateWithFlags")
assert 0 < made <= 7, made  # of 2 to 8 kernels
""")


@pytest.mark.parametrize(
    "function",
    [
        *("cuGraphCreate", "cuGraphAddKernelNode", "cuGraphAddDependencies"),
        *("cuGraphInstantiateWithFlags", "cuGraphExecKernelNodeSetParams", "cuGraphLaunch"),
        *("cuGraphExecDestroy", "cuGraphDestroy"),
    ],
)
def test_graphs_that_fail_are_launched_one_by_one(queued, function):
    queued(f"""
for nth, is_persistent in ((1, 0), (2, 0), (5, 0), (1, 1)):
    sim.sim_control_fail(b"{function}", nth, 1, is_persistent)
    for _ in range(1000):  # see above; after 8 faults in a row there are no graphs
        with cuda.stream(cuda.Stream()):
            assert many(50)[0].item() == 50
        if sim.sim_control_fault_count() > 6 * is_persistent:
            break
    assert sim.sim_control_fault_count() > 0
sim.sim_control_fail(None, 0, 0, 0)
assert many(50)[0].item() == 50
""")


def test_drivers_without_graphs_to_change(queued):
    queued(
        """
assert many(100)[0].item() == 100
assert sim.sim_control_call_count(b"cuGraphLaunch") == 0
""",
        SIM_GPU_VERSION="12020",
    )


@pytest.mark.parametrize("schedule", ["lazy", "random"])
def test_long_runs_beside_the_cpu(schedule):
    finished = simulate_script(
        "device_launches.py", "60", SIM_GPU_SCHEDULE=schedule, SIM_GPU_DELAY_US="1"
    )
    assert not finished.stderr, finished.stderr


def test_it_ends_with_the_process_and_is_not_forked(queued):
    queued("""
many(30)
child = os.fork()
if child == 0:
    try:
        many(30)
    except RuntimeError:
        os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
assert many(30)[0].item() == 30
many(300)  # and is left
""")


def test_threads_share_it(queued):
    queued("""
import threading

def work(number):
    with cuda.stream(cuda.Stream()):
        for _ in range(10):
            y = many(30, x + number)
            assert y[0].item() == 30 + number, number

threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
""")
