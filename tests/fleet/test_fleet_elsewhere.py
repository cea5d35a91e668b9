"""The same study on a Dask cluster that loses a worker, and through an object store."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import numpy as np
import pytest
from benchmarks.simulated_fleet import name_of

from taufit.core.compute.engines import open_engine
from taufit.fleet import study_fleet


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two workers, started as users start them; yields the address and workers."""
    pytest.importorskip("distributed")
    dask = Path(sys.executable).with_name("dask")
    where = tmp_path / "scheduler.json"
    env = {**os.environ, "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": env}
    scheduler = subprocess.Popen(
        [dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
         "--scheduler-file", where], **quiet,
    )  # fmt: skip
    workers = [
        subprocess.Popen(
            [dask, "worker", "--scheduler-file", where, "--host", "127.0.0.1", "--no-nanny",
             "--no-dashboard", "--nthreads", "1", "--local-directory", tmp_path], **quiet,
        )
        for _ in range(2)
    ]  # fmt: skip
    try:
        end = time.monotonic() + 120.0
        # The file is there before its text is.
        found = None
        while found is None and time.monotonic() < end:
            time.sleep(0.1)
            found = re.search(r"tcp://[\d.:]+\d", where.read_text() if where.exists() else "")
        assert found is not None, "the scheduler never said where it is"
        address = found[0]
        from distributed import Client

        with Client(address, timeout=60) as client:
            client.wait_for_workers(2, timeout=120)
        yield address, workers
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


def models(result):
    return {one.robot: one.model.values for one in result.robots}


def test_a_cluster_finds_the_same_although_a_worker_is_killed(arm, poisoned, cluster):
    address, workers = cluster
    here = study_fleet(arm, str(poisoned))
    killed = []

    def watch(done, _):
        if done >= 2 and not killed:
            workers[0].send_signal(signal.SIGKILL)
            killed.append(workers[0].pid)

    with open_engine(scheduler=address) as engine:
        there = study_fleet(arm, str(poisoned), engine=engine, watch=watch)

    assert killed and len(there.incidents) == 1 and "lost" in there.incidents[0]
    assert [(one.file, one.reason) for one in there.failed] == [
        (one.file, one.reason) for one in here.failed
    ]
    assert {one.file for one in there.failed} == {
        f"{name_of(k)}/2026-03-02.parquet" for k in (0, 1)
    }
    for name, values in models(here).items():
        np.testing.assert_allclose(models(there)[name], values, rtol=1e-10, atol=1e-10)


def test_a_sum_made_on_a_cluster_has_the_digits_of_one_made_here(cluster):
    things, keys = [(k,) for k in range(40)], list(range(40))
    with open_engine(scheduler=cluster[0]) as engine, open_engine() as here:
        total = engine.reduce(np.sqrt, things, np.add, keys)
        assert total == here.reduce(np.sqrt, things, np.add, keys)


class Bucket(BaseHTTPRequestHandler):
    """As much of an object store as listing and reading need: /BUCKET/KEY over a folder."""

    root: Path

    def log_message(self, *_):
        pass

    def _file(self):
        parts = unquote(urlsplit(self.path).path).strip("/").split("/", 1)
        return self.root / parts[1] if len(parts) == 2 else None

    def do_HEAD(self):
        self._object(body=False)

    def do_GET(self):
        query = parse_qs(urlsplit(self.path).query)
        if self._file() is None or "list-type" in query:
            self._list(query)
        else:
            self._object(body=True)

    def _list(self, query):
        prefix = query.get("prefix", [""])[0]
        lines = []
        for path in sorted(p for p in self.root.rglob("*") if p.is_file()):
            key = path.relative_to(self.root).as_posix()
            if key.startswith(prefix):
                when = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                lines.append(
                    f"<Contents><Key>{escape(key)}</Key><Size>{path.stat().st_size}</Size>"
                    f"<LastModified>{when:%Y-%m-%dT%H:%M:%S.000Z}</LastModified>"
                    '<ETag>"0"</ETag><StorageClass>STANDARD</StorageClass></Contents>'
                )
        self._send(
            200,
            '<?xml version="1.0" encoding="UTF-8"?>'
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>plant</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(lines)}</KeyCount>"
            f"<MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{''.join(lines)}"
            "</ListBucketResult>".encode(),
        )

    def _object(self, *, body):
        path = self._file()
        if path is None or not path.is_file():
            self._send(404, b"")
            return
        data = path.read_bytes()
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted:
            first, last = int(wanted[1]), int(wanted[2] or len(data) - 1)
            part = data[first : last + 1]
            more = {"Content-Range": f"bytes {first}-{first + len(part) - 1}/{len(data)}"}
            self._send(206, part, more, body=body)
        else:
            self._send(200, data, body=body)

    def _send(self, code, data, more=None, *, body=True):
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.send_header("ETag", '"0"')
        for name, value in (more or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(data)


@pytest.fixture
def store(fleet, monkeypatch):
    """An address of an object store on this computer that holds the fleet."""
    pytest.importorskip("s3fs")
    import fsspec

    served = type("Served", (Bucket,), {"root": fleet[0]})
    server = ThreadingHTTPServer(("127.0.0.1", 0), served)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setitem(
        fsspec.config.conf, "s3", {"key": "a", "secret": "b", "endpoint_url": endpoint}
    )
    yield "s3://plant"
    server.shutdown()
    server.server_close()


def test_an_object_store_gives_the_same_numbers(arm, fleet, store):
    here = study_fleet(arm, str(fleet[0]))
    there = study_fleet(arm, store)

    assert len(models(here)) == 8 and there.failed == ()
    for name, values in models(here).items():
        np.testing.assert_array_equal(models(there)[name], values)
