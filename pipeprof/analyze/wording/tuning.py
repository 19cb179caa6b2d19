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

_OTHERS_MATTER = 0.05
"""Share of the time. A search calls a loader starved from there, too."""
_FED_BUT_OTHERS = "The accelerator waits for other loaders, not for this one."


def tuning_text(tuning: Tuning) -> str:
    """Return what was tried, what it brought, and what stays, as lines."""
    others = tuning.after.others_fraction if tuning.after else 0.0
    fed = tuning.state == "fed"
    lines = [_FED_BUT_OTHERS if fed and others >= _OTHERS_MATTER else _STATES[tuning.state]]
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
        + (f", {100 * others:.1f} % for other loaders" if (others := fed.others_fraction) else "")
    )


def _tried(one: TriedSetting) -> str:
    if one.ratio is None or one.interval is None:
        return f"{one.setting}: failed, {one.error}"
    low, high = one.interval
    predicted = f", predicted {one.predicted:.2f}" if one.predicted else ""
    outcome = "kept" if one.kept else "not kept"
    ratio = f"{one.ratio:.2f} ({low:.2f}–{high:.2f}) of {one.against}"
    if one.with_others is not None:
        ratio += f" if others are ready, {one.with_others:.2f} with them"
    return f"{one.setting}: {ratio}{predicted}; {outcome}"
