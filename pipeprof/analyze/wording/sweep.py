"""Texts of a sweep about a data set: its headline, and the recommended setting with its code."""

from __future__ import annotations

from typing import Final

from pipeprof.analyze.wording.loader_code import loader_code
from pipeprof.analyze.wording.template import Figures, fill
from pipeprof.model import LoaderConfig, Recommendation, SweepSpec, Trial
from pipeprof.units import listed


def sweep_headline(best: Trial, first: Trial, needed: Figures) -> str:
    """Say whether the best setting feeds the accelerator; where it does not, say what would.

    Args:
        best: The trial of the recommended setting.
        first: The first trial of the data set.
        needed: What would feed the accelerator, by name; ``None`` where it is unknown.
    """
    needs = [part for each in _NEEDED if (part := fill(each, needed))]
    figures = {
        "setting": describe(best.config),
        "limit": best.bottleneck or "loading",
        "differs": best != first,
        "first": first,
        "first_setting": describe(first.config),
        "first_limit": first.bottleneck or "loading",
        "demand": best.demand_samples_per_s or None,
        "needs": listed(needs) if needs else None,
    }
    return fill(_HEADLINES[best.verdict if best.has_step else "no-step"], figures, best)


def tried_setting(first: Trial, best: Trial, url: str, spec: SweepSpec) -> Recommendation:
    """Recommend the change from the first setting tried to the best."""
    return Recommendation(
        setting="num_workers + prefetch_factor + batch_size",
        current=describe(first.config),
        proposed=describe(best.config),
        why=fill(_MEASURED if best != first else _NONE_BETTER, {"first": first}, best),
        interval=best.interval,
        verified_samples_per_s=best.samples_per_s,
        code=loader_code(url, best.config, spec),
    )


def describe(config: LoaderConfig) -> str:
    """Return the setting in words, e.g. ``"4 workers, prefetch 2, batch 256"``."""
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
    "samples/s, limited by {limit}.",
    "fed": f"Fed with {{setting}}: {_SHARE}.«{{differs:if}} With {{first_setting}} it waited "
    "{first.starved_fraction:share}; {first_limit} was to blame.»",
    "starved": f"Starved at every setting tried: at best, with {{setting}}, {_SHARE}« and gets "
    "{samples_per_s:count} of the {demand:count} samples/s it could take»; {limit} is to blame."
    "« Feeding it takes {needs}.»",
    "inconclusive": f"Inconclusive: with {{setting}} {_SHARE}; longer trials would decide it.",
}
_NEEDED: Final = (
    "«{cores:n core} that build batches»",
    "«{read:rate} read»",
    "«{larger_batches:if}fewer, larger batches for the training process to receive»",
)
_MEASURED: Final = (
    "both were measured: {first.samples_per_s:count} samples/s and starved "
    "{first.starved_fraction:share} before, {samples_per_s:count} and {starved_fraction:share} "
    "after"
)
_NONE_BETTER: Final = "no other setting tried is better or cheaper"
