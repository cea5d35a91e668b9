"""Install the built wheel into an empty environment outside the checkout and use it there.

    python tests/packaging/wheel_check.py DIST [--extras [NAME ...]]

The wheel's own dependencies come from the package index; --extras installs every extra as well, by
the command that the error about its absence prints, and tries what it is for. figaroh, which only
benchmarks use, is not tried.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# What shows that an extra works: a program that fails where it does not.
PROBES = {
    "sim": "import taufit; taufit.Twin(taufit.read_robot('ur3e'))",
    "ros": "import taufit; assert len(taufit.read_recording('run.mcap')) > 1000",
    "arrow": "import pyarrow, pyarrow.parquet, taufit\n"
    "run = taufit.read_recording('run.parquet')\n"
    "table = pyarrow.table({'t': run.time, 'state': ['on'] * len(run.time)} | {\n"
    "    f'{name}_{j + 1}': values[:, j] for j in range(6)\n"
    "    for name, values in (('q', run.position), ('torque', run.signal))})\n"
    "pyarrow.parquet.write_table(table, 'others.parquet')\n"
    "assert len(taufit.read_recording('others.parquet')) == len(run)",
    "hdf5": "import h5py, taufit\n"
    "run = taufit.read_recording('run.parquet')\n"
    "with h5py.File('run.h5', 'w') as file:\n"
    "    for name in ('time', 'position', 'velocity', 'signal'):\n"
    "        file[name] = getattr(run, name)\n"
    "open('h5.yaml', 'w').write('columns:\\n  time: time\\n  position: position_{joint}\\n'\n"
    "    '  velocity: velocity_{joint}\\n  torque: signal_{joint}\\n')\n"
    "assert len(taufit.read_recording('run.h5', column_map='h5.yaml')) == len(run)",
    "xacro": "import taufit; taufit.read_robot('arm.urdf.xacro')",
    "casadi": "import casadi, taufit\n"
    "taufit.export_model(taufit.read_model('model.json'), 'arm.casadi')\n"
    "assert casadi.Function.load('arm.casadi').n_in() == 4",
    # A participant of DDS would speak to the local network: the library and our part of it load.
    "ros2": "import cyclonedds.domain, taufit.wire.ros.middleware",
    "fleet": "import taufit\n"
    "from distributed import LocalCluster\n"
    "from taufit.core.compute.engines import open_engine\n"
    "from taufit.fleet import study_fleet\n"
    "with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, protocol='tcp://',\n"
    "                  host='127.0.0.1', dashboard_address=None) as cluster:\n"
    "    with open_engine(scheduler=cluster.scheduler_address) as engine:\n"
    "        found = study_fleet(taufit.read_robot('ur10e'), 'plant/', engine=engine)\n"
    "assert len(found.robots) == 2",
    "live": "import re, subprocess, sys, urllib.request\n"
    "words = [sys.executable, '-m', 'taufit', 'live', 'loaded.parquet', 'model.json']\n"
    "page = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)\n"
    "try:\n"
    "    while not (found := re.search(r'http://127\\S+', page.stdout.readline())):\n"
    "        assert page.poll() is None\n"
    "    assert b'<canvas' in urllib.request.urlopen(found[0], timeout=60).read()\n"
    "finally:\n"
    "    page.terminate()\n"
    "    page.communicate(timeout=60)",
    "plot": "import taufit; taufit.read_model('model.json').plot_friction()",
    "pinocchio": "import pinocchio, taufit\n"
    "taufit.write_urdf(taufit.read_model('model.json'), 'arm.urdf')\n"
    "assert pinocchio.buildModelFromUrdf('arm.urdf').nq == 6",
}
# Size of an environment with the base install and pip.
MAX_MB = 400
XACRO = """<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:property name="mass" value="${2 * 1.5}"/>
<link name="base"/>
<link name="rod"><inertial><origin xyz="0.2 0 0"/><mass value="${mass}"/>
<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" velocity="2" effort="50"/></joint></robot>
"""


def run(words: list[str], folder: Path) -> str:
    print("$ " + " ".join(words), flush=True)
    start = time.perf_counter()
    done = subprocess.run(
        words, cwd=folder, text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    print("  " + "\n  ".join(done.stdout.strip().splitlines()[-4:]))
    print(f"  ({time.perf_counter() - start:.0f} s)", flush=True)
    if done.returncode:
        sys.exit(f"{words[0]} failed with exit code {done.returncode}:\n{done.stdout}")
    return done.stdout


def size_mb(folder: Path) -> float:
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dist", type=Path)
    parser.add_argument("--extras", action="store_true")
    parser.add_argument("only", nargs="*", help="Extras to try; all where none is named.")
    asked = parser.parse_args()
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    wheels = [
        path
        for path in sorted(asked.dist.resolve().glob("taufit-*.whl"), key=os.path.getmtime)
        if f"-{tag}-" in path.name or ("-abi3-" in path.name and sys.version_info >= (3, 12))
    ]
    if not wheels:
        sys.exit(f"there is no taufit wheel for {tag} in {asked.dist}: build it with `make dist`.")
    wheel = wheels[-1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run([sys.executable, "-m", "venv", "venv"], folder)
        python, taufit = str(folder / "venv/bin/python"), str(folder / "venv/bin/taufit")
        run(
            [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(wheel)],
            folder,
        )
        size = size_mb(folder / "venv")
        print(f"installed: {size:.0f} MB")
        if size > MAX_MB:
            sys.exit(f"the base install has {size:.0f} MB, more than {MAX_MB}.")
        version = run([taufit, "--version"], folder)
        assert "engine: compiled" in version, version
        listed = run([taufit, "inspect"], folder)
        assert "ur10e" in listed
        run([taufit, "demo", "-o", "out"], folder)
        assert (folder / "out/report.html").stat().st_size > 100_000
        print(f"the demo's files: {size_mb(folder / 'out'):.0f} MB")
        run([taufit, "demo", "--files"], folder)
        bag = ["fit", "ur10e", "run.mcap", "--torque-kind", "torque", "--friction", "linear"]
        run([taufit, *bag, "-o", "bag.json"], folder)
        run([taufit, "open", "log.csv.gz", "--seconds", "1"], folder)
        run([taufit, "live", "run.parquet", "model.json", "--seconds", "1"], folder)
        if asked.extras:
            (folder / "arm.urdf.xacro").write_text(XACRO)
            for extra, probe in PROBES.items():
                if asked.only and extra not in asked.only:
                    continue
                say = f"from taufit.core.extras import *; print(missing_extra({extra!r}, 'this'))"
                printed = re.search(r"`pip install ([^`]+)`", run([python, "-c", say], folder))
                line = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
                run([*line, *shlex.split(printed[1])], folder)
                run([python, "-c", probe], folder)
    print(f"{wheel.name} works in an empty environment.")


if __name__ == "__main__":
    main()
