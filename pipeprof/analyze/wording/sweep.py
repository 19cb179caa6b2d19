"""What a sweep says of a data set: its headline, and the setting to use with the code to paste."""

from __future__ import annotations

from typing import Final

from pipeprof.analyze.wording.loader_code import loader_code
from pipeprof.analyze.wording.template import Figures, fill
from pipeprof.model import LoaderConfig, Recommendation, SweepSpec, Trial
from pipeprof.units import listed


def sweep_headline(best: Trial, first: Trial, needed: Figures) -> str:
    """How far the best setting feeds the accelerator, and else what would feed it.

    Args:
        best: The trial of the setting to use.
        first: The first trial of the data set.
        needed: What would feed the accelerator; by name, ``None`` where it is not known.
    """
    takes = [part for each in _NEEDED if (part := fill(each, needed))]
    figures = {
        "setting": describe(best.config),
        "limit": best.bottleneck or "loading",
        "differs": best != first,
        "first": first,
        "first_setting": describe(first.config),
        "first_limit": first.bottleneck or "loading",
        "demand": best.demand_samples_per_s or None,
        "takes": listed(takes) if takes else None,
    }
    return fill(_HEADLINES[best.verdict if best.has_step else "no-step"], figures, best)


def tried_setting(first: Trial, best: Trial, url: str, spec: SweepSpec) -> Recommendation:
    """From the first setting tried to the best."""
    return Recommendation(
        setting="num_workers + prefetch_factor + batch_size",
        current=describe(first.config),
        proposed=describe(best.config),
        why=fill(_BOTH_RUN if best != first else _NONE_BETTER, {"first": first}, best),
        interval=best.interval,
        verified_samples_per_s=best.samples_per_s,
        code=loader_code(url, best.config, spec),
    )


def describe(config: LoaderConfig) -> str:
    """``"4 workers, prefetch 2, batch 256"``."""
    prefetch = config.prefetch_factor or None
    figures = {"prefetch": prefetch}
    return fill(
        "{num_workers:n worker}«, prefetch {prefetch}», batch {batch_size}", figures, config
    )


_SHARE: Final = (
    "the accelerator waits {starved_fraction:share} (95 %: {starved_interval[0]:points}–"
    "{starved_interval[1]:points} %) of the time"
)
_HEADLINES: Final = {
    "no-step": "No training step: at best, with {setting}, the loader gives {samples_per_s:count} "
    "samples/s; {limit} is the limit.",
    "fed": f"Fed with {{setting}}: {_SHARE}.«{{differs:if}} With {{first_setting}} it waited "
    "{first.starved_fraction:share}; {first_limit} was to blame.»",
    "starved": f"Starved at every setting tried: at best, with {{setting}}, {_SHARE}« and gets "
    "{samples_per_s:count} of the {demand:count} samples/s it could take»; {limit} is to blame."
    "« To feed it takes {takes}.»",
    "inconclusive": f"Inconclusive: with {{setting}} {_SHARE}; longer trials would tell.",
}
_NEEDED: Final = (
    "«{cores:n core} that make batches»",
    "«{read:rate} read»",
    "«{larger_batches:if}fewer, larger batches for the training process to receive»",
)
_BOTH_RUN: Final = (
    "both were run: {first.samples_per_s:count} samples/s and starved "
    "{first.starved_fraction:share} before, {samples_per_s:count} and {starved_fraction:share} "
    "after"
)
_NONE_BETTER: Final = "no other setting tried is better or cheaper"
