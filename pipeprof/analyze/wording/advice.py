"""Turn a proposed change into words: the present and proposed setting, the reason, code to paste.

A template's name that the proposal's figures lack is an attribute of `advice.metrics.Facts`.
"""

from __future__ import annotations

from typing import Final

from pipeprof.analyze.wording.pipeline import ADVICE
from pipeprof.analyze.wording.template import Figures, ProposalText, fill
from pipeprof.model import Recommendation


def recommendation(code: str, setting: str, figures: Figures, run: object) -> Recommendation:
    """Return the proposal with this code in words; the caller adds its predicted outcome."""
    text = TEXTS[code]
    return Recommendation(
        setting=setting,
        current=fill(text.current, figures, run),
        proposed=fill(text.proposed, figures, run),
        why=fill(text.why + ("" if code in _ALONE else _WITH_OTHERS), figures, run),
        code=fill(text.code, figures, run) or None,
        settle=fill(text.settle, figures, run) or None,
    )


_WITH_OTHERS: Final = "«. It helps only as far as {awaited_others} can keep up»"
_ALONE: Final = ("keep-iterator", "keep-workers", "pinned-copies")
"""Proposals that help whatever other loaders do."""
_UNTRIED: Final = "Estimated from this run alone, not tried"
_CORE_LIMIT: Final = (
    "a batch takes {cpu_s:duration} of CPU time, and {cores_left:.1f} cores are left for it: at "
    "most {cores_rate:count} samples/s"
)
_DEMAND: Final = "the accelerator takes {demand:count} samples/s × "
_SLOW_BATCHES: Final = "{slow_share:percent} of the batches take {slow_s:duration}; "
_CHEAPER: Final = "batches that cost less to build, not more workers"

_WITH_WORKERS: Final = (
    "«{config.fixed:unless}, prefetch_factor={prefetch}, persistent_workers=True»)"
)
_MORE_WORKERS: Final = (
    "one worker gives {worker_rate:count} samples/s here«, the accelerator takes "
    "{demand:count}»; the next limit would be «{by_memory:if}memory for prefetched batches "
    "({prefetch} a worker)»«{by_workers:if}{wanted:n worker}»"
    "«{by_cores:if}{cores_left:.1f} free cores»«{by_step:if}the accelerator»"
    "«{by_main:if}the training process»"
    "«{must_share:if}. The data set must divide its samples among workers (get_worker_info)»"
    "«. There were too few slow batches to predict the gain: run {more_batches:n more batch} "
    "for that. Not tried»«{simulated:if}. Simulated with this run's batches, not tried»"
    f"«. {{left_open:capital}}»«{{roofline:if}}. {_UNTRIED}»«. {{few_batches:n more batch}} "
    "would be enough for an interval»«{fills:if}. More workers bring nothing if together they "
    "use all of the storage's bandwidth»"
)

TEXTS: Final = {
    **ADVICE,
    "one-thread": ProposalText(
        "{threads:n native thread} or more in each of {workers:n worker}",
        "1 thread in each worker",
        "{all_threads:.0f} threads or more share {cores:n core}, which the workers' main threads "
        "could keep busy alone. Not tried",
        "def one_thread(worker):\n"
        "    # of these, what the data set uses\n"
        "    cv2.setNumThreads(0)\n"
        "    pyarrow.set_cpu_count(1)\n\n"
        "DataLoader(…, worker_init_fn=one_thread)",
    ),
    "fewer-workers": ProposalText(
        "{workers}",
        "{fewer}",
        f"{_CORE_LIMIT} with any number of workers. Fewer workers give as much, with less memory "
        f"and less waiting. {_UNTRIED}",
        "DataLoader(…, num_workers={fewer}" + _WITH_WORKERS,
    ),
    "more-workers": ProposalText(
        "{workers}",
        "{wanted}",
        _MORE_WORKERS,
        "DataLoader(…, num_workers={wanted}" + _WITH_WORKERS,
        "«{settle}: pipeprof run --set num_workers={wanted} train.py»",
    ),
    "in-data-loader": ProposalText(
        "0, in the training loop",
        "{wanted}, in a DataLoader",
        "batches are computed in the training loop's thread; " + _MORE_WORKERS,
        "class Batches(torch.utils.data.IterableDataset):\n"
        "    def __iter__(self):\n"
        "        ...  # yield the batches; each worker its share of them\n\n"
        "DataLoader(Batches(), batch_size=None, num_workers={wanted}, persistent_workers=True)",
    ),
    "no-workers": ProposalText(
        "{workers}",
        "0",
        "a batch takes {made_s:duration} to build, and {transfer_s:duration} to transfer from a "
        f"worker. {_UNTRIED}",
        "DataLoader(…, num_workers=0)",
    ),
    "pack": ProposalText(
        "{tensors:n tensor} a batch",
        "1 tensor a batch",
        "the training process spends {received_s:duration} on receiving a batch, "
        f"{{each_s:duration}} for each tensor. {_UNTRIED}",
        "def pack(samples):  # each a dict of tensors of one dtype\n"
        "    rows = [torch.cat([part.flatten() for part in each.values()]) for each in samples]\n"
        "    return torch.stack(rows)\n\n"
        "DataLoader(…, collate_fn=pack)  # then batch.split(sizes, dim=1)",
    ),
    "out-of-order": ProposalText(
        "True",
        "False",
        f"{_SLOW_BATCHES}later batches then overtake them. The order of batches changes from run "
        f"to run. {_UNTRIED}",
        "DataLoader(…, in_order=False)",
    ),
    "more-prefetch": ProposalText(
        "{prefetch}",
        "{wanted}",
        f"{_SLOW_BATCHES}{{wanted_prefetched:,}} prefetched batches last that long, "
        f"{{prefetched:,}} do not. {_UNTRIED}",
        "DataLoader(…, prefetch_factor={wanted})",
    ),
    "draw-at-once": ProposalText(
        "{each_s:duration} a batch",
        "all indices of an epoch drawn at once",
        "the training process picks indices itself, whatever num_workers is",
        "def __iter__(self):  # of the sampler, whose order may be another\n"
        "    return iter(torch.randperm(len(self.data)).tolist())",
    ),
    "no-pinning": ProposalText(
        "True",
        "False",
        "one thread pins all batches, {pin_s:duration} each. Not tried",
        "DataLoader(…, pin_memory=False)",
    ),
    "keep-iterator": ProposalText(
        "one for each batch",
        "one for each epoch",
        "a batch comes {first_s:duration} after its iterator was asked for, and each iterator "
        "begins a new epoch. Not tried",
        "for batch in loader:\n    train_step(batch)",
    ),
    "keep-workers": ProposalText(
        "False",
        "True",
        "an epoch then begins without starting workers, which takes {each_s:duration} of its "
        "{epoch_s:duration} now. The samples/s of the steady state stay as they are",
        "DataLoader(…, persistent_workers=True)",
    ),
    "pinned-copies": ProposalText(
        "False«{both:if} + False»",
        "True«{both:if} + True»",
        "copies take {copied_s:duration} of each step; from pinned memory they are faster, and the "
        "host does not wait for them. Not tried",
        "DataLoader(…, pin_memory=True)\n"
        "batch = pipeprof.to_device(batch, device, non_blocking=True)",
    ),
    "cheaper-on-cores": ProposalText(
        "num_workers={workers}", _CHEAPER, f"{_CORE_LIMIT}; more workers do not raise it"
    ),
    "cheaper-batches": ProposalText(
        "num_workers={workers}",
        _CHEAPER,
        "a batch takes {work_s:duration} to build«{workers:unless}, and about "
        "{received_s:duration} to receive from a worker»; more workers bring little",
    ),
    "larger-batches": ProposalText(
        "num_workers={workers}",
        "fewer, larger batches, not more workers",
        "the training process itself spends {main_s:duration} per batch on receiving it and on "
        "waking up for it; more workers do not change that",
    ),
    "more-cores": ProposalText(
        "{has:.3g}",
        "{wanted:.1f} (90 %: {low:.1f}–{high:.1f})",
        f"{_DEMAND}{{cpu_a_sample:duration}} of CPU time each«{{main_counts:if}}, and "
        "{main_cores:.1f} of the training process». {has:n core} give at most "
        "{cores_rate:count} samples/s with any number of workers. As good: {more:.1f} cores of "
        "other machines that also build batches, or batches that cost {cheaper:.2f}× the CPU time",
    ),
    "more-bandwidth": ProposalText(
        "{now:rate}",
        "{wanted:rate} ({times:.1f}×)",
        f"{_DEMAND}{{size:bytes}} read each. As good: {{fewer:.2f}}× the bytes for a sample "
        "(a denser format, only the columns in use), or the data on a local disk with that "
        "bandwidth«. At the present rate, copying all {recording.source.bytes:bytes} takes "
        "{copied_s:duration}»"
        "«{sure:unless}. A run with more workers shows whether the storage gives more»",
    ),
    "more-requests": ProposalText(
        "{requests.in_flight:.1f}",
        "{wanted:.1f}",
        f"{_DEMAND}{{a_sample:n request}} each × {{requests.latency_s.mean:duration}} (Little's "
        "law). Use more workers, or several requests at a time in each. As good: requests that "
        "bring more samples, or a storage with less latency (a local disk)",
    ),
    "batch-size": ProposalText(
        "{now}",
        "{wanted}",
        "a step takes {step_s:duration}, and handing a batch over {handed_s:duration}, whatever "
        "its size; larger batches are handed over {times} times less often. They change the "
        "training (learning rate, statistics over a batch). Estimated from this run alone, for "
        "steps that take {times} times as long; not tried",
        "«{ours:if}open_dataset»«{ours:unless}DataLoader»(…, batch_size={wanted})",
    ),
}  # fmt: skip
"""By code."""
