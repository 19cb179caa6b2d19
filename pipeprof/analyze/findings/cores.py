"""Who wants the cores, and who has them."""

from __future__ import annotations

from math import isnan

from pipeprof.analyze.estimate import enough_for_cores
from pipeprof.analyze.facts import Facts
from pipeprof.analyze.stages import CPU, RUN_QUEUE
from pipeprof.model import Finding
from pipeprof.units import counted, format_duration, percent

_WAITING = 0.2
"""Of making a batch spent on waiting for a core: beyond it, cores are short."""
_TOO_MANY = 1.1
"""More cores are wanted than there are: beyond what noise makes of a full machine."""
_NATIVE = 0.4
"""Of the CPU time in native threads: beyond what handing batches over takes."""
_OWN_THREADS = 3
"""Of a worker, native ones left out: itself, the queue's feeder, torch's sharer of descriptors."""


def crowded(facts: Facts) -> bool:
    """Whether this job itself wants more cores than it has."""
    cores = facts.environment.cores
    waiting = facts.share(RUN_QUEUE)
    if isnan(waiting):  # not told by this kernel: judged by cores that are busy all the time
        used_up = facts.cores_used >= 0.9 * cores
        return used_up and facts.workers > cores and facts.share(CPU) < 0.8
    return waiting >= _WAITING and facts.cores_wanted > _TOO_MANY * cores


def native_crowd(facts: Facts) -> float:
    """Native threads that a worker runs at least, where they crowd the cores; else 0."""
    threads = facts.summary.gauges["threads"].quantiles(1.0)[0] - _OWN_THREADS
    cores = facts.environment.cores
    full = facts.share(RUN_QUEUE) >= _WAITING or facts.cores_used >= 0.5 * cores
    crowd = facts.native_share >= _NATIVE and facts.workers * threads > cores
    return threads if full and crowd else 0.0


def native_threads(facts: Facts) -> Finding | None:
    """Libraries in the workers start threads of their own, more than there are cores."""
    threads = native_crowd(facts)
    if not facts.starved or not threads:
        return None
    workers, cores = facts.workers, facts.environment.cores
    fewer = counted(max(1, cores // threads), "worker")
    return Finding(
        "native-threads-oversubscribed",
        "Native threads inside the workers crowd the cores",
        f"{percent(facts.native_share)} of the CPU time to make a batch is spent by threads beside "
        f"the workers' own, at least {threads:.0f} in each of {counted(workers, 'worker')}: "
        f"{workers * threads:.0f} or more threads on {counted(cores, 'core')}, of which "
        f"{facts.cores_used:.1f} were busy.",
        "Give each worker one thread, in worker_init_fn: cv2.setNumThreads(0), "
        "pyarrow.set_cpu_count(1), pools of your own of size 1; or start the script with "
        f"OMP_NUM_THREADS=1. Or keep the threads, and use {fewer}.",
    )


def oversubscribed(facts: Facts) -> Finding | None:
    """More CPU-hungry workers than cores."""
    if not facts.starved or native_crowd(facts) or not crowded(facts):
        return None
    workers, cores, waiting = facts.workers, facts.environment.cores, facts.share(RUN_QUEUE)
    seen = f"{counted(workers, 'worker')} on {counted(cores, 'core')}; "
    if isnan(waiting):
        seen += f"making a batch took {1 / facts.share(CPU):.1f} times its CPU time"
    else:
        seen += (
            f"making a batch took {format_duration(facts.made_s)}, and {percent(waiting)} of that "
            f"was waiting for a core. {facts.cores_wanted:.1f} cores would be busy if there were "
            "as many"
        )
    if facts.main_cores >= 0.5:
        seen += f"; the training process alone uses {facts.main_cores:.1f}"
    return Finding(
        "cpu-oversubscribed",
        "More work for the cores than there are cores",
        seen + ".",
        _relief(facts),
    )


def _relief(facts: Facts) -> str:
    best = enough_for_cores(facts)
    cheaper = "Only cheaper work per batch, or more cores, makes loading faster."
    if best < facts.workers:
        return f"Set num_workers to {best} instead of {facts.workers}. {cheaper}"
    threads = (
        "Limit the threads of the training process (torch.set_num_threads). "
        if facts.main_cores >= 0.5 else ""
    )  # fmt: skip
    return f"Leave num_workers at {facts.workers}: more would wait, too. {threads}{cheaper}"


def neighbours(facts: Facts) -> Finding | None:
    """Cores are short, and it is not this job that uses them."""
    waiting, cores = facts.share(RUN_QUEUE), facts.environment.cores
    if not facts.starved or crowded(facts) or native_crowd(facts):
        return None
    if not (waiting >= _WAITING and facts.cores_used <= 0.75 * cores):
        return None
    return Finding(
        "noisy-neighbour",
        "Something else uses the cores",
        f"{percent(waiting)} of making a batch was waiting for a core, while this job used "
        f"{facts.cores_used:.1f} of {counted(cores, 'core')} and wanted "
        f"{facts.cores_wanted:.1f}.",
        "Look for other processes on these cores (top, or the cgroup's neighbours), and for other "
        "loaders of this job. Measure again on a quiet machine before changing "
        f"num_workers={facts.workers}.",
    )


def quota(facts: Facts) -> Finding | None:
    """Affinity or a cgroup gives fewer cores than the machine shows."""
    environment = facts.environment
    if facts.diagnosis.verdict == "fed" or environment.cores >= environment.cores_visible:
        return None
    cores = environment.cores
    fix = f"num_workers={facts.workers} is within them."
    if facts.workers > cores:
        fix = f"num_workers={facts.workers} is more than that: for work that computes, set {cores}."
    return Finding(
        "fewer-cores-than-shown",
        "Fewer cores to use than the machine shows",
        f"{cores} of {environment.cores_visible} cores may be used here (affinity or cgroup "
        "quota).",
        f"{fix} Size it by os.sched_getaffinity, not os.cpu_count(), or raise the limit.",
    )
