"""Implement `pipeprof compare`: what differs between runs, and whether it is more than chance."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeprof.cli.compare_jobs import is_job, load_job
from pipeprof.cli.options import SHARE
from pipeprof.cli.output import (
    html_option,
    json_option,
    markdown_option,
    print_json,
    print_markdown,
    refuse_clashes,
    write_page,
)
from pipeprof.cli.saved import locate, refuse_overwrite
from pipeprof.errors import ProfileError, SlowerError, UsageError
from pipeprof.units import format_share

if TYPE_CHECKING:
    from pipeprof.model import Comparison, JobFigures, Profile, SweepResult, TwoRuns

    Run = tuple[Path, Profile]
    Runs = dict[str, Run]

EXAMPLE = """\b
Examples:
  pipeprof compare before.json after.json
  pipeprof compare main.json branch.json --fail-if-slower 10%
  pipeprof compare main.json branch.json --markdown | gh pr comment --body-file -
  pipeprof compare pipeprof-results/sweep-20260131-142501 pipeprof-results/sweep-20260207-093012
  pipeprof compare pipeprof-run-4711 pipeprof-run-4712
"""


@click.command(epilog=EXAMPLE)
@click.argument("files", nargs=-1, metavar="A B [C]...")
@html_option
@markdown_option
@click.option("--fail-if-slower", type=SHARE, default=None, metavar="PERCENT",
              help="Exit with 3 when a later run is slower than the first by more than PERCENT: "
              "the whole 95% interval of the samples/s lies below. Where the interval contains "
              "the limit, exit with 0 and print that the data do not decide.")  # fmt: skip
@json_option
def command(
    files: tuple[str, ...],
    html: Path | None,
    markdown: bool,
    fail_if_slower: float | None,
    as_json: bool,
) -> None:
    """Compare saved profiles, sweeps or jobs, each with the first.

    The report lists changed settings and conditions. It compares throughput, starved fraction,
    stall and each stage, with intervals, and says which differences are more than chance. A sweep
    is represented by its best setting for each data set. A job is the folder with its ranks, and is
    represented by its first rank and by the figures of all. Ranks of one job wait for each other:
    join them by `pipeprof gather`.
    """
    refuse_clashes(markdown, as_json, html)
    paths = _check_paths(files)
    if html is not None:
        for path in paths:
            refuse_overwrite(path, html)
    from pipeprof.report.document.comparison.document import comparison_document

    comparison = _compare(paths)
    document = comparison_document(comparison)
    if html is not None:
        write_page(document, html)
    if as_json:
        print_json(comparison.to_dict())
    elif markdown:
        print_markdown(document)
    elif html is None:
        from pipeprof.report.terminal.render import print_document

        print_document(document)
    if fail_if_slower is not None:
        _raise_if_slower(comparison, fail_if_slower)


def _check_paths(files: tuple[str, ...]) -> list[Path]:
    if len(files) < 2:
        raise UsageError("name at least two saved profiles, sweeps or jobs to compare.")
    paths = [Path(file) if is_job(file) else locate(file, "compare") for file in files]
    for one, other in combinations(paths, 2):
        if os.path.isfile(one) and os.path.isfile(other) and one.samefile(other):
            raise UsageError(f"{one} and {other} are the same file; name another run.")
    return paths


def _compare(paths: list[Path]) -> Comparison:
    from pipeprof.analyze.compare.runs import two_runs
    from pipeprof.model import Comparison, TwoJobs

    jobs: dict[Path, dict[str, JobFigures]] = {}
    first, *later = every = _load_runs(paths, jobs)
    pairs, notes, both = [], [], []
    for path, runs in zip(paths[1:], later, strict=True):
        matched = _pair_runs(first, runs)
        if not matched:
            raise UsageError(
                f"{path} and {paths[0]} have no data set in common: {', '.join(runs)}; "
                f"{', '.join(first)}. Compare the profiles of two of their trials."
            )
        for one, other in matched:
            pairs.append(two_runs(one[1], other[1], (str(one[0]), str(other[0]))))
            if jobs:
                figures = (jobs[paths[0]][one[1].name], jobs[path][other[1].name])
                both.append(TwoJobs(*figures))
        unmatched = len(first) + len(runs) - 2 * len(matched)
        if unmatched:
            notes.append(
                f"{path}: data sets that are not in both sweeps were left out ({unmatched})"
            )
    if _are_of_one_job([profile for runs in every for _, profile in runs.values()]):
        notes.append("these are ranks of one job, which wait for each other: pipeprof gather "
                     "joins them")  # fmt: skip
    return Comparison(tuple(pairs), tuple(both), tuple(notes))


def _are_of_one_job(profiles: Sequence[Profile]) -> bool:
    """Return whether these are different ranks, each with a profile of the same loader."""
    ranks = {profile.environment.rank for profile in profiles} - {None}
    return len(ranks) == len(profiles) and len({profile.name for profile in profiles}) == 1


def _load_runs(paths: list[Path], jobs: dict[Path, dict[str, JobFigures]]) -> list[Runs]:
    """Load the profile of each file; of a sweep, the best profile of each data set; of a job, the
    profiles of its first rank. The figures of each job are put into ``jobs``."""
    from pipeprof.model import Profile
    from pipeprof.store import load

    folders = [is_job(str(path)) for path in paths]
    if all(folders):
        loaded = [load_job(path) for path in paths]
        jobs |= {path: figures for path, (_, figures) in zip(paths, loaded, strict=True)}
        return [runs for runs, _ in loaded]
    if any(folders):
        job, other = paths[folders.index(True)], paths[folders.index(False)]
        raise UsageError(f"{job} is the folder of a job, and {other} is not; compare two jobs.")
    results = [load(path) for path in paths]
    kinds = [isinstance(result, Profile) for result in results]
    if len(set(kinds)) > 1:
        sweep, profile = paths[kinds.index(False)], paths[kinds.index(True)]
        raise UsageError(
            f"{sweep} is a sweep and {profile} a profile; name the profile of one of the sweep's "
            f"trials, such as {sweep.with_name('trial-000.json')}."
        )
    return [
        {"": (path, result)} if isinstance(result, Profile) else _load_best_runs(path, result)
        for path, result in zip(paths, results, strict=True)
    ]


def _load_best_runs(path: Path, sweep: SweepResult) -> Runs:
    """Return data set → the profile of its best trial."""
    from pipeprof.model import Profile
    from pipeprof.report.document.data_sets import own_data_sets
    from pipeprof.store import load

    profiles_by_url: Runs = {}
    for data in own_data_sets(sweep):
        file = path.with_name(Path(data.best.profile).name)
        profile = load(file)
        if not isinstance(profile, Profile):
            raise ProfileError(f"{file} is not the profile of a trial.")
        profiles_by_url[data.url] = file, profile
    if not profiles_by_url:
        raise ProfileError(f"{path} holds no trial yet, so there is nothing to compare.")
    return profiles_by_url


def _pair_runs(first: Runs, later: Runs) -> list[tuple[Run, Run]]:
    """Pair the runs by data set. Two single runs always form a pair."""
    if len(first) == len(later) == 1:
        return list(zip(first.values(), later.values(), strict=True))
    return [(first[url], later[url]) for url in first if url in later]


def _raise_if_slower(comparison: Comparison, limit: float) -> None:
    """Raise `SlowerError` where the data show that a run is slower by more than ``limit``."""
    slower = []
    for pair in comparison.pairs:
        low, high = pair.speed.interval or (0.0, 1.0)
        if high < 1 - limit:
            caveat = f" (not directly comparable: {'; '.join(pair.unlike)})" if pair.unlike else ""
            slower.append(f"{pair.after.file}: {_speed_text(pair)}{caveat}")
        elif low < 1 - limit or pair.speed.interval is None:
            click.echo(
                f"pipeprof: {pair.after.file}: these runs do not show whether it is more than "
                f"{format_share(limit)} slower: {_speed_text(pair)}.",
                err=True,
            )
    if slower:
        raise SlowerError(
            f"{'; '.join(slower)}: slower by more than the allowed {format_share(limit)}."
        )


def _speed_text(pair: TwoRuns) -> str:
    """Format as ``"0.82× the samples/s of before.json (95 %: 0.79–0.86)"``."""
    speed = pair.speed
    if speed.ratio is None or speed.interval is None:
        return "too few batches were measured"
    low, high = speed.interval
    return f"{speed.ratio:.2f}× the samples/s of {pair.before.file} (95 %: {low:.2f}–{high:.2f})"
