"""Texts about the stages of loaders that work in threads."""

from __future__ import annotations

from typing import Final

from pipeprof.analyze.wording.template import FindingText, ProposalText

_BUSY: Final = "{stage} is busy {busy:percent} of the time of its {slots:n thread}"
_WAITED: Final = "{busy:percent} of the wait was for {stage}, by the library's own figures"
_UNREADY: Final = "{stage} has no item ready {busy:percent} of the time"
_EACH: Final = "«; an item takes {each_s:duration}»«, of which it computes {computing:percent}»"
_NEXT: Final = (
    "«. The next limit would be the stage {next_stage}»«{by_step:if}. The next limit would be the "
    "accelerator»«{by_cores:if}. The next limit would be the cores»«{by_interpreter:if}. The next "
    "limit would be Python's interpreter, in which threads compute one at a time»«{by_unknown:if}. "
    "More than 4 times the rate is not promised from one run»"
)
_UNTRIED: Final = ". Estimated from this run alone, not tried"
_MORE: Final = f"{_BUSY}{_EACH}{_NEXT}{_UNTRIED}"

ADVICE: Final = {
    "more-of-mapper": ProposalText(
        "{slots}", "{wanted}", _MORE, "ParallelMapper(…, {stage}, num_workers={wanted})"
    ),
    "parallel-mapper": ProposalText(
        "no threads of its own", "{wanted:n thread}", _MORE,
        'ParallelMapper(…, {stage}, num_workers={wanted}, method="thread")',
    ),
    "more-of-pipe": ProposalText(
        "{slots}", "{wanted}", _MORE,
        ".pipe({stage}, concurrency={wanted})«\n….build(num_threads={threads})»",
    ),
    "more-reading-threads": ProposalText(
        "{slots}", "{wanted}", _MORE,
        "….to_iter_dataset(grain.ReadOptions(num_threads={wanted}, "
        "prefetch_buffer_size={wanted}))",
    ),
    "pipeline-interpreter": ProposalText(
        "{slots:n thread}", "processes, or cheaper work",
        "«its threads together compute on {cores_used:.2f} cores; »an item of {stage} takes "
        "{each_s:duration}«, of which it computes {computing:percent}». Threads compute in Python "
        "one at a time, so this run does not show that more of them would be faster. Not tried",
    ),
    "pipeline-cores": ProposalText(
        "{slots:n thread}", "cheaper work, or more cores",
        f"{_BUSY}{_EACH}. The process uses nearly all of {{cores:n core}}, so more threads would "
        "wait for one another",
    ),
    "pipeline-others": ProposalText(
        "{slots:n thread}", "cheaper work in this and the next stage",
        f"{_BUSY}{_EACH}. More threads bring little«: the stage {{next_stage}} is nearly as busy»",
    ),
    "pipeline-one-thread": ProposalText(
        "one thread", "its work in a stage with several threads",
        f"«{{timed:if}}{_BUSY}»«{{unready:if}}{_UNREADY}»{_EACH}. It "
        "cannot be run by more threads as it is. Let it yield only what names an item, and load "
        "the item in a stage that works on several at once. Not tried",
    ),
    "ray-production": ProposalText(
        "the data set's tasks do not keep up", "more, or cheaper, tasks",
        "by Ray's own figures, {busy:percent} of the wait was for blocks that no task had made "
        "yet. dataset.stats() names the slowest operator. Give it more tasks (concurrency= of "
        "map_batches), or the cluster more CPUs",
    ),
    "ray-iteration": ProposalText(
        "one batch at a time", "more batches in advance",
        "by Ray's own figures, {busy:percent} of the wait was for {stage}, in the process that "
        "trains. Not tried",
        "iter_torch_batches(…, prefetch_batches=4)",
    ),
}  # fmt: skip
"""The templates of proposed changes, by code."""

FINDINGS: Final = {
    "pipeline-stage-bound": FindingText(
        "One stage of the loader's pipeline limits all others",
        f"«{{timed:if}}{_BUSY}»«{{waited:if}}{_WAITED}»«{{unready:if}}{_UNREADY}»"
        "«{in_turns:if}all stages together compute on {cores_used:.2f} cores, {stage} the most; "
        "threads compute in Python one at a time»"
        "« ({items:n item}, {each_s:duration} each)»«. It computes {computing:percent} of that, "
        "and waits the rest». It is a stage of {library} ({kind}).",
        "«{gain:if}See the recommendation: working on more of its items at once gives up to "
        "{gain:percent} more samples/s.»«{gain:unless}More threads are not known to help. Make its "
        "work cheaper, or move it into processes.»",
    ),
}  # fmt: skip
"""The templates of findings, by code."""
