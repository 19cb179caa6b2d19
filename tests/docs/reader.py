"""What a reader of the documents has at hand: a script, a data set, saved runs, a bucket."""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path
from shutil import copy

import torch
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.bench_data.generate import GenerateSpec, generate
from pipeprof.store import save
from tests.s3.server import KEY, SECRET
from tests.support.warm import SERVER, WarmPython
from tests.sweep_samples import sample_sweep

TRAIN = """\
import argparse, time
import torch
from torch.utils.data import DataLoader, Dataset

class Samples(Dataset):
    def __len__(self):
        return 200

    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.tensor([float(index)])

def make_loader(num_workers=0, prefetch_factor=None, batch_size=8):
    return DataLoader(
        Samples(), batch_size, num_workers=num_workers, prefetch_factor=prefetch_factor
    )

def train_step(batch):
    time.sleep(0.002)

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    for _ in range(parser.parse_args().epochs):
        for batch in make_loader(num_workers=1):
            train_step(batch)
"""
DECODE = "def decode(batch):\n    return batch\n"
WANDB = "logged = {}\n\ndef log(metrics, step):\n    logged[step] = metrics\n"

SHORT = ["--trial-time", "0.1", "--warmup-time", "0.05", "--max-time", "2"]
PIPEPROF = f"""# pipeprof, but nobody waits for a gigabyte, nor for what takes long to measure well
import sys
words = [word.replace("1GiB", "1MiB") for word in sys.argv[1:]]
if words[0] == "sweep":
    words += {SHORT} + ["--workers", "1"] * ("--workers" not in words)
if words[0] == "probe":
    words += ["--seconds", "1", "--feed", "0.2"]  # the last one counts
from pipeprof.cli.app import main
if __name__ == "__main__":  # where one process does not suffice, a probe spawns others
    main(words)
"""
ASK = """#!{python} -IS
# pipeprof, in a process that has imported torch already
import os, runpy, sys
ask = runpy.run_path({warm!r})["ask"]
code = ask({address!r}, [{program!r}, *sys.argv[1:]], os.getcwd(), os.environ, (0, 1, 2))
sys.exit(code if code >= 0 else 128 - code)
"""


def settle(folder: Path, warm: WarmPython) -> None:
    """Put it all into ``folder``. Its ``pipeprof`` runs in processes of ``warm``."""
    for name, text in {"train.py": TRAIN, "decode.py": DECODE, "wandb.py": WANDB}.items():
        (folder / name).write_text(text)
    for form in ("csv", "parquet"):
        generate(GenerateSpec(str(folder / "data" / form), "tabular", form, 2**20, seed=0))
    for name in ("before", "after", "main", "run"):
        _run(folder).save(folder / f"{name}.json")
    copy(folder / "main.json", folder / "branch.json")  # the branch is not slower
    save(sample_sweep(), folder / "sweep.json")
    _commands(folder / "bin", warm)


def _run(folder: Path) -> pipeprof.Profile:
    data = pipeprof.open_dataset(str(folder / "data" / "parquet"), batch_size=32)
    loader = pipeprof.wrap(DataLoader(data, batch_size=None), accelerator="slept")
    for batch in loader:
        torch.stack([column.sum().float() for column in list(batch.values())[:1]])
    return loader.profile()


def _commands(folder: Path, warm: WarmPython) -> None:
    folder.mkdir()
    program = folder / "words.py"
    program.write_text(PIPEPROF)
    beside = Path(sys.executable).parent
    texts = {
        "pipeprof": ASK.format(
            python=sys.executable, warm=SERVER, address=warm.address, program=str(program)
        ),
        "gh": "#!/bin/sh\ngrep -q '|'\n",  # takes a table
        "torchrun": f'#!/bin/sh\nexec {beside}/python -m torch.distributed.run "$@"\n',
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(stat.S_IRWXU)


def surroundings(folder: Path, endpoint: str) -> dict[str, str]:
    """Environment variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return kept | {
        "PATH": f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


def blocks(text: str, language: str) -> list[str]:
    """Of code, in the order in which they stand."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
