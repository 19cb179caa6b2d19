"""The run-queue delay of other threads, from files like those of the kernel."""

from __future__ import annotations

from pathlib import Path
from threading import get_native_id

from pipeprof.measure.thread_delays import ThreadDelays


def write(tasks: Path, **delays_ns: int) -> None:
    for thread, delay in delays_ns.items():
        folder = tasks / thread.removeprefix("t")
        folder.mkdir(exist_ok=True)
        (folder / "schedstat").write_text(f"123456 {delay} 7\n")


def test_delays_count_from_the_first_look_on_and_outlive_their_threads(tmp_path: Path) -> None:
    delays = ThreadDelays(str(tmp_path))
    write(tmp_path, t1=5_000_000_000, t2=1_000_000_000, **{f"t{get_native_id()}": 9})
    assert delays.read() == 0.0
    write(tmp_path, t1=5_500_000_000, t3=250_000_000, **{f"t{get_native_id()}": 10**12})
    assert delays.read() == 0.75, "that of thread 1, and of the new thread 3"
    (tmp_path / "1" / "schedstat").unlink()
    assert delays.read() == 0.75, "thread 1 has ended"
    write(tmp_path, t2=1_250_000_000)
    assert delays.read() == 1.0


def test_a_system_that_does_not_say_is_unknown(tmp_path: Path) -> None:
    assert ThreadDelays(str(tmp_path / "nothing")).read() is None
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "schedstat").write_text("\n")
    assert ThreadDelays(str(tmp_path)).read() is None


def test_it_reads_this_machine() -> None:
    delays = ThreadDelays()
    delays.read()
    assert (delays.read() or 0.0) >= 0.0
