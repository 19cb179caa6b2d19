"""`--read` sets how bytes are read from storage."""

import click
import pytest

from pipeprof.cli.app import run
from pipeprof.cli.options import read_options
from pipeprof.model import ReadOptions

MIB = 2**20


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("depth=8", ReadOptions(queue_depth=8)),
        ("request=1MiB,block=2MiB", ReadOptions(request_bytes=MIB, block_bytes=2 * MIB)),
        ("split=32MiB, direct", ReadOptions(split_bytes=32 * MIB, direct=True)),
        ("ahead=no,direct=no", ReadOptions(read_ahead=False)),
        ("split=8MiB,block=4MiB,request=512KiB,depth=4,ahead", ReadOptions()),
    ],
)
def test_what_is_named_is_set_and_the_rest_left_as_it_is(text, options):
    assert read_options(text) == options


@pytest.mark.parametrize("text", ["", "depht=3", "depth", "depth=0", "request=0", "direct=maybe"])
def test_a_mistake_is_said(text):
    with pytest.raises(click.BadParameter, match=r"is not|too small|needs"):
        read_options(text)


def test_the_command_refuses_it_before_it_reads_anything(capsys):
    assert run(["sweep", "nowhere", "--read", "depht=3"]) == 2
    assert "'depht=3' is not known; write any of split=8MiB" in capsys.readouterr().err
