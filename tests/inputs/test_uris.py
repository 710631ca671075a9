"""Tables at URIs: servers of S3 and Azure on this machine, and stores that cannot be reached."""

import base64
import hmac
import os
import re
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from unittest import mock
from urllib.parse import quote, urlencode

import pandas as pd
import pytest
from pyarrow import fs
from raising import raises

import sparse_eval as se
from sparse_eval.datasets import load
from sparse_eval.errors import InvalidFileError
from sparse_eval.inputs.input_files import is_uri

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


FILES = {
    "day/1.parquet": EVENTS.iloc[:2].to_parquet(index=False),
    "day/2.parquet": EVENTS.iloc[2:].to_parquet(index=False),
    "day/_SUCCESS": b"",
    "whole.csv": EVENTS.to_csv(index=False).encode(),
    "by/year=2026/a.csv": EVENTS.to_csv(index=False).encode(),
    "lists.parquet": LISTS.to_parquet(index=False),
    "notes/read.me": b"nothing",
}


@contextmanager
def s3():
    """Serve the files with moto, and yield a function that makes the URI of a path."""
    server_of = pytest.importorskip(
        "moto.server", reason="moto is not installed"
    ).ThreadedMotoServer
    import boto3

    server = server_of(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    store = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1")
    store.create_bucket(Bucket="logs")
    for name, content in FILES.items():
        store.put_object(Bucket="logs", Key=name, Body=content)
    options = f"region=us-east-1&scheme=http&endpoint_override={quote(f'{host}:{port}')}"
    yield lambda path: f"s3://logs/{path}?{options}"
    server.stop()


#: The published account of Azure's emulator.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


def signature():
    """Return a shared access signature for the account, which may do everything for an hour."""
    until = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    version, protocols, permissions = "2021-06-08", "https,http", "rwdlac"
    text = "\n".join([ACCOUNT, permissions, "b", "sco", "", until, "", protocols, version, "", ""])
    digest = hmac.digest(base64.b64decode(ACCOUNT_KEY), text.encode(), "sha256")
    return urlencode(
        {"sv": version, "ss": "b", "srt": "sco", "sp": permissions, "se": until,
         "spr": protocols, "sig": base64.b64encode(digest).decode()}
    )  # fmt: skip


@contextmanager
def abfs():
    """Serve the files with Azurite, and yield a function that makes the URI of a path."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("Azurite is not installed: npm install --global azurite")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    words = ("--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--blobPort")
    server = subprocess.Popen([program, *words, place.partition(":")[2]])
    try:
        for _ in range(100):
            with suppress(OSError), socket.create_connection(place.split(":")):
                break
            time.sleep(0.1)
        hosts = dict.fromkeys(("blob_storage_authority", "dfs_storage_authority"), place)
        schemes = dict.fromkeys(("blob_storage_scheme", "dfs_storage_scheme"), "http")
        store = fs.AzureFileSystem(ACCOUNT, account_key=ACCOUNT_KEY, **hosts, **schemes)
        store.create_dir("logs")
        for name, content in FILES.items():
            with store.open_output_stream(f"logs/{name}") as file:
                file.write(content)
        options = f"enable_tls=false&{signature()}"
        yield lambda path: f"abfs://{ACCOUNT}@{place}/logs/{path}?{options}"
    finally:
        server.kill()  # it would wait for idle connections
        server.wait()


@pytest.fixture(scope="module", params=[s3, abfs])
def bucket(request):
    """Return a function that makes the URI of a path in a bucket."""
    with request.param() as uri_of:
        yield uri_of


@pytest.mark.long
@pytest.mark.parametrize("path", ["day", "whole.csv", "by"])
def test_reads_files_and_folders(bucket, path):
    found = load(bucket(path)).to_frame()
    pd.testing.assert_frame_equal(found, load(EVENTS).to_frame())


@pytest.mark.long
def test_evaluates_tables(bucket):
    expected = se.evaluate(LISTS, EVENTS, ["mrr", "ndcg@2"])
    for truth in ("day", "whole.csv"):
        found = se.evaluate(bucket("lists.parquet"), bucket(truth), ["mrr", "ndcg@2"])
        assert found.mean() == expected.mean()


@pytest.mark.long
@pytest.mark.parametrize("path", ["nothing.csv", "notes"])
def test_refuses_what_is_not_there(bucket, path):
    with pytest.raises(InvalidFileError, match=re.escape(bucket(path).partition("?")[0])):
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
    assert str(caught.value).startswith("s3://logs/a.csv: ")
    assert "ACCESS_DENIED" in str(caught.value)


@pytest.mark.parametrize("uri", ["http://host/a.csv", "nothing://a.csv", "s3:///a.csv"])
def test_refuses_schemes_that_arrow_lacks(uri):
    assert is_uri(uri)
    with raises(InvalidFileError, path=uri):
        load(uri)


def test_a_uri_of_google_is_recognized():
    assert is_uri("gs://bucket/events/a.parquet")
    assert not is_uri("C:/events/a.parquet")
