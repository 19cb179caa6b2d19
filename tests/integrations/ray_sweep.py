"""Sweep on a Ray cluster, kill the driver after its second trial, and resume:
``ray_sweep.py DATA FOLDER ADDRESS``."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

QUICK = ["--workers", "0,1,2", "--trial-time", "0.5", "--warmup-time", "0.2", "--exhaustive"]
LIMIT_S = 120

if __name__ == "__main__":
    data, folder, address = sys.argv[1:]
    sweep = [sys.executable, "-m", "pipeprof", "sweep"]
    on = ["--on", f"ray:{address}", "--json"]
    driver = subprocess.Popen(
        [*sweep, data, "--out", folder, *QUICK, *on], stdout=subprocess.DEVNULL
    )
    end = time.monotonic() + LIMIT_S
    while not Path(folder, "trial-001.json").exists() and time.monotonic() < end:
        if driver.poll() is not None:
            sys.exit(f"the driver ended by itself: {driver.returncode}")
        time.sleep(0.05)
    driver.kill()
    driver.wait()
    print(*sorted(name for name in os.listdir(folder) if name.startswith("trial")), file=sys.stderr)
    sys.exit(subprocess.run([*sweep, "--resume", folder, *on], check=False).returncode)
