# ruff: noqa: E501
"""Pictures of the documentation, light and dark, from simulated arms. Needs chromium and Pillow.

Pages are made by the commands that users run, in the folder of `taufit demo`; arms are drawn from
their descriptions. `python docs/assets/make_pictures.py [NAME ...]` makes all or some.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

import taufit
from taufit.core.number_text import fixed
from taufit.report.arm_sketch import arm_sketch
from taufit.report.palette import DARK, LIGHT

HERE = Path(__file__).parent
SCHEMES = {"light": LIGHT, "dark": DARK}


@dataclass(frozen=True)
class PagePicture:
    """A part of a page.

    Attributes:
        name: Of the picture.
        page: File in the demo's folder.
        part: What is shown (CSS); "" for the first screen.
        fold: Fold to open, by its anchor.
        size: Of the window.
    """

    name: str
    page: str
    part: str = ""
    fold: str = ""
    size: tuple[int, int] = (1280, 760)


PICTURES = (
    PagePicture("report", "report.html"),
    PagePicture("verdict", "report.html", ".statements", size=(1000, 760)),
    PagePicture("torque", "report.html", ".charts.joints", size=(1280, 900)),
    PagePicture("friction", "report.html", "#friction .charts", "friction"),
    PagePicture("spectra", "report.html", "#spectra .charts", "spectra"),
    PagePicture("parameters", "report.html", "#parameters", "parameters", (1100, 700)),
    PagePicture(
        "temperature", "warm_up.html", "#friction-and-temperature .grid", "friction-and-temperature"
    ),
    PagePicture("signs", "unsigned.html", "#torque-signs", "torque-signs", (1000, 700)),
    PagePicture("payload", "payload.html"),
    PagePicture("contact", "contact.html"),
    PagePicture("motion", "motion.html"),
    PagePicture("arm_in_motion", "motion.html", "figure.arm3d", size=(900, 700)),
    PagePicture("strokes", "friction.html", size=(1100, 700)),
    PagePicture("health", "health.html", size=(1100, 760)),
    PagePicture("fleet", "fleet/fleet.html"),
    PagePicture("ur10_bag", "bag.html"),
    PagePicture("paper_kr5", "paper_kr5.html"),
    PagePicture(
        "paper_raviola2021",
        "paper_raviola2021.html",
        "#figure-8--viscous-friction-against-temperature .charts",
        "figure-8--viscous-friction-against-temperature",
        (1280, 1450),
    ),
)
# A real UR10 (BSD-3-Clause), where the shared recordings are beside the checkout.
BAG = HERE.parents[1].parent / "shared" / "data" / "ur10_bag" / "ur10_exciting_trajectory.db3"
COMMANDS = (
    "demo -o .",
    "fit ur10 run.parquet --holdout test.parquet --report report.html -o model.json",
    "payload model.json loaded.parquet --report payload.html",
    "contact model.json pushed.parquet --report contact.html",
    "report warm_up.json warm_up.parquet -o warm_up.html",
    "fit kr5 unsigned.parquet --torque-signs unknown --report unsigned.html -o kr5.json",
    "simulate ur10 motion.json --runs 9 -o healthy/run.parquet",
    "health baseline model.json healthy -o robot.json",
    "health check robot.json test.parquet --report health.html",
    "reproduce kr5 --report paper_kr5.html",
    "reproduce raviola2021 --report paper_raviola2021.html",
)
ARMS = {
    "ur10": [0.4, -1.2, 1.6, -1.9, -1.57, 0.0],
    "ur10e": [0.4, -1.1, 1.4, -1.9, -1.57, 0.0],
    "panda": [0.3, -0.5, 0.2, -2.0, 0.0, 1.8, 0.7],
    "fr3": [0.3, -0.4, 0.2, -1.9, 0.0, 1.7, 0.7],
    "kr5": [0.3, 0.9, -0.7, 0.0, 0.9, 0.0],
    "iiwa14": [0.3, 0.6, 0.0, -1.3, 0.0, 0.9, 0.0],
    "so101": [0.2, -0.3, 0.4, 0.3, 0.0],
}


def command(words: str, folder: Path) -> None:
    """One of taufit's, in the folder."""
    print(f"$ taufit {words}", flush=True)
    subprocess.run([sys.executable, "-m", "taufit", *words.split()], cwd=folder, check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip


def compressed(picture: bytes) -> bytes:
    """With 128 colours: charts need no more."""
    out = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(128).save(out, "PNG", optimize=True)
    return out.getvalue()


def photograph(browser: Any, folder: Path, wanted: PagePicture) -> None:
    """One part of a page, light and dark."""
    for scheme in SCHEMES:
        width, height = wanted.size
        page = browser.new_page(
            viewport={"width": width, "height": height}, color_scheme=scheme, device_scale_factor=1
        )
        page.goto((folder / wanted.page).as_uri())
        if wanted.fold:
            page.evaluate("id => { document.getElementById(id).open = true; }", wanted.fold)
        page.wait_for_timeout(500)
        if wanted.part:
            part = page.locator(wanted.part).first
            part.scroll_into_view_if_needed()
            page.wait_for_timeout(400)
            box = part.bounding_box()
            shot = page.screenshot(
                clip={"x": max(box["x"] - 8, 0), "y": max(box["y"] - 8, 0),
                      "width": min(box["width"] + 16, width), "height": min(box["height"] + 16, height)}
            )  # fmt: skip
        else:
            shot = page.screenshot()
        (HERE / f"{wanted.name}_{scheme}.png").write_bytes(compressed(shot))
        page.close()


def standalone(drawing: str) -> dict[str, str]:
    """A drawing of a page as files of its own, one per scheme."""
    out = {}
    for scheme, colours in SCHEMES.items():
        text = re.sub(r"var\(--(\w+)\)", lambda found, c=colours: c[found[1]], drawing)
        text = text.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" width="360" ', 1)
        out[scheme] = text.replace("<text ", '<text font-family="system-ui, sans-serif" ')
    return out


def draw_arms() -> None:
    """Arms from their descriptions, and one arm on the ground, at a wall and at a ceiling."""
    for name, pose in ARMS.items():
        drawing = arm_sketch(taufit.read_robot(name), np.array(pose), label=f"{name} as capsules")
        for scheme, text in standalone(drawing).items():
            (HERE / f"arm_{name}_{scheme}.svg").write_text(text + "\n", "utf-8")
    for mounting in ("ground", "wall", "ceiling"):
        robot = taufit.read_robot("ur10").with_mounting(mounting)
        drawing = arm_sketch(robot, np.array(ARMS["ur10"]), label=f"ur10 on the {mounting}")
        for scheme, text in standalone(drawing).items():
            (HERE / f"mounting_{mounting}_{scheme}.svg").write_text(text + "\n", "utf-8")
    palletiser = taufit.read_robot(HERE.parents[1] / "examples/arms/palletiser.yaml")
    pose = np.array([0.4, 0.3, 0.2, 0.0])
    drawing = arm_sketch(palletiser, pose, label="a palletiser with two parallelograms")
    for scheme, text in standalone(drawing).items():
        (HERE / f"arm_palletiser_{scheme}.svg").write_text(text + "\n", "utf-8")


FLOWS = {
    "flow_record": (("robot that is on", "RTDE, FCI, EGM, ROS 2"), ("taufit record", "checks, plays, stores"),
                    ("run.parquet", "every sample"), ("taufit fit", "model.json")),
    "flow_export": (("model.json", "taufit fit"), ("taufit export", "-o decides the format"),
                    (".c .fmu .urdf .xml .json", "one model, five forms"), ("controller, simulator", "the same torque")),
    "flow_start": (("your log", "CSV, bag, MCAP"), ("taufit open", "columns, units, signs"),
                   ("taufit fit", "verdict, report.html"), ("taufit export", "use the model")),
    "flow_check": (("recording", "every push"), ("taufit check --json", "exit code 0 or 1"),
                   ("verdict", "PASS or FAIL"), ("merge", "or a look at the report")),
    "flow_publish": (("robot", "or recording"), ("taufit live --publish", "JSON lines or ROS 2"),
                     ("topic, file", "every reading"), ("Foxglove, PlotJuggler, Rerun", "your own view")),
}  # fmt: skip


def draw_flows() -> None:
    """Steps as boxes with arrows between them."""
    for name, steps in FLOWS.items():
        for scheme, colour in SCHEMES.items():
            parts = []
            for k, (title, below) in enumerate(steps):
                x = 10 + 220 * k
                edge = colour["model"] if "taufit" in title else colour["line"]
                parts.append(
                    f'<rect x="{x}" y="10" width="190" height="64" rx="8" fill="{colour["card"]}" stroke="{edge}" stroke-width="1.5"/>'
                    f'<text x="{x + 95}" y="38" text-anchor="middle" font-size="15" font-weight="650" fill="{colour["ink"]}">{title}</text>'
                    f'<text x="{x + 95}" y="59" text-anchor="middle" font-size="13" fill="{colour["soft"]}">{below}</text>'
                )
                if k:
                    parts.append(
                        f'<path d="M{x - 26} 42H{x - 6}m-6 -5l6 5l-6 5" fill="none" stroke="{colour["soft"]}" stroke-width="2"/>'
                    )
            text = "".join(parts).replace("<text ", '<text font-family="system-ui, sans-serif" ')
            (HERE / f"{name}_{scheme}.svg").write_text(
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 84" width="880">{text}</svg>\n',
                "utf-8",
            )


def draw_hero(folder: Path) -> None:
    """The start page's picture: an arm, one joint measured and predicted, one sentence."""
    from taufit.report.model_view import predict_breakdown
    from taufit.workflow import condition_for_model

    model = taufit.read_model(folder / "model.json")
    samples = condition_for_model(model, [taufit.read_recording(folder / "test.parquet")])
    joint = 0
    measured = samples.torque[:, joint]
    predicted = predict_breakdown(model, samples).total[:, joint]
    error = float(np.sqrt(np.mean((measured - predicted)[samples.in_motion] ** 2)))
    share = model.training.accuracy.unexplained
    every = max(1, len(measured) // 420)
    time = samples.time[::every] - samples.time[0]
    drawing = arm_sketch(model.robot, np.array(ARMS["ur10"]), label="")
    inner = drawing.partition(">")[2].removesuffix("</svg>")
    low, high = 1.1 * measured.min(), 1.1 * measured.max()
    title = ("Recorded torque in, tested model out:", f"{100 * share:.1f} % unexplained")
    source = f"joint 1 of a simulated UR10, {time[-1]:.0f} s"
    caption = (f"{source} that the fit", f"has not seen; RMSE {error:.2f} N m")

    def text(x: float, y: float, words: str, more: str = 'fill="var(--soft)"') -> str:
        return f'<text x="{x}" y="{y:.1f}" font-size="14" {more}>{words}</text>'

    def chart(x: float, y: float, width: float, right: float) -> str:
        """Curves with their top left corner at x, y; the key ends at `right`."""

        def height(values: Any) -> Any:
            return y + 170 - 170 * (values - low) / (high - low)

        def path(values: np.ndarray) -> str:
            across = x + width * time / time[-1]
            points = zip(across, height(values[::every]), strict=True)
            return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)

        end = 'text-anchor="end" fill="var(--soft)"'
        ticks = "".join(
            f'<path d="M{x} {height(t):.1f}h{width}" stroke="var(--grid)"/>'
            + text(x - 8, height(t) + 4, fixed(t, 0), end)
            for t in (-50, 0, 50)
        )
        key = (
            f'<path d="M{right - 204} {y - 10}h26" stroke="var(--measured)" stroke-width="6"/>'
            + text(right - 172, y - 5, "measured")
            + f'<path d="M{right - 88} {y - 10}h26" stroke="var(--model)" stroke-width="2.5"/>'
            + text(right - 56, y - 5, "model")
        )
        return (
            f'{ticks}<path d="{path(measured)}" fill="none" stroke="var(--measured)" stroke-width="6" stroke-linejoin="round"/>'
            f'<path d="{path(predicted)}" fill="none" stroke="var(--model)" stroke-width="2"/>{key}'
        )

    bold = 'style="font-size:18px" font-weight="650" fill="var(--ink)"'
    wide = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 290" font-family="system-ui, sans-serif">'
        '<rect width="900" height="290" rx="10" fill="var(--paper)"/>'
        '<rect x="6" y="6" width="272" height="278" rx="8" fill="var(--card)"/>'
        f'<g transform="translate(0 6) scale(0.9)">{inner}</g>{text(300, 32, " ".join(title), bold)}'
        f'{text(300, 61, "torque [N m]")}{chart(350, 66, 530, 880)}{text(350, 272, " ".join(caption))}</svg>\n'
    )
    # One below the other, so that letters keep their size on a phone.
    narrow = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 420 500" font-family="system-ui, sans-serif">'
        f'<rect width="420" height="500" rx="10" fill="var(--paper)"/>{text(4, 22, title[0], bold)}{text(4, 46, title[1], bold)}'
        f'{text(4, 77, "torque [N m]")}{chart(46, 82, 370, 416)}{text(4, 276, caption[0])}{text(4, 296, caption[1])}'
        '<rect x="4" y="310" width="412" height="186" rx="8" fill="var(--card)"/>'
        f'<g transform="translate(86 304) scale(0.6)">{inner}</g></svg>\n'
    )
    for scheme, colour in SCHEMES.items():
        for name, drawn in (("hero", wide), ("hero_phone", narrow)):
            drawn = re.sub(r"var\(--(\w+)\)", lambda found, c=colour: c[found[1]], drawn)
            (HERE / f"{name}_{scheme}.svg").write_text(drawn, "utf-8")


def main(names: list[str]) -> None:
    """All pictures, or those named."""
    draw_arms()
    draw_flows()
    # TAUFIT_DEMO: a folder that is kept and used again.
    folder = Path(os.environ.get("TAUFIT_DEMO") or tempfile.mkdtemp())
    if not (folder / "report.html").exists():
        folder.mkdir(exist_ok=True)
        for words in COMMANDS:
            command(words, folder)
        sys.path.insert(0, str(HERE.parents[1]))
        from benchmarks.simulated_fleet import Plan, make

        make(folder / "cells", Plan(robots=12, seconds=8.0, worn={3: (1, 2.2), 8: (4, 2.1)}))
        command("fleet ur5 cells -o fleet", folder)
        if BAG.exists():
            (folder / BAG.name).write_bytes(BAG.read_bytes())
            bag = f"fit ur10 {BAG.name} --torque-kind torque --holdout 30%"
            command(f"{bag} --report bag.html -o bag.json", folder)
    draw_hero(folder)
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for picture in PICTURES:
            if (not names or picture.name in names) and (folder / picture.page).exists():
                print(picture.name, flush=True)
                photograph(browser, folder, picture)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
