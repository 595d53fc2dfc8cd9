# Genesis: two commands do everything. `make demo` shows it at work, `make test` tests it; both set the
# machine up first, and say what they install.
#
#   make build      the C library in build/, the Python package importable in .venv
#   make asan tsan clang    the tests under sanitizers, and with clang
#   make coverage   branch coverage of each layer, in build-coverage; `make mutate`: mistakes that tests must find
#   make lint fmt   check the layout and style of the sources, or apply it
#   make soak SECONDS=600   random programs for as long as you like, on the CPU and the simulated GPU
#   make bench      the benchmarks that need no GPU
#   make archive ARCHITECTURES="90"    compiled kernels for these GPUs, beside the library in build/
#   make wheel      a wheel in dist/, with compiled kernels for all GPUs
#   make gpu-test gpu-bench    on a machine with a GPU, with GPU_PYTHON (it has PyTorch)
.DEFAULT_GOAL := help
.PHONY: help demo test build asan tsan clang coverage mutate lint fmt soak bench archive wheel wheel-check gpu-build gpu-test gpu-bench clean

SECONDS ?= 60
# Machine code, and PTX for GPUs that are newer than the compiler. Kernels of other PTX than 90 could not be launched early.
ARCHITECTURES ?= 75 80 90 100 120 90ptx
GPU_PYTHON ?= python3
SANITIZER ?= compute-sanitizer
NINJA = ninja -C $(1) $(if $(VERBOSE),--verbose,--quiet)
CTEST = ctest -j2 --output-on-failure --no-tests=error -LE gpu --test-dir
# The GPUs of this machine, for which a build brings compiled kernels along; and how those are made.
HERE = $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . | grep -x '[0-9]*' | sort -u)
ARCHIVE = $(1) tools/kernel_archive.py --program $(2)/tools/kernel_texts --out $(2)/libgenesis.kernels --cache $(2)/kernel_images --architectures "$(3)"
C_FILES = $(shell git ls-files '*.c' '*.h')

help:
	@sed -n '1,13s/^# \{0,1\}//p' Makefile

# ---- the two commands ----

demo: build
	build/examples/memory
	.venv/bin/python examples/demo.py build/demo.html

test: build
	@tools/setup test
	$(CTEST) build
	.venv/bin/python -m pytest -q -n 2 --dist loadfile -m "not gpu" tests

# ---- building ----

build:
	@tools/setup build
	@test -f build/build.ninja || cmake -S . -B build -G Ninja -DPython3_EXECUTABLE=$(CURDIR)/.venv/bin/python
	@$(call NINJA,build)
	@$(if $(HERE),$(call ARCHIVE,.venv/bin/python,build,$(HERE)) || true)

# NVRTC comes from the toolkit or, where there is none, from NVIDIA's wheel; without both there is no archive.
archive: build
	@.venv/bin/python tools/kernel_archive.py --find || .venv/bin/python -m pip install --quiet "nvidia-cuda-nvrtc>=13,<14" || true
	$(call ARCHIVE,.venv/bin/python,build,$(ARCHITECTURES))

wheel: archive
	.venv/bin/python -m pip wheel --quiet --no-deps -C cmake.define.GENESIS_ARCHIVE=$(CURDIR)/build/libgenesis.kernels --wheel-dir dist .

# The same of what build/ has compiled, which takes seconds; unpacked, it must work by itself.
wheel-check: build
	@tools/setup test
	rm -rf build/wheel
	.venv/bin/python -m pip wheel --quiet --no-deps --no-build-isolation -C build-dir=build -C cmake.define.GENESIS_TESTS=ON -C cmake.build-type=RelWithDebInfo --wheel-dir build/wheel .
	.venv/bin/python -m pip install --quiet --no-deps --no-index --target build/wheel/unpacked build/wheel/*.whl
	cd build/wheel/unpacked && ../../../.venv/bin/python -c "import genesis; assert 'unpacked' in genesis.__file__; assert (genesis.ones(3) + 1).sum().item() == 6"

clean:
	rm -rf build build-* dist

# ---- other ways to build and test ----

# Tests of Python alone tell the sanitizer nothing.
PURE = test_timeline_page test_timeline test_snapshot test_recording test_docs test_house test_typing test_operations

# The thread-local memory of kernels that the simulator unloads is not looked at: the search for leaks would crash there.
# Python loads the sanitizer's library first, and is not told of leaks: it leaks by itself at exit. Requests that no machine
# can meet fail as they do without the sanitizer.
asan: build
	@tools/setup test
	@test -f build-asan/build.ninja || cmake -S . -B build-asan -G Ninja -DGENESIS_SANITIZE=address,undefined -DPython3_EXECUTABLE=$(CURDIR)/.venv/bin/python
	@$(call NINJA,build-asan)
	ASAN_OPTIONS=intercept_tls_get_addr=0 $(CTEST) build-asan -E test_memory_fake
	LD_PRELOAD="$$(cc -print-file-name=libasan.so) $$(cc -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONPATH=build-asan/python .venv/bin/python -m pytest -q -n 2 --dist loadfile -m "not gpu" $(PURE:%=--ignore=tests/python/%.py) --deselect tests/python/test_device_tensors.py::test_the_kernels_are_cuda_c --deselect tests/python/test_device_tensors.py::test_bounds tests/python

# Suites in which one thread works tell the thread sanitizer nothing, and take ten times as long under it.
ALONE = test_(sim$$|memory_(pool|virtual)_sim|streams_memory|loops|dtype|fold|compact|pool_faults|pool_parts|kernels|engine|conformance|order_without|memory_fake|memory_direct|json|checked|containers|option|programs|debug_modes_(pool|virtual)|pool_config_(pool|virtual)|cuda_faults|matmul_gpu)

tsan: build
	@test -f build-tsan/build.ninja || cmake -S . -B build-tsan -G Ninja -DGENESIS_SANITIZE=thread -DGENESIS_PYTHON=OFF
	@$(call NINJA,build-tsan)
	$(CTEST) build-tsan -E '$(ALONE)|test_sort|compile_kernels' # two minutes: by hand, when sorting changes

clang: build
	@tools/setup lint
	@test -f build-clang/build.ninja || cmake -S . -B build-clang -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug -DPython3_EXECUTABLE=$(CURDIR)/.venv/bin/python
	@$(call NINJA,build-clang)
	$(CTEST) build-clang -E 'test_(compact|pool_faults|order|sort|fold|memory_fake)'

# Each test by itself: minutes for those of C, an hour with those of Python. TESTS names some, by regular expressions.
TESTS ?=
COUNT ?= 200

coverage: build
	@tools/setup test
	@test -f build-coverage/build.ninja || cmake -S . -B build-coverage -G Ninja -DCMAKE_BUILD_TYPE=Coverage -DPython3_EXECUTABLE=$(CURDIR)/.venv/bin/python
	@$(call NINJA,build-coverage)
	.venv/bin/python tools/coverage.py run $(TESTS)

mutate: coverage
	nice .venv/bin/python tools/mutate.py --count $(COUNT)

lint:
	@tools/setup lint
	@clang-format --dry-run -Werror $(C_FILES)
	.venv/bin/ruff check --quiet .
	.venv/bin/ruff format --quiet --check .

fmt:
	@tools/setup lint
	clang-format -i $(C_FILES)
	.venv/bin/ruff check --quiet --fix .
	.venv/bin/ruff format --quiet .

soak: build
	@tools/setup test
	build/tests/test_stress $(SECONDS)
	build/tests/test_stress_pool cpu $(SECONDS)
	build/tests/test_claim cpu $(SECONDS)
	for policy in pool virtual; do GENESIS_CUDA_DRIVER=$(CURDIR)/build/libgenesis_sim.so GENESIS_CUDA_ALLOCATOR=$$policy SIM_GPU_SCHEDULE=random SIM_GPU_SEED=$$RANDOM build/tests/test_stress_pool cuda $(SECONDS) || exit 1; done
	GENESIS_CUDA_DRIVER=$(CURDIR)/build/libgenesis_sim.so build/tests/sim/test_order $$(($(SECONDS) * 20)) $$RANDOM
	GENESIS_CUDA_DRIVER=$(CURDIR)/build/libgenesis_sim.so build/tests/sim/test_launch_thread $$(($(SECONDS) * 1000))
	for schedule in eager lazy random; do GENESIS_CUDA_DRIVER=$(CURDIR)/build/libgenesis_sim.so GENESIS_CUDA_ALLOCATOR=virtual SIM_GPU_SCHEDULE=$$schedule SIM_GPU_MEMORY=2147483648 build/tests/test_compact cuda 1 || exit 1; done
	GENESIS_CUDA_DRIVER=$(CURDIR)/build/libgenesis_sim.so build/tests/sim/test_programs $$(($(SECONDS) * 1000)) $$RANDOM
	GENESIS_CUDA_DRIVER=$(CURDIR)/build/libgenesis_sim.so SIM_GPU_SCHEDULE=random .venv/bin/python tests/ops/device_streams.py $$(($(SECONDS) * 2)) $$RANDOM
	HYPOTHESIS_PROFILE=soak TENSOR_PROGRAMS=$$(($(SECONDS) * 100)) .venv/bin/python -m pytest -q tests/python/test_properties.py tests/python/test_tensor_programs.py
	COMPOSITE_VALUES=all .venv/bin/python -m pytest -q -n 2 tests/python/test_composites.py
	GENESIS_CUDA_DRIVER=$(CURDIR)/build/libgenesis_sim.so .venv/bin/python tests/ops/device_composites.py $$(($(SECONDS) * 2)) $$RANDOM
	GENESIS_CUDA_DRIVER=$(CURDIR)/build/libgenesis_sim.so SIM_GPU_SCHEDULE=random .venv/bin/python tests/ops/device_gradients.py all
	for policy in pool virtual; do GENESIS_CUDA_DRIVER=$(CURDIR)/build/libgenesis_sim.so GENESIS_CUDA_ALLOCATOR=$$policy SIM_GPU_SCHEDULE=random SIM_GPU_SEED=$$RANDOM .venv/bin/python tests/sim/gradient_faults.py || exit 1; done
	LOSS_BITS=all .venv/bin/python -m pytest -q tests/python/test_loss_bits.py
	ROW_PROGRAMS=20000 ROW_PROGRAMS_FIRST=$$RANDOM LIST_PROGRAMS=4000 LIST_PROGRAMS_FIRST=$$RANDOM .venv/bin/python -m pytest -q tests/python/test_row_programs.py tests/python/test_list_programs.py
	DEVICE_TIERS=all .venv/bin/python -m pytest -q -n 2 tests/python/test_tiers.py
	SEQUENCE_PROGRAMS=$$(($(SECONDS) * 5000)) .venv/bin/python -m pytest -q tests/python/test_sequences.py
	SNAPSHOT_MUTANTS=$$(($(SECONDS) * 200)) .venv/bin/python -m pytest -q tests/python/test_snapshot.py::test_mutated_snapshots_are_refused_or_read
	KERNEL_ARCHITECTURES="80 90 100" .venv/bin/python -m pytest -q tests/python/test_device_tensors.py::test_the_kernels_are_cuda_c
	for policy in pool virtual; do GENESIS_CUDA_DRIVER=$(CURDIR)/build/libgenesis_sim.so GENESIS_CUDA_ALLOCATOR=$$policy SIM_GPU_MEMORY=2147483648 build/tests/test_pool_faults cuda 1 || exit 1; done
	$(MAKE) wheel

# Allocators: on the CPU beside others, and the sample traces.
bench: build
	build/bench/alloc/bench_alloc_cpu
	build/bench/bench_watch build/libgenesis.so build/bench/libgenesis_bare.so
	.venv/bin/python bench/bench_watch.py
	.venv/bin/python bench/bench_ops.py
	.venv/bin/python bench/bench_index.py
	.venv/bin/python bench/bench_everyday.py
	.venv/bin/python bench/bench_reductions.py
	build/bench/alloc/replay bench/alloc/traces/sample_torch.json
	build/bench/alloc/replay bench/alloc/traces/sample_rmm.csv

# ---- on a machine with a GPU ----

gpu-build:
	@test -f build-gpu/build.ninja || cmake -S . -B build-gpu -G Ninja -DPython3_EXECUTABLE=$$(command -v $(GPU_PYTHON))
	@$(call NINJA,build-gpu)
	@$(if $(HERE),$(call ARCHIVE,$(GPU_PYTHON),build-gpu,$(HERE)) || true)

# With memory that is the driver's own: what a pool hands out again counts as written.
ONE_OF_EACH = PYTHONPATH=build-gpu/python GENESIS_CUDA_ALLOCATOR=direct GENESIS_BLAS=off $(SANITIZER) --target-processes all --error-exitcode 9

# Parts that compare the device's free memory run alone, the others side by side. The sanitizer is not told of failed API
# calls: some tests make them fail on purpose.
GPU_ALONE = ^test_(gpu|conformance)$$
GPU_PYTEST = PYTHONPATH=build-gpu/python $(GPU_PYTHON) -m pytest -q
GPU_FILES = adapters device_tensors device_training gpu_interop gradients kernels list_programs loss_bits optim row_programs tiers
GPU_TOOLS = memcheck racecheck initcheck
GPU_PARTS = gpu-test-c gpu-test-torch gpu-test-memory gpu-test-overrun gpu-test-interpreted $(GPU_FILES:%=gpu-test-%) $(GPU_TOOLS:%=gpu-test-%)
.PHONY: $(GPU_PARTS)

# Programs run compiled, as they do when they run often, and once more interpreted.
gpu-test: export GENESIS_TIERS = compiled
gpu-test: gpu-build
	ctest --output-on-failure --no-tests=error --test-dir build-gpu -L gpu -R '$(GPU_ALONE)'
	$(GPU_PYTEST) -m gpu tests/python/test_gpu.py
	$(SANITIZER) --tool memcheck --leak-check full --report-api-errors no --error-exitcode 9 build-gpu/tests/test_gpu quick
	$(MAKE) --jobs=8 --keep-going --output-sync=target $(GPU_PARTS)
	@echo "gpu-test: all parts passed"

gpu-test-c:
	ctest --output-on-failure --no-tests=error --test-dir build-gpu -L gpu -E '$(GPU_ALONE)'

$(GPU_FILES:%=gpu-test-%): gpu-test-%:
	$(GPU_PYTEST) -m gpu tests/python/test_$*.py

gpu-test-interpreted:
	GENESIS_TIERS=interpreted $(GPU_PYTEST) -m gpu $(patsubst %,tests/python/test_%.py,device_tensors row_programs list_programs loss_bits)

gpu-test-torch:
	$(GPU_PYTEST) tests/python/test_interop_torch.py

gpu-test-memory:
	$(SANITIZER) --tool memcheck --report-api-errors no --error-exitcode 9 build-gpu/tests/test_memory cuda pool

$(GPU_TOOLS:%=gpu-test-%): gpu-test-%:
	$(ONE_OF_EACH) --tool $* $(if $(filter memcheck,$*),--report-api-errors no) $(GPU_PYTHON) tests/ops/one_of_each.py

gpu-test-overrun:
	$(SANITIZER) --tool memcheck --destroy-on-device-error kernel --error-exitcode 9 build-gpu/tests/plant_overrun clean
	$(SANITIZER) --tool memcheck --destroy-on-device-error kernel --error-exitcode 9 build-gpu/tests/plant_overrun; test $$? -eq 9

gpu-bench: export PYTHONDONTWRITEBYTECODE = 1
gpu-bench: export GENESIS_TIERS = compiled
gpu-bench: export PYTHONPATH = $(CURDIR)/build-gpu/python
gpu-bench: export BENCH_LIBRARY = $(CURDIR)/build-gpu/libgenesis.so
gpu-bench: gpu-build
	build-gpu/bench/bench_direct
	build-gpu/bench/bench_jit
	build-gpu/bench/alloc/bench_alloc_cpu
	build-gpu/bench/bench_watch build-gpu/libgenesis.so build-gpu/bench/libgenesis_bare.so
	$(GPU_PYTHON) bench/bench_watch.py cuda
	$(GPU_PYTHON) bench/alloc/bench_alloc_gpu.py
	$(GPU_PYTHON) bench/alloc/bench_alloc_python.py
	$(GPU_PYTHON) bench/alloc/bench_frag.py
	$(GPU_PYTHON) bench/replay_torch.py
	$(GPU_PYTHON) bench/bench_ops_gpu.py
	$(GPU_PYTHON) bench/bench_first_use.py --floor build-gpu/bench/first_use_floor
	$(GPU_PYTHON) bench/bench_tiers.py
	$(GPU_PYTHON) bench/bench_matmul_gpu.py
	$(GPU_PYTHON) bench/bench_block_gpu.py
	$(GPU_PYTHON) bench/bench_rows_gpu.py
	$(GPU_PYTHON) bench/bench_index_gpu.py
	$(GPU_PYTHON) bench/bench_train.py
	$(GPU_PYTHON) bench/bench_row_programs.py
	$(GPU_PYTHON) bench/bench_lists.py
	$(GPU_PYTHON) bench/bench_optim.py
	build-gpu/bench/alloc/replay --device cuda bench/alloc/traces/sample_torch.json
	build-gpu/bench/alloc/replay --device cuda bench/alloc/traces/sample_rmm.csv
