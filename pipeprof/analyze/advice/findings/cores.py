"""Who wants the cores, and who has them."""

from __future__ import annotations

from math import isnan

from pipeprof.analyze.advice.findings.case import Seen, case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.roofline_estimate import enough_for_cores
from pipeprof.analyze.profile.stage_times import CPU, RUN_QUEUE
from pipeprof.units import counted, format_duration, percent

_WAITING = 0.2
"""Of making a batch spent on waiting for a core: beyond it, cores are short."""
_TOO_MANY = 1.1
"""More cores are wanted than there are: beyond what noise makes of a full machine."""
_NATIVE = 0.4
"""Of the CPU time in native threads: beyond what handing batches over takes."""
_STOLEN, _TOLD = 0.1, 0.01
"""Of the machine's core time, gone to others on its host: beyond it, cores are short; below it,
nothing to speak of."""
_OWN_THREADS = 3
"""Of a worker, native ones left out: itself, the queue's feeder, torch's sharer of descriptors."""


def cores_are_contended(facts: Facts) -> bool:
    """Whether this job itself wants more cores than it has."""
    cores = facts.environment.cores
    waiting = facts.share(RUN_QUEUE)
    if isnan(waiting):  # not told by this kernel: judged by cores that are busy all the time
        used_up = facts.cores_used >= 0.9 * cores
        return used_up and facts.workers > cores and 0 < facts.share(CPU) < 0.8
    return waiting >= _WAITING and facts.cores_wanted > _TOO_MANY * cores


def native_crowd(facts: Facts) -> float:
    """Native threads that a worker runs at least, where they crowd the cores; else 0."""
    threads = facts.summary.gauges["threads"].quantiles(1.0)[0] - _OWN_THREADS
    cores = facts.environment.cores
    full = facts.share(RUN_QUEUE) >= _WAITING or facts.cores_used >= 0.5 * cores
    crowd = facts.native_share >= _NATIVE and facts.workers * threads > cores
    return threads if full and crowd else 0.0


@case("native-threads-oversubscribed", "Native threads inside the workers crowd the cores")
def native_threads(facts: Facts) -> Seen | None:
    """Libraries in the workers start threads of their own, more than there are cores.

    Seen by CPU time of a worker's process that is not its main thread's (40 % or more of what a
    batch takes), with more threads in all workers than cores, and cores that are busy. Cured by one
    thread a worker (`cv2.setNumThreads(0)`, `pyarrow.set_cpu_count(1)`, `OMP_NUM_THREADS=1`), or by
    fewer workers.
    """
    threads = native_crowd(facts)
    if not facts.starved or not threads:
        return None
    workers, cores = facts.workers, facts.environment.cores
    fewer = counted(max(1, cores // threads), "worker")
    return Seen(
        f"{percent(facts.native_share)} of the CPU time to make a batch is spent by threads beside "
        f"the workers' own, at least {threads:.0f} in each of {counted(workers, 'worker')}: "
        f"{workers * threads:.0f} or more threads on {counted(cores, 'core')}, of which "
        f"{facts.cores_used:.1f} were busy.",
        "Give each worker one thread, in worker_init_fn: cv2.setNumThreads(0), "
        "pyarrow.set_cpu_count(1), pools of your own of size 1; or start the script with "
        f"OMP_NUM_THREADS=1. Or keep the threads, and use {fewer}.",
    )


@case("cpu-oversubscribed", "More work for the cores than there are cores")
def oversubscribed(facts: Facts) -> Seen | None:
    """More CPU-hungry workers than cores.

    Seen by run-queue delay: a fifth or more of making a batch is waiting for a core, and this job
    alone wants more cores than it has. Where the kernel does not tell, by cores that are busy all
    the time. Cured by as many workers as there are cores for them; more make nothing faster.
    """
    if not facts.starved or native_crowd(facts) or not cores_are_contended(facts):
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
    return Seen(
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


@case("noisy-neighbour", "Something else uses the cores")
def neighbours(facts: Facts) -> Seen | None:
    """Cores are short, and it is not this job that uses them.

    Seen by run-queue delay as above, while this job uses three quarters of its cores at the most;
    or by a tenth or more of the core time that the host of a virtual machine gave to others
    (steal), which a job sees as CPU time or as being blocked. Cured by finding who else is at them,
    before any setting is changed.
    """
    stolen, others = facts.stolen >= _STOLEN, _others_here(facts)
    if not facts.starved or not (stolen or others):
        return None
    seen = [_waited(facts)] * others + [_taken(facts)] * (facts.stolen > _TOLD)
    return Seen(
        " ".join(seen),
        f"{_ASK if stolen else _LOOK} Measure again on a quiet machine before changing "
        f"num_workers={facts.workers}.",
    )


_ASK = "Ask whoever runs the host for cores of its own: no setting here gives them back."
_LOOK = (
    "Look for other processes on these cores (top, or the cgroup's neighbours), and for other "
    "loaders of this job."
)


def _others_here(facts: Facts) -> bool:
    """Whether cores are waited for that this job does not use."""
    if cores_are_contended(facts) or native_crowd(facts):
        return False
    spare = facts.cores_used <= 0.75 * facts.environment.cores
    return facts.share(RUN_QUEUE) >= _WAITING and spare


def _waited(facts: Facts) -> str:
    wanted = "" if isnan(facts.cores_wanted) else f" and wanted {facts.cores_wanted:.1f}"
    return (
        f"{percent(facts.share(RUN_QUEUE))} of making a batch was waiting for a core, while this "
        f"job used {facts.cores_used:.1f} of {counted(facts.environment.cores, 'core')}{wanted}."
    )


def _taken(facts: Facts) -> str:
    return (
        f"The host of this virtual machine gave {percent(facts.stolen)} of its core time to others "
        "(steal in /proc/stat)."
    )


@case("fewer-cores-than-shown", "Fewer cores to use than the machine shows")
def quota(facts: Facts) -> Seen | None:
    """Affinity or a cgroup gives fewer cores than the machine shows.

    Seen by `sched_getaffinity` and the cgroup's quota against `os.cpu_count()`. Cured by sizing
    workers by the former.
    """
    environment = facts.environment
    if facts.diagnosis.verdict == "fed" or environment.cores >= environment.cores_visible:
        return None
    cores = environment.cores
    fix = f"num_workers={facts.workers} is within them."
    if facts.workers > cores:
        fix = f"num_workers={facts.workers} is more than that: for work that computes, set {cores}."
    return Seen(
        f"{cores} of {environment.cores_visible} cores may be used here (affinity or cgroup "
        "quota).",
        f"{fix} Size it by os.sched_getaffinity, not os.cpu_count(), or raise the limit.",
    )
