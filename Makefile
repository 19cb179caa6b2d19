# Every target sets up what it needs, is safe to run twice, and is quick the second time.

BIN := .venv/bin
READY := .venv/.ready
IS_OURS := import sys; sys.exit(sys.version_info < (3, 10))
# the first Python >= 3.10 on the path; `make PYTHON=/path/to/python` overrules
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do \
	"$$name" -c '$(IS_OURS)' 2>/dev/null && echo "$$name" && break; done)
# threads of OpenMP that have nothing to do would spin, on cores that another test needs; Ray's
# workers have a low priority, with which they would wait for all other tests
PYTEST := OMP_WAIT_POLICY=passive RAY_worker_niceness=0 $(BIN)/python -m pytest
# a process more than there are cores, since many tests wait; up to eight
SIDE_BY_SIDE := -n $(shell expr $$(nproc) + 1) --maxprocesses 8 --dist worksteal
# more where no result depends on time
CLOSE_TOGETHER := -n $(shell expr $$(nproc) \* 2 + 1) --maxprocesses 8 --dist worksteal
# $(call in_parallel,MARKS,OPTIONS): a test that fails while others use the cores (pytest's exit code
# 1, and no other) must pass by itself
in_parallel = $(PYTEST) -m '$(1)' $(2) || { test $$? -eq 1 && \
	printf '\n\033[1m== what failed, by itself\033[0m\n' && \
	$(PYTEST) --last-failed --last-failed-no-failures none -m '$(1)'; }
# tests that need root or a framework's packages have targets of their own
ORDINARY := not lab and not integrations
FUZZ_S ?= 600
# where this is set, every process of a test compiles all of pipeprof anew
unexport PYTHONDONTWRITEBYTECODE
# the environments of `make integrations`; not all frameworks can be installed together. Most of
# their modules are never imported, so that compiling them all would take longer than it saves
FRAMEWORKS := .integrations/main/.ready .integrations/streaming/.ready .integrations/tensorflow/.ready
# what a benchmark prints is kept in docs/figures, which docs/benchmarks.md links
KEEP = @$(BIN)/python scripts/figures.py
SAY = @printf '\n\033[1m== %s\033[0m\n'

.PHONY: help setup demo test test-all integrations check lab fuzz lint tests coverage format bench bench-overhead bench-run bench-memory bench-job bench-scale bench-probe bench-soak bench-frameworks bench-readers bench-formats bench-local bench-s3 bench-prediction bench-blame bench-loaders bench-one-profile bench-no-workers bench-guided bench-tune bench-compare bench-html bench-live gpu-check hta-check perfetto-check viewer-check tensorboard-check docs clean

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
		while IFS='|' read -r target text; do printf '%-25s%s\n' "$$target" "$$text"; done

setup: $(READY) ## make .venv and install pipeprof in it

demo: $(READY) ## a training that starves, why, and its fix; then formats and S3: 2 minutes
	@PATH="$(CURDIR)/$(BIN):$$PATH" python -m scripts.demo

test: $(READY) ## a guard for every promise: lint, types, layers, tests; five minutes on two cores
	@start=$$(date +%s); \
	$(MAKE) --no-print-directory check; status=$$?; \
	[ $$status -eq 0 ] && verdict=passed || verdict=FAILED; \
	printf '\nmake test %s after %d s\n' $$verdict $$(($$(date +%s) - start)); \
	exit $$status

test-all: $(READY) ## the tests that make test leaves out: see tests/support/tiers.py
	$(SAY) "pytest, the slow ones with exact results"
	@$(call in_parallel,slow and not timed and $(ORDINARY),$(CLOSE_TOGETHER))
	$(SAY) "pytest, the slow ones in real time"
	@$(call in_parallel,slow and timed and $(ORDINARY),-n 2 --dist worksteal)

check: lint tests

integrations: $(READY) ## trainings with the released packages of each framework
	@$(MAKE) --no-print-directory -j2 $(FRAMEWORKS)
	$(SAY) "integrations"
	@$(call in_parallel,integrations,-n 2 --dist loadfile tests/integrations)

lab: $(READY) ## known truths that need root: a disk and a link of known speed
	$(SAY) "lab"
	@$(call in_parallel,lab,-n 2 --dist worksteal tests/lab)

fuzz: $(READY) ## damage what the readers read, for FUZZ_S=600 seconds
	@$(BIN)/python -m tests.fuzz --seconds $(FUZZ_S)

lint: $(READY) ## style, types, who may import whom, errors caught in silence, names, sentences
	$(SAY) "ruff"
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	$(SAY) "mypy"
	@$(BIN)/mypy
	$(SAY) "import-linter"
	@$(BIN)/lint-imports
	$(SAY) "broad excepts"
	@$(BIN)/python -m scripts.broad_excepts
	$(SAY) "names and sentences"
	@$(BIN)/python -m scripts.words_check

tests: $(READY) ## the tests, side by side
	$(SAY) "pytest"
	@$(call in_parallel,not slow and $(ORDINARY),$(SIDE_BY_SIDE))

coverage: $(READY) ## the share of lines that tests run, which slows them down a lot
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -m 'not timed and $(ORDINARY)' $(SIDE_BY_SIDE)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

format: $(READY) ## lay out the code and mend what ruff can mend
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: $(READY) ## what a batch costs on its way from a worker, as a dict and as a Batch
	$(KEEP) transfer $(BIN)/python benchmarks/transfer.py

bench-overhead: $(READY) ## what profiling costs, against nothing and against others
	$(KEEP) overhead $(BIN)/python -m benchmarks.overhead --limit 2400
	$(KEEP) overhead-short $(BIN)/python -m benchmarks.overhead_short

bench-run: $(READY) ## what pipeprof run adds to a script's start and end
	$(KEEP) run $(BIN)/python benchmarks/run_cost.py

bench-memory: $(READY) ## a run of ten million batches: what the recorder and the profile take
	$(KEEP) memory $(BIN)/python benchmarks/endless.py

bench-job: $(READY) ## a job of 4,096 ranks: time and memory to join it, and its page
	$(KEEP) job $(BIN)/python -m benchmarks.job_ranks

bench-soak: $(READY) ## ten million real batches with export: memory, files
	$(KEEP) soak $(BIN)/python -m benchmarks.soak

bench-frameworks: $(READY) $(FRAMEWORKS) ## stages and verdict of each framework, against its script's clock
	$(KEEP) frameworks $(BIN)/python -m tests.integrations.table

bench-local: $(READY) ## how local files are read, against plain reads; reading ahead
	$(KEEP) local $(BIN)/python -m benchmarks.local_reads

bench-s3: $(READY) ## which client reads S3 best
	$(KEEP) s3 $(BIN)/python -m benchmarks.s3_clients

bench-scale: $(READY) ## how wrong the simulated pace of 2, 4 and 8 ranks is, from the profile of one
	$(KEEP) scale $(BIN)/python -m benchmarks.scale_ranks

bench-probe: $(READY) ## how wrong a probe from many hosts is, on clusters drawn at random (root)
	$(KEEP) probe-hosts $(BIN)/python -m benchmarks.probe_hosts

bench-readers: $(READY) ## CSV, Parquet and TFRecord into tensors, against the best of others
	$(KEEP) readers $(BIN)/python -m benchmarks.readers

bench-formats: $(READY) ## the same images in each format: a local disk, and S3 at 20 ms (root)
	$(KEEP) formats $(BIN)/python -m benchmarks.formats

bench-prediction: $(READY) ## how wrong predictions of other settings are, on nine loaders and on strangers
	$(KEEP) prediction $(BIN)/python -m benchmarks.prediction
	$(KEEP) prediction-strangers $(BIN)/python -m benchmarks.prediction_strangers

bench-blame: $(READY) ## whether what is blamed is worth what is promised, on loaders drawn at random
	$(KEEP) blame $(BIN)/python -m benchmarks.blame

bench-loaders: $(READY) ## what profiles say of loops that take batches from several loaders
	$(KEEP) several-loaders $(BIN)/python -m benchmarks.several_loaders --loops 24 --seconds 3

bench-one-profile: $(READY) ## how wrong the advice of a single profile is
	$(KEEP) prediction-from-one $(BIN)/python -m benchmarks.prediction_from_one

bench-no-workers: $(READY) ## how wrong the advice of a profile without workers is, with large batches
	$(KEEP) from-no-workers $(BIN)/python -m benchmarks.from_no_workers

bench-guided: $(READY) ## how good a guided sweep's answer is, and how many trials it takes
	$(KEEP) sweep-guided $(BIN)/python -m benchmarks.sweep_guided

bench-what-if: $(READY) ## how good a guided sweep over formats, readers and settings together is
	$(KEEP) what-if $(BIN)/python -m benchmarks.what_if

bench-tune: $(READY) ## how good the settings are that a loader finds while training runs, and their cost
	$(KEEP) tune $(BIN)/python -m benchmarks.tune --verbose
	$(KEEP) tune-peers $(BIN)/python -m benchmarks.tune_peers

bench-compare: $(READY) ## how often compare calls equal runs different, and finds a real loss
	$(KEEP) compare-noise $(BIN)/python -m benchmarks.compare_noise

bench-html: $(READY) ## a million batches as a page: its size, its making, how soon it can be used
	$(KEEP) html $(BIN)/python -m benchmarks.html_report

bench-live: $(READY) ## what a live view costs the training process
	$(KEEP) live $(BIN)/python -m benchmarks.live

gpu-check: $(READY) ## tests and a real training on a CUDA GPU, and their figures
	@$(BIN)/python -m scripts.gpu_check

hta-check: $(READY) ## what HolisticTraceAnalysis finds in a trace of ours
	@$(BIN)/python -m scripts.hta_check

perfetto-check: $(READY) ## what Perfetto's own trace processor finds in a trace of ours; needs Chromium
	@$(BIN)/python -m scripts.perfetto_check

viewer-check: $(READY) ## what the viewer of chrome://tracing finds in a trace of ours; needs npm and Chromium
	@$(BIN)/python -m scripts.viewer_check

tensorboard-check: $(READY) ## what TensorBoard's profiler shows of a trace of ours; needs Chromium
	@$(BIN)/python -m scripts.tensorboard_check

docs: $(READY) ## write what of docs/ is generated, then build the site in site/
	@$(BIN)/python -m pipeprof.schema docs
	@$(BIN)/python scripts/findings_doc.py docs/findings.md
	@$(BIN)/python scripts/cli_doc.py docs/reference/cli.md
	@$(BIN)/python -m scripts.grafana docs/grafana.json
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site is in site/index.html; $(BIN)/mkdocs serve shows it with its search."

clean: ## remove what building, testing and the demo left; not .venv
	@rm -rf build dist demo site *.egg-info .coverage .coverage.* .hypothesis .pytest_cache .mypy_cache \
		.ruff_cache .import_linter_cache .screens
	@find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

.integrations/%/.ready: tests/integrations/%.txt pyproject.toml $(READY)
	@"$(PYTHON)" -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install --disable-pip-version-check --quiet --no-deps --no-compile \
		-r $< -e .
	@touch $@

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { \
		echo "pipeprof needs Python 3.10 or newer, and none is on the PATH."; \
		echo "Install one, or name it: make PYTHON=/path/to/python3"; exit 1; }
	@$(BIN)/python -c '$(IS_OURS)' 2>/dev/null || { \
		"$(PYTHON)" -c 'import ensurepip' 2>/dev/null || { \
			echo "$(PYTHON) cannot make a virtual environment: its ensurepip module is missing."; \
			echo "On Debian and Ubuntu it is in the package python3-venv."; exit 1; }; \
		echo "making .venv with $$("$(PYTHON)" --version)"; \
		"$(PYTHON)" -m venv --clear .venv; }
	@$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $@
