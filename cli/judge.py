"""`--fail-if-starved`: a verdict for continuous integration, exit code 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pipeprof.cli.options import SHARE

if TYPE_CHECKING:
    from pipeprof.model import Profile, SweepResult

fail_if_starved_option = click.option(
    "--fail-if-starved",
    type=SHARE,
    default=None,
    metavar="SHARE",
    help="Exit with 3 when the accelerator is starved more; of a sweep, when a data set's best "
    "setting is.",
)


def judge(result: Profile | SweepResult, name: str, limit: float) -> None:
    """Raises `StarvedError` when ``result`` is starved more than ``limit``."""
    from pipeprof.errors import ProfileError, StarvedError
    from pipeprof.model import Profile
    from pipeprof.report.document.data_sets import own_data_sets
    from pipeprof.units import format_share

    if isinstance(result, Profile):
        shares = {name: result.diagnosis.starved_fraction}
    else:
        shares = {data.url: data.best.starved_fraction for data in own_data_sets(result)}
    if not shares:
        raise ProfileError(f"{name} holds no trial yet, so nothing can be judged.")
    worst, share = max(shares.items(), key=lambda item: item[1])
    if share > limit:
        at = "" if isinstance(result, Profile) else " at its best setting"
        raise StarvedError(
            f"{worst}{at}: starved {format_share(share)} of the time, more than the "
            f"{format_share(limit)} allowed."
        )
