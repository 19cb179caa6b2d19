"""The tests that every renderer must pass. Its test class inherits them and defines `render`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeprof.model import DataSource, Profile, Throughput
from pipeprof.report.document.blocks import (
    Document,
)
from pipeprof.report.document.build import full_report
from tests.comparisons import sample_comparison, three_runs
from tests.contracts.report_samples import (
    CONTROLS,
    DOCUMENTS,
    HOSTILE,
    RESULTS,
    SAMPLE,
    Result,
    pieces,
    renamed,
    unwrapped,
    with_diagnosis,
)
from tests.samples import (
    ENVIRONMENT,
    fed_profile,
    sample_profile,
)
from tests.stage_samples import sample_workers, stage_stats
from tests.sweep_samples import sample_sweep, sample_trial


class ReportContract:
    """Subclasses define `render`, and `shown` where their medium escapes text."""

    def render(self, document: Document) -> str:
        """Return the text that a reader sees, wide enough not to be cut."""
        raise NotImplementedError

    def shown(self, text: str) -> str:
        """Return how a user-given ``text`` appears in the report."""
        return text

    def report(self, result: Result) -> str:
        return self.render(full_report(result))

    @pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
    def test_all_of_a_document_appears_in_order(self, document: Document) -> None:
        report, at = unwrapped(self.render(document)).lower(), 0
        for piece in pieces(document):
            words = " ".join(piece.lower().split())
            found = report.find(words, at)
            assert found >= 0, f"{piece!r} is missing, or out of order"
            at = found + len(words)

    def test_an_empty_section_shows_nothing(self) -> None:
        assert "without a word" not in self.render(SAMPLE)

    def test_nothing_of_the_environment_is_shown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret-of-somebody")
        for document in DOCUMENTS.values():
            assert "s3cret" not in self.render(document)

    @pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
    def test_it_is_the_same_every_time(self, result: Result) -> None:
        assert self.report(result) == self.report(result)

    @pytest.mark.parametrize("verdict", ["starved", "fed", "inconclusive"])
    def test_it_opens_with_the_verdict(self, verdict: Any) -> None:
        profile = sample_profile()
        headline = f"{verdict.capitalize()}: 12.3 % of the time."
        profile = with_diagnosis(profile, verdict=verdict, headline=headline)
        report = self.report(profile)
        assert 0 <= report.find("12.3 % of the time.") < report.find("decode")
        assert verdict in report.lower()

    @pytest.mark.parametrize("text", HOSTILE)
    def test_names_of_a_profile_are_shown_verbatim(self, text: str) -> None:
        report = self.report(renamed(sample_profile(), text))
        assert self.shown(text)[:60] in unwrapped(report)

    @pytest.mark.parametrize("text", HOSTILE)
    def test_names_of_a_sweep_are_shown_verbatim(self, text: str) -> None:
        report = self.report(renamed(sample_sweep(), text))
        assert self.shown(text)[:60] in unwrapped(report)

    @pytest.mark.parametrize("text", HOSTILE)
    def test_names_of_a_comparison_are_shown_verbatim(self, text: str) -> None:
        report = self.report(renamed(sample_comparison(), text))
        assert self.shown(text)[:60] in unwrapped(report)

    @pytest.mark.parametrize(
        "text", [text for text in HOSTILE if len(text) < 30 and text.isascii()]
    )
    @pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
    def test_names_are_verbatim_in_every_place(self, result: Result, text: str) -> None:
        harmless = "X" * len(text)
        places = self.report(renamed(result, harmless)).count(harmless)
        assert self.report(renamed(result, text)).count(self.shown(text)) == places > 3

    @pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
    def test_control_characters_do_not_get_through(self, result: Result) -> None:
        report = self.report(renamed(result, CONTROLS))
        assert "red" in report
        assert not any(c in report for c in "\x1b\r\x07\u202e")

    def test_a_stage_of_an_unknown_name_is_shown(self) -> None:
        profile = sample_profile(
            stages={**sample_profile().stages, "decompress": stage_stats(3.0)},
            blame={"decompress": 12.6},
        )
        assert "decompress" in self.report(profile)

    def test_a_stage_of_unknown_length_gets_no_figures(self) -> None:
        unknown = stage_stats(123.0, source="unknown")
        report = self.report(sample_profile(stages={"fetch": unknown}, workers=()))
        assert "123 ms" not in report
        assert "unknown" in report

    def test_missing_stages_come_with_their_reasons(self) -> None:
        report = unwrapped(self.report(sample_profile(missing={"h2d": "no CUDA device"})))
        assert "h2d" in report
        assert "no CUDA device" in report

    def test_a_single_batch(self) -> None:
        profile = sample_profile(
            measured_batches=1, stages={"fetch": stage_stats(30.0, 1)}, workers=sample_workers(1)
        )
        assert "1 batch " in unwrapped(self.report(profile))

    def test_nothing_measured(self) -> None:
        profile = with_diagnosis(
            sample_profile(
                wall_s=0.0,
                stall_s=0.0,
                measured_batches=0,
                first_batch_s=None,
                throughput=Throughput(0.0, 0.0, 0.0, (0.0, 0.0)),
                stages={},
                workers=(),
                blame={},
                ceilings={},
                recommendations=(),
                findings=(),
                source=None,
            ),
            verdict="inconclusive",
            starved_fraction=0.0,
            starved_interval=(0.0, 1.0),
            headline="Inconclusive: no batch was measured after warm-up; run longer.",
            more_batches=10,
        )
        assert "run longer" in self.report(profile)

    def test_figures_of_zero_divide_nothing(self) -> None:
        profile = sample_profile(
            stages={"fetch": stage_stats(0.0), "step": stage_stats(0.0)},
            ceilings={
                "accelerator": replace(sample_profile().ceilings["workers"], samples_per_s=0)
            },
            throughput=Throughput(0.0, 0.0, 0.0, (0.0, 0.0)),
        )
        assert "fetch" in self.report(profile)

    def test_sixty_four_workers_stay_readable(self) -> None:
        few = self.report(sample_profile(workers=sample_workers(8)))
        many = self.report(sample_profile(workers=sample_workers(64, slow=41)))
        assert len(many.splitlines()) <= len(few.splitlines()) + 4
        assert "41" in many

    def test_without_an_accelerator(self) -> None:
        profile = sample_profile(environment=replace(ENVIRONMENT, accelerator=""))
        ceilings = {name: c for name, c in profile.ceilings.items() if name != "accelerator"}
        stages = {name: s for name, s in profile.stages.items() if name != "step"}
        report = self.report(replace(profile, ceilings=ceilings, stages=stages))
        assert "unknown" in report

    @pytest.mark.parametrize("result", [sample_profile(), sample_sweep()], ids=["profile", "sweep"])
    def test_an_emulated_accelerator_is_called_so_and_a_real_one_is_not(
        self, result: Result
    ) -> None:
        real = replace(ENVIRONMENT, accelerator="NVIDIA H100")
        report = self.report(replace(result, environment=real))
        assert self.report(result).count("emulated") >= 3
        assert report.count("emulated") == (1 if isinstance(result, Profile) else 0)  # its reason
        assert "NVIDIA H100" in report

    def test_a_sweep_without_a_trial(self) -> None:
        report = self.report(sample_sweep(trials=(), advice=(), planned=8))
        assert "0 of 8" in report

    def test_an_unfinished_sweep_says_how_to_continue(self) -> None:
        sweep = sample_sweep()
        report = self.report(replace(sweep, trials=sweep.trials[:6], planned=8))
        assert "6 of 8" in report
        assert "--resume" in report

    def test_advice_that_names_no_trial(self) -> None:
        sweep = sample_sweep()
        advice = tuple(replace(one, best_trial=99, recommendation=None) for one in sweep.advice)
        assert "parquet" in self.report(replace(sweep, advice=advice))

    def test_many_data_sets_of_one_format_can_be_distinguished(self) -> None:
        urls = [f"s3://bucket/run-{number:02d}" for number in range(12)]
        trials = tuple(sample_trial("parquet", url=url) for url in urls)
        report = self.report(sample_sweep(trials=trials, advice=(), planned=12))
        assert all(self.shown(url) in report for url in urls)

    def test_a_comparison_opens_with_the_verdict_of_each_run(self) -> None:
        report = unwrapped(self.report(three_runs()))
        assert report.lower().find("slower") < report.lower().find("what was changed")
        assert "decode takes 7.10 ms more a batch." in report
        assert "1.01× the samples/s (95 %: 0.95–1.07)" in report
        assert "These runs are not directly comparable: other data; " in report

    def test_a_data_set_that_makes_its_own_batches(self) -> None:
        profile = fed_profile(
            config=replace(sample_profile().config, batch_size=None, num_workers=0),
            source=DataSource("/data/x.csv", "csv", 1, 0),
        )
        assert "None" not in self.report(profile)
