"""What a run's verdict rests on, as the terminal's report words it: one wording for all."""

from __future__ import annotations

from pipeprof.model import Profile
from pipeprof.report import terminal_profile, terminal_stall
from pipeprof.report.html.kept import kept
from pipeprof.report.html.shapes import Lines, Section
from pipeprof.report.terminal_requests import requests

_UNSEEN = "Unknown: the data set reads in a way that is not seen, or nothing."


def changes(profile: Profile) -> Section:
    return kept(
        "change",
        "What to change",
        lambda page: terminal_profile.changes(page, profile),
        "No change of settings is recommended from this run.",
        heads=True,
    )


def requests_made(profile: Profile) -> Section:
    title = "Requests of storage"
    seen = profile.requests is not None
    return kept(
        "requests",
        title,
        lambda page: requests(page, profile),
        "No request was made." if seen else _UNSEEN,
    )


def cached(profile: Profile) -> Section:
    told = Lines((f"{profile.cache.state.capitalize()}: {profile.cache.evidence}.",))
    return Section("cache", "Cold or cached", "", (told,))


def findings(profile: Profile) -> Section:
    return kept(
        "findings",
        "Findings",
        lambda page: terminal_profile.findings(page, profile),
        "No known pathology showed in this run.",
        heads=True,
    )


def pauses(profile: Profile) -> Section:
    return kept(
        "pauses",
        "Pauses",
        lambda page: terminal_stall.pauses(page, profile),
        "Between batches main did nothing but train, as far as can be told.",
    )


def how_sure(profile: Profile) -> Section:
    return kept("sure", "How sure", lambda page: terminal_profile.how_sure(page, profile), "")
