"""URLs are redacted, classified and joined."""

import pytest

from pipeprof.storage.urls import is_local, join, local_path, redact


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("/data/x", "/data/x"),
        ("s3://bucket/a/b.csv", "s3://bucket/a/b.csv"),
        ("s3://KEY:SECRET@bucket/a", "s3://bucket/a"),
        ("polars::s3://KEY:SECRET@bucket/a", "polars::s3://bucket/a"),
        ("filecache::s3://KEY:SECRET@bucket/a?token=abc", "filecache::s3://bucket/a"),
        ("/data/a::b", "/data/a::b"),
        ("https://user@host:8080/a?X-Amz-Signature=abc#frag", "https://host:8080/a"),
    ],
)
def test_a_redacted_url_holds_no_secret(url, told):
    assert redact(url) == told


def test_local_and_remote():
    assert is_local("data/x")
    assert is_local("file:///data/x")
    assert not is_local("s3://bucket")
    assert local_path("file:///data/x") == "/data/x"
    assert local_path("~/x").startswith("/")


def test_joining():
    assert join("s3://bucket/a/", "x") == join("s3://bucket/a", "x") == "s3://bucket/a/x"
    assert join("/", "x") == "/x"
