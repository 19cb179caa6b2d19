"""Which tests `make test` leaves to `make test-all`: what starts many processes or long runs, and
guards less for its time.

Each promise of the README keeps a guard in `make test`. A file or folder goes below when its tests
take more than some ten seconds, and others hold most of what it holds. A single test, or a case of
one, has the mark ``slow`` itself.
"""

from __future__ import annotations

from pathlib import Path

import pytest

_TESTS = Path(__file__).parent.parent

SLOW = (
    "analyze/test_drift.py",
    "analyze/test_findings_beside.py",
    "analyze/test_guide.py",
    "analyze/test_one_run.py",
    "analyze/test_other_settings.py",
    "analyze/test_run_ahead.py",
    "analyze/test_simulate.py",
    "analyze/test_storage.py",
    "bench_data/test_generate.py",
    "bench_data/test_generate_again.py",
    "benchmarks",
    "cli/test_compare.py",
    "cli/test_generate.py",
    "cli/test_run_export.py",
    "cli/test_run_live.py",
    "cli/test_run_loaders.py",
    "cli/test_run_ranks.py",
    "cli/test_run_whole.py",
    "cli/test_run_tune.py",
    "cli/test_selfcheck.py",
    "cli/test_sweep_convert.py",
    "cli/test_sweep_own.py",
    "cli/test_unprivileged.py",
    "docs/test_commands.py",
    "docs/test_site.py",
    "findings",
    "fuzz",
    "loaders/test_forms.py",
    "loaders/test_grafana.py",
    "loaders/test_headspace.py",
    "loaders/test_left_behind.py",
    "loaders/test_parent_watch.py",
    "loaders/test_poor_machine.py",
    "loaders/test_stateful.py",
    "loaders/tune/test_job.py",
    "loaders/tune/test_tune.py",
    "loaders/tune/test_tune_failures.py",
    "loaders/tune/test_tune_live.py",
    "loaders/tune/test_tune_settings.py",
    "measure/test_proc_counters.py",
    "probe/test_concurrency_ramp.py",
    "probe/test_load.py",
    "probe/test_requirements.py",
    "probe/test_worker_pool.py",
    "report/html/test_browser.py",
    "report/test_tensorboard.py",
    "s3/test_choice.py",
    "s3/test_fallback.py",
    "s3/test_faults.py",
    "s3/test_probe.py",
    "s3/test_sweep.py",
    "selfcheck",
    "sweep",
    "test_demo.py",
    "test_endless.py",
    "test_log.py",
    "test_notebook.py",
    "test_packaging.py",
)
"""Files and folders of tests."""


def mark_slow(items: list[pytest.Item]) -> None:
    """Give the tests of these files the marker ``slow``."""
    slow = tuple(str(_TESTS / name) for name in SLOW)
    for item in items:
        if str(item.path).startswith(slow):
            item.add_marker(pytest.mark.slow)
