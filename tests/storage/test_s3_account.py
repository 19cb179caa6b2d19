"""The account is read from storage options, environment and AWS profiles, in this order."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pipeprof.storage.errors import ErrorKind, Failure
from pipeprof.storage.s3.account import Account, read_account

CONFIG = """
[default]
region = eu-west-1
[profile mine]
region = eu-north-1
endpoint_url = http://of-the-profile
services = ours
max_attempts = 7
ca_bundle = /of/the/profile.pem
s3 =
  addressing_style = virtual
aws_access_key_id = key-of-the-profile
aws_secret_access_key = secret-of-the-profile
aws_session_token = token-of-the-profile
[profile quick]
s3 =
  use_accelerate_endpoint = true
[services ours]
s3 =
  endpoint_url = http://of-the-service
"""


@pytest.fixture(autouse=True)
def nothing_but_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    (tmp_path / "config").write_text(CONFIG)
    for name, value in {
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)


def read(**options: Any) -> Account:
    return read_account({"key": "key", "secret": "secret", **options})


def test_endpoints_from_the_strongest_to_the_weakest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read().endpoint is None
    monkeypatch.setenv("AWS_PROFILE", "mine")
    assert read().endpoint == "http://of-the-service"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://of-all")
    assert read().endpoint == "http://of-all"
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://of-s3")
    assert read().endpoint == "http://of-s3"
    assert read(client_kwargs={"endpoint_url": "http://given"}).endpoint == "http://given"
    assert read(endpoint_url="http://told").endpoint == "http://told"
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    assert read().endpoint is None


def test_credentials_of_options_before_the_environment_before_the_profile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def keys(account: Account) -> tuple[str, str, str | None]:
        return tuple(account.credentials.get_frozen_credentials())[:3]

    of_profile = ("key-of-the-profile", "secret-of-the-profile", "token-of-the-profile")
    assert keys(read_account({"profile": "mine"})) == of_profile
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "env-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "env-secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "env-token")
    assert keys(read_account({})) == ("env-key", "env-secret", "env-token")
    assert keys(read()) == ("key", "secret", None), "the token belongs to other credentials"
    assert keys(read(token="token")) == ("key", "secret", "token")
    assert read_account({"anon": True}).credentials is None


def test_no_credentials_and_no_such_profile_are_distinguished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for options, kind in (
        ({}, ErrorKind.NO_CREDENTIALS),
        ({"profile": "nobody"}, ErrorKind.NO_PROFILE),
    ):
        with pytest.raises(Failure) as caught:
            read_account(options)
        assert caught.value.kind is kind


def test_region_and_style_and_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (read().region, read().path_style, read().ca_file) == ("eu-west-1", False, None)
    mine = read(profile="mine")
    assert (mine.region, mine.path_style) == ("eu-north-1", False)
    assert mine.ca_file == "/of/the/profile.pem"
    monkeypatch.setenv("AWS_CA_BUNDLE", "/of/the/environment.pem")
    assert read().ca_file == "/of/the/environment.pem"
    assert not read(client_kwargs={"verify": False}).verify
    assert read(endpoint_url="http://minio:9000").path_style, "as botocore does it"
    assert read(config_kwargs={"s3": {"addressing_style": "path"}}).path_style
    assert read(client_kwargs={"region_name": "us-west-2"}).region == "us-west-2"
    monkeypatch.setenv("AWS_REGION", "ap-south-1")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    assert read().region == "ap-south-1"


def test_attempts_and_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (read().attempts, read(profile="mine").attempts) == (5, 7)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "3")
    assert read().attempts == 3
    assert read(config_kwargs={"retries": {"total_max_attempts": 2}}).attempts == 2
    assert read(config_kwargs={"retries": {"max_attempts": 2}}).attempts == 3, "and the first"
    assert read(config_kwargs={"read_timeout": 0.5}).read_timeout_s == 0.5
    assert read(max_concurrency=3).max_concurrency == 3


@pytest.mark.parametrize(
    ("options", "beyond"),
    [
        ({"requester_pays": True, "default_block_size": 5, "max_concurrency": 4}, ""),
        ({"version_aware": True}, "version_aware"),
        ({"version_aware": False}, ""),
        ({"s3_additional_kwargs": {"SSECustomerKey": "x"}}, "s3_additional_kwargs"),
        ({"config_kwargs": {"proxies": {"https": "x"}}}, "proxies"),
        ({"profile": "quick"}, "use_accelerate_endpoint"),
    ],
)
def test_what_only_s3fs_serves_is_named(options: dict[str, Any], beyond: str) -> None:
    assert read(**options).s3fs_only == beyond


def test_an_account_shows_no_secret() -> None:
    assert "secret" not in repr(read(token="secret-too"))
