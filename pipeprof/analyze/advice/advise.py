"""What to change, from one run: the cure that fits the cause, best first.

More workers are proposed only where they help: not where the cores are used up, where the training
process is busy receiving, picking or pinning batches, or where a few slow batches hold up the rest.
Where no setting feeds the accelerator it says what would: cores, bandwidth, larger batches, and how
much of them.
What other numbers of workers would give is simulated, every other rate an estimate by the roofline;
either says so, and `pipeprof sweep` measures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pipeprof.analyze.advice import capacity_needed, roofline_estimate
from pipeprof.analyze.advice.expected_gain import expected
from pipeprof.analyze.advice.findings import cores, main_process, order, start, transfer
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.roofline_estimate import rate
from pipeprof.analyze.thresholds import LEAST_GAIN, LEAST_SLOW_BATCHES, MANY_TENSORS
from pipeprof.model import Recommendation, Stage
from pipeprof.units import counted, format_count, format_duration, percent

Cure = Callable[[Facts], Iterator[Recommendation]]

_MOST = 3
_UNTRIED = "Estimated from this run alone, not tried"


def advise(facts: Facts) -> tuple[Recommendation, ...]:
    """Empty when nothing needs to change, or nothing is known."""
    found = [advice for cure in _ALWAYS for advice in cure(facts)]
    if facts.starved and facts.made_s > 0:
        for cure in _FOR_STARVED:
            cures = list(cure(facts))
            if cures:
                told = {advice.setting for advice in cures}
                fed = capacity_needed.feeds(facts, cures)
                more = () if fed else capacity_needed.everything(facts)
                short = [advice for advice in more if advice.setting not in told]
                return (*cures, *short, *found)[:_MOST]
    return tuple(found)


def _crowd(facts: Facts) -> Iterator[Recommendation]:
    """More work for the cores than there are cores."""
    threads, cores_ = cores.native_crowd(facts), facts.environment.cores
    if threads:
        yield Recommendation(
            setting="worker_init_fn",
            current=f"{counted(threads, 'native thread')} or more in each of "
            f"{counted(facts.workers, 'worker')}",
            proposed="1 thread in each worker",
            why=f"{facts.workers * threads:.0f} threads or more share {counted(cores_, 'core')}, "
            "which the workers could keep busy by themselves. Not tried",
            code="def one_thread(worker):\n"
            "    # of these, what the data set uses\n"
            "    cv2.setNumThreads(0)\n"
            "    pyarrow.set_cpu_count(1)\n\n"
            "DataLoader(…, worker_init_fn=one_thread)",
        )
    elif (
        cores.cores_are_contended(facts)
        and (fewer := roofline_estimate.enough_for_cores(facts)) < facts.workers
    ):
        yield Recommendation(
            setting="num_workers",
            current=str(facts.workers),
            proposed=str(fewer),
            why=f"a batch takes {format_duration(facts.cpu_s)} of CPU time, and "
            f"{facts.cores_left:.1f} cores are left for it: at most "
            f"{format_count(facts.samples * facts.cores_left / facts.cpu_s)} samples/s with any "
            "number of workers. Fewer of them bring as much, with less memory and less waiting. "
            f"{_UNTRIED}",
            code=_loader(facts, fewer),
        )
        yield from _cheaper(facts)


def _receive(facts: Facts) -> Iterator[Recommendation]:
    """One process receives what all workers make."""
    cures = [*_pack(facts), *_inline(facts)]
    yield from sorted(cures, key=lambda advice: -(advice.predicted_samples_per_s or 0.0))


def _pack(facts: Facts) -> Iterator[Recommendation]:
    if not transfer.receiving_bound(facts) or not facts.tensors >= MANY_TENSORS:
        return
    predicted = rate(facts, facts.workers, received_s=facts.received_s / facts.tensors)
    if predicted < LEAST_GAIN * facts.rate:
        return
    yield Recommendation(
        setting="collate_fn",
        current=f"{counted(facts.tensors, 'tensor')} a batch",
        proposed="1 tensor a batch",
        why=f"the training process spends {format_duration(facts.received_s)} on receiving a "
        f"batch, {format_duration(facts.received_s / facts.tensors)} for each tensor. {_UNTRIED}",
        predicted_samples_per_s=predicted,
        code="def pack(samples):  # each a dict of tensors of one dtype\n"
        "    flat = [[part.flatten() for part in sample.values()] for sample in samples]\n"
        "    return torch.stack([torch.cat(parts) for parts in flat])\n\n"
        "DataLoader(…, collate_fn=pack)  # then batch.split(sizes, dim=1)",
    )


def _inline(facts: Facts) -> Iterator[Recommendation]:
    if not transfer.inline_is_faster(facts):
        return
    yield Recommendation(
        setting="num_workers",
        current=str(facts.workers),
        proposed="0",
        why=f"to make a batch takes {format_duration(facts.made_s)}; its way from a worker takes "
        f"{format_duration(facts.stage_s(Stage.TRANSFER))}. {_UNTRIED}",
        predicted_samples_per_s=rate(facts, 0),
        code="DataLoader(…, num_workers=0)",
    )


def _pass_slow(facts: Facts) -> Iterator[Recommendation]:
    """A few slow batches hold up the rest."""
    if not order.stalled_by_slow_batches(facts):
        return
    enough = facts.summary.sums["slow"] >= LEAST_SLOW_BATCHES
    seen = f"{percent(facts.slow_share)} of the batches take {format_duration(facts.slow_s)}"
    if order.out_of_order_helps(facts):
        yield Recommendation(
            setting="in_order",
            current="True",
            proposed="False",
            why=f"{seen}; those behind them then pass. Batches come in another order each run. "
            f"{_UNTRIED}",
            predicted_samples_per_s=rate(facts, facts.workers, in_order=False) if enough else None,
            code="DataLoader(…, in_order=False)",
        )
    if (prefetch := order.useful_prefetch(facts)) is not None:
        yield Recommendation(
            setting="prefetch_factor",
            current=str(facts.prefetch),
            proposed=str(prefetch),
            why=f"{seen}; {facts.workers * prefetch:,} batches under way outlast one, "
            f"{facts.workers * facts.prefetch:,} do not. {_UNTRIED}",
            predicted_samples_per_s=rate(facts, facts.workers, prefetch) if enough else None,
            code=f"DataLoader(…, prefetch_factor={prefetch})",
        )
    yield from _more_workers(facts)


def _lighten_main(facts: Facts) -> Iterator[Recommendation]:
    """The training process picks indices, or pins, more slowly than it trains."""
    if main_process.sampler_bound(facts):
        each_s = facts.per_batch(facts.summary.blame["sampler"])
        yield Recommendation(
            setting="sampler",
            current=f"{format_duration(each_s)} a batch",
            proposed="all indices of an epoch drawn at once",
            why="the training process picks indices itself, whatever num_workers is",
            code="def __iter__(self):  # of the sampler\n"
            "    return iter(torch.randperm(len(self.data)).tolist())",
        )
    if main_process.pinning_bound(facts):
        yield Recommendation(
            setting="pin_memory",
            current="True",
            proposed="False",
            why=f"one thread pins all batches, {format_duration(facts.stage_s(Stage.PIN))} each; "
            "not tried",
            code="DataLoader(…, pin_memory=False)",
        )
    if main_process.sampler_bound(facts) or main_process.pinning_bound(facts):
        yield from _more_workers(facts)


def _more_workers(facts: Facts) -> Iterator[Recommendation]:
    """Enough of them to make batches as fast as anything else allows."""
    wanted = roofline_estimate.helpful_workers(facts)
    if wanted is None:
        return
    shares = ". The data set must divide its samples among workers (get_worker_info)"
    new = facts.config.kind == "iterable" and not facts.workers
    advice = Recommendation(
        setting="num_workers",
        current=str(facts.workers),
        proposed=str(wanted),
        why=f"one worker makes {format_count(facts.samples / facts.work_s)} samples/s here"
        f"{_asked(facts)}; then {_next_limit(facts, wanted)} would be the limit"
        f"{shares if new else ''}",
        code=_loader(facts, wanted),
    )
    yield expected(facts, advice, wanted)


def _asked(facts: Facts) -> str:
    if not facts.diagnosis.has_step:
        return ""
    return f", the accelerator takes {format_count(facts.samples / facts.step_s)}"


def _next_limit(facts: Facts, workers: int) -> str:
    if workers == roofline_estimate.most_workers(facts):
        return f"memory for batches under way (prefetch {facts.prefetch} each)"
    if facts.work_s / workers > 1.01 * roofline_estimate.least_turn_s(facts):
        return counted(workers, "worker")
    if roofline_estimate.cores_are_the_limit(facts):
        return f"{facts.cores_left:.1f} free cores"
    return "the accelerator" if facts.diagnosis.has_step else "the training process"


def _cheaper(facts: Facts) -> Iterator[Recommendation]:
    """No setting of the loader helps."""
    short = list(capacity_needed.everything(facts))
    if short:
        yield from short
        return
    if roofline_estimate.cores_are_the_limit(facts) or cores.cores_are_contended(facts):
        why = (
            f"a batch takes {format_duration(facts.cpu_s)} of CPU time, and {facts.cores_left:.1f} "
            f"cores are left for it: at most "
            f"{format_count(facts.samples * facts.cores_left / facts.cpu_s)} samples/s; more "
            "workers do not raise it"
        )
        proposed = "a cheaper way to make a batch, not more workers"
    elif facts.blamed_on_workers >= 0.5:
        handing = (
            ""
            if facts.workers
            else (f", and receiving one from a worker some {format_duration(facts.received_s)}")
        )
        why = (
            f"a batch takes {format_duration(facts.work_s)} to make{handing}; more workers bring "
            "little"
        )
        proposed = "a cheaper way to make a batch, not more workers"
    else:
        why = (
            f"in each turn the training process itself spends "
            f"{format_duration(facts.received_s + facts.picking_s)} on receiving a batch, and on "
            "waking up for it; more workers do not change that"
        )
        proposed = "fewer, larger batches, not more workers"
    yield Recommendation(
        setting=facts.diagnosis.bottleneck or "the data path",
        current=f"num_workers={facts.workers}",
        proposed=proposed,
        why=why,
    )


def _keep_workers(facts: Facts) -> Iterator[Recommendation]:
    """Workers that start anew in each epoch."""
    if not start.starts_each_epoch(facts):
        return
    each_s = format_duration(start.start_up_s(facts))
    yield Recommendation(
        setting="persistent_workers",
        current="False",
        proposed="True",
        why=f"an epoch then begins without starting workers, which takes {each_s} of it now. The "
        "samples/s of the steady state stay as they are",
        code="DataLoader(…, persistent_workers=True)",
    )


def _pin_copies(facts: Facts) -> Iterator[Recommendation]:
    """Copies to the device that the host waits for, or that the driver copies twice."""
    pins = facts.config.pin_memory
    pageable, blocking = facts.main.pageable_copies and not pins, facts.main.blocking_copies
    if not (pageable or blocking) or not main_process.copies_matter(facts):
        return
    names = ["pin_memory"] * bool(pageable) + ["non_blocking"] * bool(blocking)
    yield Recommendation(
        setting=" + ".join(names),
        current=" + ".join("False" for _ in names),
        proposed=" + ".join("True" for _ in names),
        why=f"copies take {format_duration(facts.stage_s(Stage.H2D))} of each step; from pinned "
        "memory they are faster, and can run while the host goes on. Not tried",
        code="DataLoader(…, pin_memory=True)\n"
        "batch = pipeprof.to_device(batch, device, non_blocking=True)",
    )


def _loader(facts: Facts, workers: int) -> str:
    return (
        f"DataLoader(…, num_workers={workers}, prefetch_factor={facts.prefetch}, "
        "persistent_workers=True)"
    )


_FOR_STARVED: tuple[Cure, ...] = (
    _crowd, _receive, _pass_slow, _lighten_main, _more_workers, _cheaper,
)  # fmt: skip
"""The first that has something to say is heard: its cause hides what the others would see."""
_ALWAYS: tuple[Cure, ...] = (_keep_workers, _pin_copies)
"""These cost time that the verdict leaves out."""
