"""Present what the figures of a sweep rest on: trials, noise, cache and machine."""

from __future__ import annotations

from pipeprof.model import RunNoise, SweepResult, SweepSpec
from pipeprof.report.document.blocks import Section, figures, section
from pipeprof.report.document.data_sets import data_sets, trial_at
from pipeprof.report.document.wording import machine, relative, rule, settings
from pipeprof.units import counted, format_count, format_duration


def confidence(sweep: SweepResult) -> Section:
    """Return all evidence for the figures."""
    spec = sweep.spec
    noise = [
        ("run to run", _run_to_run(sweep, data.label, sweep.noise[data.url]))
        for data in data_sets(sweep)
        if data.url in sweep.noise
    ]
    rows = [
        ("trials", f"{len(sweep.trials)}, each {_length(spec)}"),
        *noise,
        ("spread", "(max - min) / median of samples/s over five equal windows of a trial"),
        ("verdict", rule(spec.threshold)),
        ("accelerator", sweep.environment.accelerator or "unknown"),
        ("transform", spec.transform or ""),
        ("columns", ", ".join(spec.columns or ())),
        ("machine", machine(sweep.environment)),
        ("run", sweep.created),
        *(("note", note) for note in sweep.notes),
    ]
    return section("confidence", "Confidence", figures(rows), evidence=True)


def confidence_in_brief(sweep: SweepResult) -> str:
    """Return the evidence for the figures as one sentence."""
    parts = [f"{counted(len(sweep.trials), 'trial')}, each {_length(sweep.spec)}"]
    if sweep.noise:
        widest = max(noise.half_width for noise in sweep.noise.values())
        parts.append(f"two runs of one setting differ by up to {relative(widest)} (95 %)")
    if sweep.notes:
        parts.append(counted(len(sweep.notes), "note"))
    return f"{'; '.join(parts)}."


def _length(spec: SweepSpec) -> str:
    if spec.script is not None:
        return "one run of the script"
    return f"of {format_duration(spec.trial_s)} or more"


def _run_to_run(sweep: SweepResult, label: str, noise: RunNoise) -> str:
    """Say how the repeated trial differed; empty if the file names no such trial."""
    trial = trial_at(sweep, noise.trial)
    if trial is None:
        return ""
    return (
        f"{label}: {settings(trial.config)}, repeated, gave {format_count(noise.samples_per_s)} "
        f"samples/s instead of {format_count(noise.first_samples_per_s)}. From this and the drift "
        "of the trials, two runs of one setting differ by up to "
        f"{relative(noise.half_width)} (95 %). The intervals include it."
    )
