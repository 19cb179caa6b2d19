"""What a sweep says of each data set: the cheapest setting that feeds, else the fastest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from math import inf

from pipeprof.analyze.profile.stall_attribution import MAIN
from pipeprof.analyze.thresholds import EQUALLY_FAST, MOST_CORES, MOST_GAIN
from pipeprof.model import (
    LoaderConfig,
    PairedRuns,
    ReadOptions,
    Recommendation,
    Stage,
    SweepAdvice,
    SweepSpec,
    Trial,
)
from pipeprof.units import counted, format_count, format_rate, format_share, listed

_HANDING_OVER = (str(Stage.TRANSFER), MAIN)
"""To blame where a batch takes as long whatever is in it: neither cores nor storage are short."""
_WIDTH = 88
"""Columns of code to paste."""
_NOT_SAVED = "# the sweep was given --storage-options, which are not saved: add storage_options=…"


def choose(
    trials: Sequence[Trial], spec: SweepSpec, paired: Mapping[str, PairedRuns] | None = None
) -> tuple[SweepAdvice, ...]:
    """One piece of advice per data set, in the order in which they were first tried. ``paired``:
    URL → the runs in pairs that settled what the trials left in doubt."""
    urls = dict.fromkeys(trial.url for trial in trials)
    return tuple(_advise(url, trials, spec, (paired or {}).get(url)) for url in urls)


def _advise(
    url: str, trials: Sequence[Trial], spec: SweepSpec, pairs: PairedRuns | None
) -> SweepAdvice:
    own = [index for index, trial in enumerate(trials) if trial.url == url]
    best = _borne_out(pairs, trials) if pairs else best_trial(trials, own)
    chosen, first = trials[best], trials[own[0]]
    return SweepAdvice(
        url=url,
        format=chosen.format,
        headline=_headline(chosen, first, spec.threshold),
        best_trial=best,
        recommendation=_recommendation(first, chosen, url, spec),
    )


def best_trial(trials: Sequence[Trial], own: Sequence[int]) -> int:
    """Of those that feed the accelerator the cheapest; if none does, the cheapest of those within
    3 % of the fastest. Cheap is few workers, then little prefetching."""
    found = candidates(trials, own)
    fastest = max(trials[index].samples_per_s for index in found)
    near = [index for index in found if trials[index].samples_per_s >= fastest * (1 - EQUALLY_FAST)]
    return min(near, key=lambda index: _cost(trials[index]))


def candidates(trials: Sequence[Trial], own: Sequence[int]) -> Sequence[int]:
    """Those of ``own`` that feed the accelerator, or all of them if none does."""
    return [index for index in own if trials[index].verdict == "fed"] or own


def _borne_out(pairs: PairedRuns, trials: Sequence[Trial]) -> int:
    """The faster of the two; the cheaper, where they do not differ."""
    if pairs.difference == "none":
        return min((pairs.trial, pairs.against), key=lambda index: _cost(trials[index])[:2])
    return pairs.trial if pairs.difference == "faster" else pairs.against


def _cost(trial: Trial) -> tuple[float, ...]:
    config = trial.config
    return (config.num_workers, config.prefetch_factor or 0, -trial.samples_per_s)


def _headline(trial: Trial, first: Trial, threshold: float) -> str:
    setting = describe(trial.config)
    low, high = trial.starved_interval
    share = f"{format_share(trial.starved_fraction)} (95 %: {low * 100:.1f}–{high * 100:.1f} %)"
    if not trial.has_step:
        return (
            f"No training step: at best, with {setting}, the loader gives "
            f"{format_count(trial.samples_per_s)} samples/s; "
            f"{trial.bottleneck or 'loading'} is the limit."
        )
    if trial.verdict == "fed":
        before = (
            f" With {describe(first.config)} it waited {format_share(first.starved_fraction)}; "
            f"{first.bottleneck or 'loading'} was to blame."
        )
        return f"Fed with {setting}: the accelerator waits {share} of the time." + (
            before if first != trial else ""
        )
    if trial.verdict == "starved":
        return (
            f"Starved at every setting tried: at best, with {setting}, the accelerator waits "
            f"{share} of the time{_shortfall(trial)}; {trial.bottleneck or 'loading'} is to blame."
            f"{_takes(trial, threshold)}"
        )
    return (
        f"Inconclusive: with {setting} the accelerator waits {share} of the time; "
        "longer trials would tell."
    )


def _takes(trial: Trial, threshold: float) -> str:
    """What would feed: (1 - the tolerated starved share) × the samples/s that the accelerator could
    take, × what each sample takes of cores and of storage."""
    demand = trial.demand_samples_per_s or inf
    if demand > MOST_GAIN * trial.samples_per_s:
        return ""
    rate, takes = (1 - threshold) * demand, []
    cores = rate * (trial.cpu_s_per_sample or 0.0)
    if 0 < cores <= MOST_CORES:
        takes.append(f"{counted(cores, 'core')} that make batches")
    if trial.bytes_per_sample:
        takes.append(f"{format_rate(rate * trial.bytes_per_sample)} read")
    if trial.config.num_workers and trial.bottleneck in _HANDING_OVER:
        takes.append("fewer, larger batches for the training process to receive")
    return f" To feed it takes {listed(takes)}." if takes else ""


def _shortfall(trial: Trial) -> str:
    demand = trial.demand_samples_per_s
    if not demand:
        return ""
    return (
        f" and gets {format_count(trial.samples_per_s)} of the {format_count(demand)} samples/s "
        "it could take"
    )


def describe(config: LoaderConfig) -> str:
    """``"4 workers, prefetch 2, batch 256"``."""
    workers = f"{config.num_workers} worker{'s' if config.num_workers != 1 else ''}"
    prefetch = f", prefetch {config.prefetch_factor}" if config.prefetch_factor else ""
    return f"{workers}{prefetch}, batch {config.batch_size}"


def _recommendation(first: Trial, best: Trial, url: str, spec: SweepSpec) -> Recommendation:
    against = (
        f"both were run: {format_count(first.samples_per_s)} samples/s and starved "
        f"{format_share(first.starved_fraction)} before, {format_count(best.samples_per_s)} and "
        f"{format_share(best.starved_fraction)} after"
    )
    return Recommendation(
        setting="num_workers + prefetch_factor + batch_size",
        current=describe(first.config),
        proposed=describe(best.config),
        why=against if best != first else "no other setting tried is better or cheaper",
        interval=best.interval,
        verified_samples_per_s=best.samples_per_s,
        code=loader_code(url, best.config, spec),
    )


def loader_code(url: str, config: LoaderConfig, spec: SweepSpec) -> str:
    """Python to paste, which reads ``url`` as the trials of ``spec`` did."""
    if spec.own is not None:
        return _own_code(config, spec)
    module, function = _function(spec.transform)
    lines = [
        "import pipeprof",
        "from torch.utils.data import DataLoader",
        *([f"from {module} import {function}"] if function else []),
        "",
        *([_NOT_SAVED] if spec.with_options else []),
        *_call("dataset = pipeprof.open_dataset", [repr(url), *_reading(url, config, spec)]),
    ]
    settings = ["dataset", "batch_size=None", f"num_workers={config.num_workers}"]
    if config.num_workers:
        settings += [f"prefetch_factor={config.prefetch_factor}", "persistent_workers=True"]
    return "\n".join([*lines, *_call("loader = DataLoader", settings)])


def _own_code(config: LoaderConfig, spec: SweepSpec) -> str:
    settings = [f"num_workers={config.num_workers}"]
    if config.num_workers:
        settings.append(f"prefetch_factor={config.prefetch_factor}")
    if spec.batch_sizes:
        settings.append(f"batch_size={config.batch_size}")
    if spec.loader is None:
        return "\n".join(
            [f"pipeprof run --set {','.join(settings)} {spec.script}  # as it is, or in it:",
             f"DataLoader(…, {', '.join(settings)})"]
        )  # fmt: skip
    module, function = _function(spec.loader)
    return f"from {module} import {function}\n\nloader = {function}({', '.join(settings)})"


def _function(transform: str | None) -> tuple[str, str]:
    """Module and name."""
    place, _, function = (transform or "").rpartition(":")
    return place.rpartition("/")[2].removesuffix(".py"), function


def _reading(url: str, config: LoaderConfig, spec: SweepSpec) -> Iterator[str]:
    """What is not as by default."""
    yield f"batch_size={config.batch_size}"
    if spec.columns is not None:
        yield f"columns={list(spec.columns)!r}"
    if spec.transform is not None:
        yield f"transform={_function(spec.transform)[1]}"
    if read := _changed(spec.read):
        yield f"read=pipeprof.ReadOptions({read})"
    if spec.on_error != "fail":
        yield f"on_error={spec.on_error!r}"
    if spec.s3_client is not None and url.startswith(("s3://", "s3a://")):
        yield f"storage_options={ {'s3_client': spec.s3_client}!r}"


def _changed(read: ReadOptions) -> str:
    given = ((field.name, getattr(read, field.name), field.default) for field in fields(read))
    return ", ".join(f"{name}={value!r}" for name, value, default in given if value != default)


def _call(function: str, arguments: Sequence[str]) -> list[str]:
    """On one line, or on three when it is long, or a line for each argument."""
    together = ", ".join(arguments)
    if len(function) + len(together) + 2 <= _WIDTH:
        return [f"{function}({together})"]
    if len(together) + 4 <= _WIDTH:
        return [f"{function}(", f"    {together}", ")"]
    return [f"{function}(", *(f"    {argument}," for argument in arguments), ")"]
