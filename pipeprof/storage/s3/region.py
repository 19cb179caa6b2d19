"""Where a bucket of Amazon's is: the store itself tells, whoever asks."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from pipeprof.storage.s3.account import Account

_ANYWHERE = "us-east-1"
_AMAZON = "https://s3.amazonaws.com"
_TIMEOUT_S = 5


def region_of(bucket: str, account: Account) -> str:
    """As it must be signed for: of a server of one's own what the settings say, of Amazon's where
    the bucket is, which may be another region than the profile's."""
    if account.endpoint:
        return account.region or _ANYWHERE
    return ask_region(bucket) or account.region or _ANYWHERE


@cache
def ask_region(bucket: str, server: str = _AMAZON) -> str | None:
    """By the header that S3 sends with each answer, refusals and redirections included."""
    with suppress(OSError):
        try:
            with urlopen(
                Request(f"{server}/{bucket}", method="HEAD"), timeout=_TIMEOUT_S
            ) as answer:
                return str(answer.headers["x-amz-bucket-region"] or "") or None
        except HTTPError as error:
            error.close()
            return str(error.headers["x-amz-bucket-region"] or "") or None
    return None
