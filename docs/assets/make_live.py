"""Pictures of the live page in motion: light, dark, phone. Needs chromium and extra live.

python docs/assets/make_live.py
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from make_pictures import compressed
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
LOOKS = {
    "light": {"viewport": {"width": 1280, "height": 900}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 1500}},
}
# When the payload is known and the arm is in the middle of its motion [s].
MOMENT = 8.5


def main() -> None:
    """Play a recording with 3.5 kg and look at it three ways at the same moment."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        taufit = [sys.executable, "-m", "taufit"]
        subprocess.run([*taufit, "demo", "--files"], cwd=folder, check=True, stdout=subprocess.PIPE)
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for name, look in LOOKS.items():
            words = [*taufit, "live", "loaded.parquet", "model.json", "--pace", "0.5"]
            shown = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True)
            assert shown.stdout is not None
            while not (found := re.search(r"http://\S+", shown.stdout.readline())):
                assert shown.poll() is None
            page = browser.new_context(**look).new_page()
            page.goto(found[0])
            late = f"parseFloat(document.querySelector('#state').textContent) >= {MOMENT}"
            while not page.evaluate(late):
                page.wait_for_timeout(50)
            (HERE / f"live_{name}.png").write_bytes(compressed(page.screenshot()))
            page.close()
            shown.terminate()
            shown.communicate(timeout=60)
        browser.close()


if __name__ == "__main__":
    main()
