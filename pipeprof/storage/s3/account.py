"""What a user has to reach a bucket: environment, profile and storage options, read as botocore
reads them; and where a bucket of Amazon's is, as the store itself tells."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from pipeprof.storage.errors import ErrorKind, Failure, raising_failures, understood

_DEFAULT_REGION = "us-east-1"
_AMAZON = "https://s3.amazonaws.com"
_TIMEOUT_S = 5
_IN_WRITING = frozenset(
    ("default_block_size", "default_fill_cache", "default_cache_type", "use_listings_cache",
     "listings_expiry_time", "max_paths", "cache_regions", "fixed_upload_size",
     "local_expiry_check", "skip_instance_cache", "asynchronous")
)  # fmt: skip
"""Options of s3fs that change nothing about a listing or a read of ours."""
_KNOWN = frozenset(
    ("anon", "endpoint_url", "key", "secret", "token", "username", "password", "use_ssl",
     "requester_pays", "profile", "client_kwargs", "config_kwargs", "max_concurrency")
)  # fmt: skip
_KNOWN_OF_CLIENTS = frozenset(
    ("region_name", "endpoint_url", "verify", "use_ssl", "aws_access_key_id",
     "aws_secret_access_key", "aws_session_token")
)  # fmt: skip
_KNOWN_OF_CONFIG = frozenset(
    ("region_name", "connect_timeout", "read_timeout", "retries", "s3", "max_pool_connections",
     "response_checksum_validation", "request_checksum_calculation", "user_agent_extra",
     "tcp_keepalive")
)  # fmt: skip


@dataclass(frozen=True)
class Account:
    """How a bucket is reached. It may hold secrets, and so stays in its process."""

    options: Mapping[str, Any] = field(repr=False)
    """As the user gave them, for s3fs."""
    credentials: Any = field(repr=False)
    """botocore's, which renew themselves; ``None``: anonymous."""
    endpoint: str | None
    """``None``: Amazon's own, of the region."""
    region: str | None
    path_style: bool
    """The bucket's name in the path, not before the host's."""
    ca_file: str | None
    """Certificate authorities to trust; ``None``: those of the system."""
    verify: bool
    """Certificates at all."""
    requester_pays: bool
    connect_timeout_s: float
    read_timeout_s: float
    """Without a byte."""
    attempts: int
    in_flight: int
    """Requests of one process at the same time."""
    beyond: str
    """A setting that only s3fs serves, or ``""``."""
    check_answers: bool = True
    """Whether checksums that a server sends unasked are to be right."""


def read_account(options: Mapping[str, Any]) -> Account:
    """Of this process's environment, now. ``options``: those of s3fs. Raises `Failure`."""
    with raising_failures(understood, "the configuration of AWS was not read"):
        return _read(options)


def _read(options: Mapping[str, Any]) -> Account:
    from botocore.session import Session

    client, config = dict(options.get("client_kwargs") or {}), options.get("config_kwargs") or {}
    session = Session(profile=options.get("profile"))
    profile = session.get_scoped_config()
    s3 = {**_section(profile, "s3"), **(config.get("s3") or {})}
    endpoint = options.get("endpoint_url") or client.get("endpoint_url") or _endpoint(session)
    verify = client.get("verify")
    if verify is None:
        verify = session.get_config_variable("ca_bundle") or True
    region = client.get("region_name") or config.get("region_name")
    return Account(
        options=options,
        credentials=None if options.get("anon") else _credentials(session, options, client),
        endpoint=endpoint,
        region=region or session.get_config_variable("region") or os.environ.get("AWS_REGION"),
        path_style=s3.get("addressing_style") == "path"
        or bool(endpoint and s3.get("addressing_style") != "virtual"),
        ca_file=verify if isinstance(verify, str) else None,
        verify=verify is not False,
        requester_pays=bool(options.get("requester_pays")),
        connect_timeout_s=float(config.get("connect_timeout", 5)),
        read_timeout_s=float(config.get("read_timeout", 15)),
        attempts=_attempts(session, config),
        in_flight=int(options.get("max_concurrency") or 16),
        beyond=_beyond(session, options, client, config, s3),
    )


def _credentials(session: Any, options: Mapping[str, Any], client: Mapping[str, Any]) -> Any:
    key = options.get("key") or options.get("username") or client.get("aws_access_key_id")
    secret = options.get("secret") or options.get("password")
    secret = secret or client.get("aws_secret_access_key")
    if key and secret:
        from botocore.credentials import Credentials

        return Credentials(key, secret, options.get("token") or client.get("aws_session_token"))
    found = session.get_credentials()
    if found is None:
        raise Failure(ErrorKind.NO_CREDENTIALS)
    return found


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = config.get(name)
    return found if isinstance(found, dict) else {}


def _endpoint(session: Any) -> str | None:
    """In botocore's order: environment, then profile, each first for S3 alone."""
    if str(session.get_config_variable("ignore_configured_endpoint_urls")).lower() == "true":
        return None
    profile = session.get_scoped_config()
    services = _section(session.full_config.get("services") or {}, profile.get("services", ""))
    found = (
        os.environ.get("AWS_ENDPOINT_URL_S3")
        or os.environ.get("AWS_ENDPOINT_URL")
        or _section(services, "s3").get("endpoint_url")
        or profile.get("endpoint_url")
    )
    return str(found) if found else None


def _attempts(session: Any, config: Mapping[str, Any]) -> int:
    """What AWS_MAX_ATTEMPTS, the profile's max_attempts or the options say; else 5."""
    given = config.get("retries") or {}
    if "total_max_attempts" in given:
        return max(1, int(given["total_max_attempts"]))
    if "max_attempts" in given:  # there without the first
        return int(given["max_attempts"]) + 1
    return max(1, session.get_config_variable("max_attempts") or 5)


def _beyond(
    session: Any,
    options: Mapping[str, Any],
    client: Mapping[str, Any],
    config: Mapping[str, Any],
    s3: Mapping[str, Any],
) -> str:
    unknown = [
        *(name for name in options if name not in _KNOWN | _IN_WRITING and options[name]),
        *(name for name in client if name not in _KNOWN_OF_CLIENTS),
        *(name for name in config if name not in _KNOWN_OF_CONFIG),
        *(name for name in s3 if name == "use_accelerate_endpoint" and s3[name]),
        *(name for name in ("use_fips_endpoint", "use_dualstack_endpoint")
          if str(session.get_config_variable(name)).lower() == "true"),
    ]  # fmt: skip
    return unknown[0] if unknown else ""


def region_of(bucket: str, account: Account) -> str:
    """As it must be signed for: of a server of one's own what the settings say, of Amazon's where
    the bucket is, which may be another region than the profile's."""
    if account.endpoint:
        return account.region or _DEFAULT_REGION
    return ask_region(bucket) or account.region or _DEFAULT_REGION


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
