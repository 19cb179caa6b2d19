"""Say what tuning a loader tried, what it brought, and what stays."""

from __future__ import annotations

from pipeprof.model import Fed, TriedSetting, TunedSetting, Tuning, TuningState

_STATES: dict[TuningState, str] = {
    "searching": "The search continues.",
    "fed": "The accelerator is fed.",
    "best": "No other setting is expected to be faster.",
    "budget": "The time that trials may cost is spent.",
    "failed": "The search ended early.",
    "off": "This loader is not tuned.",
}


def tuning_text(tuning: Tuning) -> str:
    """Return what was tried, what it brought, and what stays, as lines."""
    lines = [_STATES[tuning.state]]
    if tuning.before and tuning.after:
        gain = tuning.after.batches_per_s / tuning.before.batches_per_s
        lines += [
            _line("before", tuning.first, tuning.before),
            _line("now", tuning.chosen, tuning.after)
            + (f", {gain:.2f} times as many" if tuning.chosen != tuning.first else ""),
            f"search  cost {tuning.lost_s:.1f} s",
        ]
    lines += ["tried   " + _tried(each) for each in tuning.tried]
    lines += [f"note    {note}" for note in tuning.notes]
    if tuning.chosen != tuning.own:
        lines.append(f"code    {tuning.code}")
    return "\n".join(lines)


def _line(name: str, setting: TunedSetting, fed: Fed) -> str:
    return (
        f"{name:<8}{setting}: {fed.batches_per_s:,.1f} batches/s, "
        f"waiting {100 * fed.starved_fraction:.1f} % of the time"
    )


def _tried(one: TriedSetting) -> str:
    if one.ratio is None or one.interval is None:
        return f"{one.setting}: failed, {one.error}"
    low, high = one.interval
    predicted = f", predicted {one.predicted:.2f}" if one.predicted else ""
    outcome = "kept" if one.kept else "not kept"
    ratio = f"{one.ratio:.2f} ({low:.2f}–{high:.2f}) of {one.against}"
    return f"{one.setting}: {ratio}{predicted}; {outcome}"
