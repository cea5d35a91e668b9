"""A robot on a page, without a robot or a browser: a recording watched live, its stream read."""

from __future__ import annotations

import base64
import json
import tempfile
import urllib.request
from pathlib import Path

import numpy as np

import taufit
from taufit.live import Monitor
from taufit.live.batch_hub import BatchHub
from taufit.live.dashboard import dashboard
from taufit.live.reading_publisher import JsonLinesPublisher
from taufit.live.server import open_server_socket, run_server
from taufit.live.session import Session
from taufit.sim import read_preset

preset = read_preset("ur10-paper")
fitted = taufit.identify(
    preset.twin.robot, [preset.twin.run(preset.motion(periods=4), seed=1).recording]
).model
carrying = preset.twin.run(preset.motion(periods=1), seed=2, payload=preset.payload).recording

with tempfile.TemporaryDirectory() as folder:
    lines = Path(folder) / "readings.jsonl"
    publish = JsonLinesPublisher(lines.open("w", encoding="utf-8"), owned=True)
    # pace=0 plays the recording as fast as it goes; a robot on the wire takes its place.
    session = Session(Monitor(fitted), carrying, BatchHub(), sinks=[publish], pace=0.0)
    line, place = open_server_socket()
    with run_server(dashboard(session, fitted.robot, place, about="example"), line, place):
        page = urllib.request.urlopen(place.url).read().decode()
        print(f"the page has {page.count('<canvas')} canvases and is {len(page) // 1000} kB")
        session.start()
        session.is_finished.wait()
        # What the page would get: batches of every sample, packed.
        request = urllib.request.Request(
            f"{place.address}/stream", headers={"X-Taufit-Token": place.token, "Last-Event-ID": "0"}
        )
        text = urllib.request.urlopen(request).read().decode()
    publish.close()
    batches = [json.loads(part[6:]) for part in text.split("\n") if part.startswith('data: {"')]
    rows = sum(batch["count"] for batch in batches)
    width = len(base64.b64decode(batches[0]["rows"])) // batches[0]["count"] // 4
    print(f"{len(batches)} batches, {rows} samples of {width} numbers")
    last = json.loads(lines.read_text().splitlines()[-1])
    mass = last["payload"]["mass"]
    print(f"payload {mass['value']:.2f} kg ({mass['low']:.2f} .. {mass['high']:.2f})")
    print(f"friction index {np.round(last['friction_index'], 2).tolist()}")
