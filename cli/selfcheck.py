"""`pipeprof selfcheck`: is what pipeprof says right on this machine, and what does it cost?"""

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
@click.option("--quick", is_flag=True, help="Shorter runs, and not every way to start workers.")
@click.option("--only", multiple=True, metavar="NAME",
              help="Run this part of the check alone; may be given several times.")  # fmt: skip
@json_option
def command(quick: bool, only: tuple[str, ...], as_json: bool) -> int:
    """Run loaders whose truth is known, and compare.

    They sleep, compute, read, crowd the cores or send many small tensors, and clock all that
    themselves. Each stage must come out within 3 % of a batch's wall time or 0.2 ms, whichever is
    larger. The verdict and the stage to blame must be right, and the blame must add up to the
    stall within 1 %. The profiler's overhead is measured as well. It takes about a minute, and
    exits with 1 when anything is beyond its bar.
    """
    from pipeprof.cli.selfcheck_page import print_outcome, selfcheck_document
    from pipeprof.report.terminal.render import print_document
    from pipeprof.selfcheck.run import check

    found = check((lambda _: None) if as_json else print_outcome, quick, only)
    if as_json:
        print_json(found.to_dict())
    else:
        print_document(selfcheck_document(found))
    return 0 if found.passed else 1
