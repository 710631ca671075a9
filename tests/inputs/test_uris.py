"""Tables at URIs: an S3-compatible server on this machine, and stores that cannot be reached."""

import os
import re
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from unittest import mock
from urllib.parse import quote

import pandas as pd
import pytest
from raising import raises

import sparse_eval as se
from sparse_eval.datasets import load
from sparse_eval.errors import InvalidFileError
from sparse_eval.inputs.files import is_uri

#: Arrow waits for metadata of the cloud, which no test should.
KEYS = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_MAX_ATTEMPTS": "1",
}

EVENTS = pd.DataFrame({"user": ["a", "a", "b"], "item": ["x", "y", "x"], "value": [1.0, 2.0, 3.0]})
LISTS = pd.DataFrame({"user": ["a", "b"], "item": ["y", "x"], "rank": [1, 1]})


@pytest.fixture(scope="module", autouse=True)
def _credentials():
    with mock.patch.dict(os.environ, KEYS):
        yield


@pytest.fixture(scope="module")
def bucket():
    """Return a function that makes the URI of a path in a bucket."""
    server_of = pytest.importorskip(
        "moto.server", reason="moto is not installed"
    ).ThreadedMotoServer
    import boto3

    server = server_of(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    store = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1")
    store.create_bucket(Bucket="logs")
    for name, content in {
        "day/1.parquet": EVENTS.iloc[:2].to_parquet(index=False),
        "day/2.parquet": EVENTS.iloc[2:].to_parquet(index=False),
        "day/_SUCCESS": b"",
        "whole.csv": EVENTS.to_csv(index=False).encode(),
        "by/year=2026/a.csv": EVENTS.to_csv(index=False).encode(),
        "lists.parquet": LISTS.to_parquet(index=False),
        "notes/read.me": b"nothing",
    }.items():
        store.put_object(Bucket="logs", Key=name, Body=content)
    yield (
        lambda path: (
            f"s3://logs/{path}?region=us-east-1&scheme=http&endpoint_override={quote(f'{host}:{port}')}"
        )
    )
    server.stop()


@pytest.mark.long
@pytest.mark.parametrize("path", ["day", "whole.csv", "by"])
def test_reads_files_and_folders_of_s3(bucket, path):
    found = load(bucket(path)).to_frame()
    pd.testing.assert_frame_equal(found, load(EVENTS).to_frame())


@pytest.mark.long
def test_evaluates_tables_of_s3(bucket):
    expected = se.evaluate(LISTS, EVENTS, ["mrr", "ndcg@2"])
    for truth in ("day", "whole.csv"):
        found = se.evaluate(bucket("lists.parquet"), bucket(truth), ["mrr", "ndcg@2"])
        assert found.mean() == expected.mean()


@pytest.mark.long
@pytest.mark.parametrize("path", ["nothing.csv", "notes"])
def test_refuses_what_is_not_there(bucket, path):
    with pytest.raises(InvalidFileError, match=re.escape(bucket(path))):
        load(bucket(path))


class _Refusing(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(403)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_):
        """Print nothing."""


@pytest.mark.long
def test_names_the_uri_if_the_store_refuses_the_credentials():
    server = HTTPServer(("127.0.0.1", 0), _Refusing)
    Thread(target=server.serve_forever, daemon=True).start()
    place = quote(f"127.0.0.1:{server.server_port}")
    uri = f"s3://logs/a.csv?region=us-east-1&scheme=http&endpoint_override={place}"
    with pytest.raises(InvalidFileError) as caught:
        load(uri)
    server.shutdown()
    server.server_close()
    assert uri in str(caught.value)
    assert "ACCESS_DENIED" in str(caught.value)


@pytest.mark.parametrize("uri", ["http://host/a.csv", "nothing://a.csv", "s3:///a.csv"])
def test_refuses_schemes_that_arrow_lacks(uri):
    assert is_uri(uri)
    with raises(InvalidFileError, path=uri):
        load(uri)


def test_a_uri_of_google_is_recognized():
    assert is_uri("gs://bucket/events/a.parquet")
    assert not is_uri("C:/events/a.parquet")
