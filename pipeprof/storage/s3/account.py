"""Read how a bucket is reached: endpoint, region and credentials.

Environment, AWS profile and storage options are read as botocore reads them. The region of a
bucket of Amazon is asked of S3 itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from pipeprof.storage.errors import ErrorKind, Failure, classify, raise_failures

_DEFAULT_REGION = "us-east-1"
_AMAZON = "https://s3.amazonaws.com"
_TIMEOUT_S = 5
_IRRELEVANT_OPTIONS = frozenset(
    ("default_block_size", "default_fill_cache", "default_cache_type", "use_listings_cache",
     "listings_expiry_time", "max_paths", "cache_regions", "fixed_upload_size",
     "local_expiry_check", "skip_instance_cache", "asynchronous")
)  # fmt: skip
"""Options of s3fs that change nothing about how pipeprof lists and reads."""
_KNOWN_OPTIONS = frozenset(
    ("anon", "endpoint_url", "key", "secret", "token", "username", "password", "use_ssl",
     "requester_pays", "profile", "client_kwargs", "config_kwargs", "max_concurrency")
)  # fmt: skip
_KNOWN_CLIENT_KWARGS = frozenset(
    ("region_name", "endpoint_url", "verify", "use_ssl", "aws_access_key_id",
     "aws_secret_access_key", "aws_session_token")
)  # fmt: skip
_KNOWN_CONFIG_KWARGS = frozenset(
    ("region_name", "connect_timeout", "read_timeout", "retries", "s3", "max_pool_connections",
     "response_checksum_validation", "request_checksum_calculation", "user_agent_extra",
     "tcp_keepalive")
)  # fmt: skip


@dataclass(frozen=True)
class Account:
    """How a bucket is reached. It may hold secrets, and so is never sent to another process."""

    options: Mapping[str, Any] = field(repr=False)
    """The storage options of the user, for s3fs."""
    credentials: Any = field(repr=False)
    """The credentials object of botocore, which renews itself; None for anonymous access."""
    endpoint: str | None
    """The URL of the server; None for Amazon's own server of the region."""
    region: str | None
    """The region in the settings; None where there is none."""
    path_style: bool
    """Whether the bucket is named in the path of a request, not in its host."""
    ca_file: str | None
    """A file of trusted certificate authorities; None for those of the system."""
    verify: bool
    """Whether certificates are verified."""
    requester_pays: bool
    """Whether requests say that their sender pays for them."""
    connect_timeout_s: float
    """The longest time to open a connection."""
    read_timeout_s: float
    """The longest time without a byte of the answer."""
    attempts: int
    """The most attempts of one request, the first included."""
    max_concurrency: int
    """The most requests of one process at the same time."""
    s3fs_only: str
    """The name of a setting that only s3fs supports; empty where there is none."""
    check_answers: bool = True
    """Whether the checksums that a server sends without being asked must match."""


def read_account(options: Mapping[str, Any]) -> Account:
    """Read the account from this process's environment and the storage options of s3fs. Raises
    `Failure`."""
    with raise_failures(classify, "the configuration of AWS was not read"):
        return _read_account(options)


def _read_account(options: Mapping[str, Any]) -> Account:
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
        max_concurrency=int(options.get("max_concurrency") or 16),
        s3fs_only=_s3fs_only(session, options, client, config, s3),
    )


def _credentials(session: Any, options: Mapping[str, Any], client: Mapping[str, Any]) -> Any:
    key = options.get("key") or options.get("username") or client.get("aws_access_key_id")
    secret = options.get("secret") or options.get("password")
    secret = secret or client.get("aws_secret_access_key")
    if key and secret:
        from botocore.credentials import Credentials

        return Credentials(key, secret, options.get("token") or client.get("aws_session_token"))
    credentials = session.get_credentials()
    if credentials is None:
        raise Failure(ErrorKind.NO_CREDENTIALS)
    return credentials


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = config.get(name)
    return section if isinstance(section, dict) else {}


def _endpoint(session: Any) -> str | None:
    """Return the configured endpoint, in botocore's order: environment, then profile."""
    if str(session.get_config_variable("ignore_configured_endpoint_urls")).lower() == "true":
        return None
    profile = session.get_scoped_config()
    services = _section(session.full_config.get("services") or {}, profile.get("services", ""))
    endpoint = (
        os.environ.get("AWS_ENDPOINT_URL_S3")
        or os.environ.get("AWS_ENDPOINT_URL")
        or _section(services, "s3").get("endpoint_url")
        or profile.get("endpoint_url")
    )
    return str(endpoint) if endpoint else None


def _attempts(session: Any, config: Mapping[str, Any]) -> int:
    """Return the most attempts: by the options, AWS_MAX_ATTEMPTS or the profile, else 5."""
    retries = config.get("retries") or {}
    if "total_max_attempts" in retries:
        return max(1, int(retries["total_max_attempts"]))
    if "max_attempts" in retries:  # botocore does not count the first attempt here
        return int(retries["max_attempts"]) + 1
    return max(1, session.get_config_variable("max_attempts") or 5)


def _s3fs_only(
    session: Any,
    options: Mapping[str, Any],
    client: Mapping[str, Any],
    config: Mapping[str, Any],
    s3: Mapping[str, Any],
) -> str:
    """Return the first setting that the other clients do not know, or an empty string."""
    unknown = [
        *(name for name, value in options.items()
          if value and name not in _KNOWN_OPTIONS | _IRRELEVANT_OPTIONS),
        *(name for name in client if name not in _KNOWN_CLIENT_KWARGS),
        *(name for name in config if name not in _KNOWN_CONFIG_KWARGS),
        *(name for name in s3 if name == "use_accelerate_endpoint" and s3[name]),
        *(name for name in ("use_fips_endpoint", "use_dualstack_endpoint")
          if str(session.get_config_variable(name)).lower() == "true"),
    ]  # fmt: skip
    return unknown[0] if unknown else ""


def region_of(bucket: str, account: Account) -> str:
    """Return the region that requests are signed for.

    On Amazon it is the region of the bucket, which may differ from the configured one. With an
    endpoint in the settings it is the configured region.
    """
    if account.endpoint:
        return account.region or _DEFAULT_REGION
    return ask_region(bucket) or account.region or _DEFAULT_REGION


@cache
def ask_region(bucket: str, server: str = _AMAZON) -> str | None:
    """Return the region of a bucket of Amazon; None when the server cannot be reached. S3 sends it
    as a header of each answer, refusals and redirections included."""
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
