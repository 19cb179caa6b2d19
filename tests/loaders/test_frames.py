"""What a start of workers does with the frames that ask for it."""

import subprocess
import sys

SCRIPT = """
import os, sys
from torch.utils.data import DataLoader, Dataset
import pipeprof

opened = []

def note(event, args):
    if event == "open" and "instrument" in str(args[0]) and str(args[0]).endswith(".py"):
        opened.append((os.getpid(), os.path.basename(args[0])))

class OpenedByWorker(Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        return [name for pid, name in opened if pid == os.getpid()]

loader = DataLoader(OpenedByWorker(), batch_size=None, num_workers=1,
                    multiprocessing_context="fork")
sys.addaudithook(note)
print("worker:", *[names for names in pipeprof.wrap(loader)])
print("main:", *[name for pid, name in opened if pid == os.getpid()])
"""


def test_a_forked_worker_reads_no_file_of_ours_to_format_its_stack():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    worker, main = done.stdout.splitlines()
    assert worker == "worker: []"
    assert "observed_start.py" in main, "main has read it instead"
