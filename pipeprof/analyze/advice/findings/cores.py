"""Who wants the cores, and who has them."""

from __future__ import annotations

from math import isnan

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.advice.roofline_estimate import enough_for_cores
from pipeprof.analyze.profile.stage_times import CPU, RUN_QUEUE

_WAITING = 0.2
"""Of making a batch spent on waiting for a core: beyond it, cores are short."""
_TOO_MANY = 1.1
"""More cores are wanted than there are: beyond what noise makes of a full machine."""
_NATIVE = 0.4
"""Of the CPU time in native threads: beyond what handing batches over takes."""
_MUCH_STOLEN, _SOME_STOLEN = 0.1, 0.01
"""Of the machine's core time, gone to others on its host: beyond it, cores are short; below it,
nothing to speak of."""
_BUSY_MAIN = 0.5
"""Cores that the training process uses, from which on that is worth a word."""
_OWN_THREADS = 3
"""Of a worker, native ones left out: itself, the queue's feeder, torch's sharer of descriptors."""


def cores_are_contended(facts: Facts) -> bool:
    """Whether this job itself wants more cores than it has."""
    waiting = facts.share(RUN_QUEUE)
    if isnan(waiting):  # this kernel does not count it: then by cores that are busy all the time
        used_up = facts.cores_used >= 0.9 * facts.cores
        return used_up and facts.workers > facts.cores and 0 < facts.share(CPU) < 0.8
    return waiting >= _WAITING and facts.cores_wanted > _TOO_MANY * facts.cores


def native_crowd(facts: Facts) -> float:
    """Native threads that a worker runs at least, where they crowd the cores; else 0."""
    threads = facts.summary.gauges["threads"].quantiles(1.0)[0] - _OWN_THREADS
    full = facts.share(RUN_QUEUE) >= _WAITING or facts.cores_used >= 0.5 * facts.cores
    crowd = facts.native_share >= _NATIVE and facts.workers * threads > facts.cores
    return threads if full and crowd else 0.0


@case("native-threads-oversubscribed")
def native_threads(facts: Facts) -> Figures | None:
    """Libraries in the workers start threads of their own, more than there are cores.

    Seen by CPU time of a worker's process that is not its main thread's (40 % or more of what a
    batch takes), with more threads in all workers than cores, and cores that are busy. Cured by one
    thread a worker (`cv2.setNumThreads(0)`, `pyarrow.set_cpu_count(1)`, `OMP_NUM_THREADS=1`), or by
    fewer workers.
    """
    threads = native_crowd(facts)
    if not facts.starved or not threads:
        return None
    return {
        "threads": threads,
        "all_threads": facts.workers * threads,
        "fewer": max(1, facts.cores // threads),
    }


@case("cpu-oversubscribed")
def oversubscribed(facts: Facts) -> Figures | None:
    """More CPU-hungry workers than cores.

    Seen by run-queue delay: a fifth or more of making a batch is waiting for a core, and this job
    alone wants more cores than it has. Where the kernel does not tell, by cores that are busy all
    the time. Cured by as many workers as there are cores for them; more make nothing faster.
    """
    if not facts.starved or native_crowd(facts) or not cores_are_contended(facts):
        return None
    waiting, fewer = facts.share(RUN_QUEUE), enough_for_cores(facts)
    return {
        "waiting": waiting,
        "times": 1 / facts.share(CPU) if isnan(waiting) else None,
        "busy_main": facts.main_cores if facts.main_cores >= _BUSY_MAIN else None,
        "fewer": fewer if fewer < facts.workers else None,
    }


@case("noisy-neighbour")
def neighbours(facts: Facts) -> Figures | None:
    """Cores are short, and it is not this job that uses them.

    Seen by run-queue delay as above, while this job uses three quarters of its cores at the most;
    or by a tenth or more of the core time that the host of a virtual machine gave to others
    (steal), which a job sees as CPU time or as being blocked. Cured by finding who else is at them,
    before any setting is changed.
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
    """Whether cores are waited for that this job does not use."""
    if cores_are_contended(facts) or native_crowd(facts):
        return False
    return facts.share(RUN_QUEUE) >= _WAITING and facts.cores_used <= 0.75 * facts.cores


@case("fewer-cores-than-shown")
def quota(facts: Facts) -> Figures | None:
    """Affinity or a cgroup gives fewer cores than the machine shows.

    Seen by `sched_getaffinity` and the cgroup's quota against `os.cpu_count()`. Cured by sizing
    workers by the former.
    """
    if facts.diagnosis.verdict == "fed" or facts.cores >= facts.environment.cores_visible:
        return None
    return {"too_many": facts.workers > facts.cores}
