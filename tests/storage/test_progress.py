"""Long listings report their progress."""

from __future__ import annotations

from pipeprof.storage.progress import Listing, listing_watched


def test_a_listing_is_reported_once_a_second_after_the_first() -> None:
    told: list[tuple[str, int]] = []
    clock = [0.0]
    with listing_watched(lambda url, count: told.append((url, count))):
        listing = Listing("s3://bucket", lambda: clock[0])
        for second, count in ((0.2, 1_000), (0.9, 2_000), (1.1, 3_000), (1.9, 4_000), (2.2, 5_000)):
            clock[0] = second
            listing.found(count)
    clock[0] = 9.0
    listing.found(9_000)
    assert told == [("s3://bucket", 3_000), ("s3://bucket", 5_000)]
