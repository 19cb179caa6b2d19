"""The answer alone: the verdict, its cause, the change that helps, and where the rest is."""

from __future__ import annotations

from pipeprof.model import Profile
from pipeprof.report.document.blocks import Document, Figure, Figures, Note, Section
from pipeprof.report.document.profile.advice import first_recommendation
from pipeprof.report.document.profile.confidence import confidence_in_brief
from pipeprof.report.document.profile.key_figures import rate
from pipeprof.report.document.profile.stall import first_causes
from pipeprof.report.document.wording import settings, verdict_of

REST = "The whole report: pipeprof report FILE --full, or as a page: --html OUT."


def profile_first_screen(profile: Profile) -> Document:
    opening = (
        verdict_of(profile.diagnosis, profile.diagnosis.headline),
        Figures((rate(profile), Figure("loader", settings(profile.config)))),
    )
    confidence = confidence_in_brief(profile)
    return Document(
        title=profile.name,
        subject="profile",
        created=profile.created,
        version=profile.environment.pipeprof,
        sections=(
            Section("verdict", "", opening),
            first_causes(profile),
            first_recommendation(profile),
            Section(confidence.name, confidence.heading, (*confidence.blocks, Note(REST))),
        ),
    ).filled()
