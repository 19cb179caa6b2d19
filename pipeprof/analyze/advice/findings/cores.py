"""Findings about contention for cores."""

from __future__ import annotations

from math import isnan

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.advice.roofline_estimate import enough_for_cores
from pipeprof.analyze.profile.stage_times import CPU, RUN_QUEUE

_CONTENDED_SHARE = 0.2
"""Least share of the build time spent waiting for a core that counts as contention."""
_OVERSUBSCRIBED = 1.1
"""Wanted cores per available core beyond which cores are short. A full machine's noise is less."""
_NATIVE_SHARE = 0.4
"""Least share of CPU time in native threads. Handing batches over takes less."""
_MUCH_STOLEN, _SOME_STOLEN = 0.1, 0.01
"""Shares of core time that the host gave to others: enough for contention, enough to report."""
_BUSY_MAIN_CORES = 0.5
"""Least number of cores that the training process keeps busy to be reported."""
_STANDARD_THREADS = 3
"""Threads of any worker: its main thread, the queue's feeder, and torch's descriptor server."""


def cores_are_contended(facts: Facts) -> bool:
    """Return whether this job alone wants more cores than it has."""
    waiting = facts.share(RUN_QUEUE)
    if isnan(waiting):  # the kernel does not report it; use cores that are always busy instead
        used_up = facts.cores_used >= 0.9 * facts.cores
        return used_up and facts.workers > facts.cores and 0 < facts.share(CPU) < 0.8
    return waiting >= _CONTENDED_SHARE and facts.cores_wanted > _OVERSUBSCRIBED * facts.cores


def oversubscribing_threads(facts: Facts) -> float:
    """Return how many native threads each worker runs at least; 0 if they leave enough cores."""
    threads = facts.summary.gauges["threads"].quantiles(1.0)[0] - _STANDARD_THREADS
    busy = facts.share(RUN_QUEUE) >= _CONTENDED_SHARE or facts.cores_used >= 0.5 * facts.cores
    too_many = facts.native_share >= _NATIVE_SHARE and facts.workers * threads > facts.cores
    return threads if busy and too_many else 0.0


@case("far-from-device")
def far_from_device(facts: Facts) -> Figures | None:
    """Workers run on cores that are far from the accelerator.

    Reported when the accelerator is starved and none of the cores that the process may use belongs
    to the NUMA node of its device. Each batch then crosses the link between the nodes.

    Fix: start each rank on the node of its device, with `torchrun --numa-binding=node`, or with
    `numactl --cpunodebind=N --membind=N`.
    """
    place = facts.environment.placement
    if not facts.starved or place is None or place.device_node is None or not place.core_nodes:
        return None
    if place.device_node in place.core_nodes:
        return None
    nodes = ", ".join(map(str, place.core_nodes))
    return {"node": place.device_node, "nodes": nodes}


@case("native-threads-oversubscribed")
def native_threads(facts: Facts) -> Figures | None:
    """Libraries in the workers start threads of their own, more than there are cores.

    Reported when native threads use 40 % or more of the CPU time of a batch. All workers together
    must also run more of them than there are cores, and the cores must be busy.

    Fix: use one thread per worker (`cv2.setNumThreads(0)`, `pyarrow.set_cpu_count(1)`,
    `OMP_NUM_THREADS=1`), or fewer workers.
    """
    threads = oversubscribing_threads(facts)
    if not facts.starved or not threads:
        return None
    return {
        "threads": threads,
        "all_threads": facts.workers * threads,
        "fewer": max(1, facts.cores // threads),
    }


@case("cpu-oversubscribed")
def oversubscribed(facts: Facts) -> Figures | None:
    """The workers compute more than the cores can.

    Reported when 20 % or more of the time to build a batch is waiting for a core (run-queue delay),
    and this job alone wants more cores than it has. Where the kernel does not report that delay,
    cores that are always busy count instead.

    Fix: use as many workers as there are cores for them. More make nothing faster.
    """
    if not facts.starved or oversubscribing_threads(facts) or not cores_are_contended(facts):
        return None
    waiting, fewer = facts.share(RUN_QUEUE), enough_for_cores(facts)
    return {
        "waiting": waiting,
        "times": 1 / facts.share(CPU) if isnan(waiting) else None,
        "busy_main": facts.main_cores if facts.main_cores >= _BUSY_MAIN_CORES else None,
        "fewer": fewer if fewer < facts.workers else None,
    }


@case("noisy-neighbour")
def neighbours(facts: Facts) -> Figures | None:
    """Cores are short because something other than this job uses them.

    Reported when 20 % or more of the time to build a batch is waiting for a core, while this job
    uses at most 75 % of its cores. Also reported when the host of a virtual machine gave 10 % or
    more of its core time to others (steal). A job counts stolen time as CPU time or as blocked.

    Fix: find the other user of the cores before you change a setting.
    """
    stolen, others = facts.stolen >= _MUCH_STOLEN, _others_here(facts)
    if not facts.starved or not (stolen or others):
        return None
    return {
        "waiting": facts.share(RUN_QUEUE),
        "others": others,
        "much_stolen": stolen,
        "some_stolen": facts.stolen > _SOME_STOLEN,
    }


def _others_here(facts: Facts) -> bool:
    """Return whether workers wait for cores that this job does not use."""
    if cores_are_contended(facts) or oversubscribing_threads(facts):
        return False
    return facts.share(RUN_QUEUE) >= _CONTENDED_SHARE and facts.cores_used <= 0.75 * facts.cores


@case("fewer-cores-than-shown")
def quota(facts: Facts) -> Figures | None:
    """CPU affinity or a cgroup quota allows fewer cores than the machine shows.

    Reported when `sched_getaffinity` or the cgroup's quota gives fewer cores than `os.cpu_count()`.

    Fix: choose the number of workers by the cores that are allowed.
    """
    if facts.diagnosis.verdict == "fed" or facts.cores >= facts.environment.cores_visible:
        return None
    return {"too_many": facts.workers > facts.cores}
