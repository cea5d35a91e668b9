"""README's picture: the report of a fit beside the arm on its motion and the live page.

Needs chromium; make_live.py first.

python docs/assets/make_picture.py
"""

from __future__ import annotations

import base64
import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

import taufit
from taufit.excitation import default_limits
from taufit.report import fit_page, motion_page

PICTURE = Path(__file__).with_name("report_and_arm.png")
FRAME = """<!doctype html><style>
body {{ margin: 0; padding: 28px; width: 1544px; background: #eef1f5; display: flex; gap: 28px;
       font: 22px system-ui, sans-serif; color: #22313c; }}
figure {{ margin: 0; background: #fff; border-radius: 12px; box-shadow: 0 2px 14px #0002;
         overflow: hidden; }}
img {{ display: block; width: 100%; }}
</style><figure style="flex: 1.62"><img src="data:image/png;base64,{report}"></figure>
<div style="flex: 1; display: flex; flex-direction: column; gap: 28px">
<figure style="padding: 14px"><img alt="" src="data:image/png;base64,{arm}"></figure>
<figure style="padding: 14px"><img alt="" src="data:image/png;base64,{live}"></figure>
<figure style="padding: 14px"><img alt="" src="data:image/png;base64,{friction}"></figure></div>"""


def pages(folder: Path) -> tuple[Path, Path]:
    """The report of a fit to a simulated UR10e, and the page of the motion it made."""
    robot = taufit.read_robot("ur10e")
    planned, other = taufit.design(robot, seconds=2.0), taufit.design(robot, seconds=1.0, seed=7)
    twin = taufit.Twin.typical(robot)
    runs = [twin.run(one.motion, seed=k).recording for k, one in enumerate((planned, other))]
    done = taufit.identify(robot, runs[0], holdout={"another motion": [runs[1]]})
    report, motion = folder / "report.html", folder / "motion.html"
    report.write_text(fit_page(done), "utf-8")
    motion.write_text(motion_page(robot, planned.motion, default_limits(robot), planned), "utf-8")
    return report, motion


def encoded(picture: bytes) -> str:
    """For a data address."""
    return base64.b64encode(picture).decode()


def taken(browser: Any, folder: Path) -> bytes:
    """Report and arm, side by side."""
    report, motion = pages(folder)
    page = browser.new_page(viewport={"width": 980, "height": 1330}, device_scale_factor=1.0)
    page.goto(report.as_uri())
    page.wait_for_timeout(500)
    left = page.screenshot()
    page.set_viewport_size({"width": 620, "height": 700})
    page.wait_for_timeout(300)
    friction = page.locator("#friction ~ .grid figure").nth(1)
    friction.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    curve = friction.screenshot()
    page.goto(motion.as_uri())
    arm = page.locator("figure.arm3d")
    arm.scroll_into_view_if_needed()
    slider = arm.locator("input")
    slider.fill(str(int(slider.get_attribute("max") or 0) // 3))
    slider.blur()
    page.wait_for_timeout(500)
    right = arm.screenshot()
    live = Path(__file__).with_name("live_light.png").read_bytes()
    page.set_viewport_size({"width": 1600, "height": 900})
    pictures = {"report": left, "arm": right, "live": live, "friction": curve}
    page.set_content(FRAME.format(**{name: encoded(one) for name, one in pictures.items()}))
    page.wait_for_timeout(200)
    return bytes(page.screenshot(full_page=True))


def main() -> None:
    """Take the picture."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        PICTURE.write_bytes(taken(browser, Path(folder)))
        browser.close()
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
