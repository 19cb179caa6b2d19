"""Check that HolisticTraceAnalysis reads the accelerator's idle time from our trace.

HolisticTraceAnalysis depends on Jupyter and more, so the tests do not depend on it. The packages
that it needs here are installed once in .bench-peers/hta.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from pipeprof.model import BatchLog, Profile
from pipeprof.report.trace.chrome import render_trace
from tests.samples import sample_profile

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".bench-peers" / "hta"
PACKAGES = ("HolisticTraceAnalysis==0.5.0", "plotly==7.1.0", "networkx==3.6.1",
            "psutil==7.2.2", "narwhals==2.29.0")  # fmt: skip
BATCHES, BUSY_S, IDLE_S = 200, 0.008, 0.002
_ASK = """
import json, sys
from hta.trace_analysis import TraceAnalysis
found = TraceAnalysis(trace_files={0: sys.argv[1]}).get_temporal_breakdown(visualize=False)
print(json.dumps(found.iloc[0].to_dict(), default=float))
"""


def profile() -> Profile:
    """Return the profile of an accelerator that waits 2 ms for each batch, and is busy for 8 ms."""
    cycle_s = BUSY_S + IDLE_S
    asked = [n * cycle_s for n in range(BATCHES)]
    columns = {
        "index": range(BATCHES),
        "asked_s": asked,
        "delivered_s": [at + IDLE_S for at in asked],
        "done_s": [at + cycle_s for at in asked],
        "device_busy_s": [BUSY_S] * BATCHES,
        "device_wait_s": [IDLE_S] * BATCHES,
    }
    log = BatchLog(**{name: tuple(values) for name, values in columns.items()})
    return replace(sample_profile(), batches=log)


def breakdown(trace: Path) -> dict[str, float]:
    """Return the temporal breakdown of HTA: its name of a figure → value."""
    if not (FOLDER / "hta").exists():
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
        subprocess.run([*install, str(FOLDER), *PACKAGES], check=True)
    environment = {**os.environ, "PYTHONPATH": str(FOLDER)}
    done = subprocess.run(
        [sys.executable, "-c", _ASK, str(trace)],
        env=environment, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> int:
    trace = FOLDER.parent / "hta.pt.trace.json.gz"
    trace.parent.mkdir(exist_ok=True)
    trace.write_bytes(render_trace(profile(), compressed=True))
    found, truth = breakdown(trace), 100 * IDLE_S / (BUSY_S + IDLE_S)
    trace.unlink()
    idle, compute = found["idle_time_pctg"], found["compute_time_pctg"]
    agrees = abs(idle - truth) < 0.5 and abs(compute - (100 - truth)) < 0.5
    print(f"HolisticTraceAnalysis: idle {idle:.2f} %, computing {compute:.2f} %; "
          f"the profile: idle {truth:.2f} %: {'equal' if agrees else 'UNEQUAL'}")  # fmt: skip
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
