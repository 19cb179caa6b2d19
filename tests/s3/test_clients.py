"""Each client of S3 fulfils the same contract."""

from __future__ import annotations

import pytest

from tests.contracts.s3_client_contract import S3ClientContract
from tests.s3.conftest import needs_obstore

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")


@needs_obstore
class TestObstore(S3ClientContract):
    name = "obstore"


class TestPyarrow(S3ClientContract):
    name = "pyarrow"


class TestS3fs(S3ClientContract):
    name = "s3fs"
