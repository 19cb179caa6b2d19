"""Implement `pipeprof selfcheck`: the accuracy and the overhead of pipeprof on this machine."""

from __future__ import annotations

import click

from pipeprof.cli.output import json_option, print_json

EXAMPLE = """\b
Examples:
  pipeprof selfcheck
  pipeprof selfcheck --quick
  pipeprof selfcheck --only contention --only overhead
  pipeprof selfcheck --json > selfcheck.json
"""


@click.command(epilog=EXAMPLE)
@click.option(
    "--quick", is_flag=True, help="Make shorter runs, and skip some start methods of workers."
)
@click.option("--only", multiple=True, metavar="NAME",
              help="Run only this part of the check; may be repeated.")  # fmt: skip
@json_option
def command(quick: bool, only: tuple[str, ...], as_json: bool) -> int:
    """Profile loaders that time themselves, and compare both measurements.

    The loaders sleep, compute, read, use more workers than cores, or send many small tensors. The
    error of each stage may be 3 % of a batch's wall time or 0.2 ms, whichever is larger. The
    verdict and the blamed stage must be correct, and the blame must sum to the stall within 1 %.
    The profiler's overhead is measured as well. The check takes about a minute, and exits with 1
    when a limit is exceeded.
    """
    from pipeprof.cli.selfcheck_page import print_outcome, selfcheck_document
    from pipeprof.report.terminal.render import print_document
    from pipeprof.selfcheck.run import check

    result = check((lambda _: None) if as_json else print_outcome, quick, only)
    if as_json:
        print_json(result.to_dict())
    else:
        print_document(selfcheck_document(result))
    return 0 if result.passed else 1
