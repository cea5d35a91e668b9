"""Options of `taufit fit`: the model, what is kept out, what is written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from taufit.cli.options import AllowRepeats, Json, require_choice, usage_error
from taufit.cli.options.cache import CacheOption, opened_cache

# From this number of files on they are shared by several processes.
MANY_FILES = 8
# Options that a `FitRequest` takes as they are.
_SAME = (
    "rotor_inertia",
    "temperature",
    "compensator",
    "joint_zeros",
    "torque_signs",
    "sign_method",
)

if TYPE_CHECKING:
    from taufit.core.compute.cache import Cache
    from taufit.signs.hints import SignHint
    from taufit.workflow.fit_request import FitRequest


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What the model is made of and how its parameters are found."""

    friction: Annotated[
        str,
        typer.Option(
            help="auto, the name of a friction model, or a file `taufit friction` wrote, whose "
            "shapes are kept and whose coefficients are expected.",
            metavar="NAME|MODEL",
        ),
    ] = "auto"
    estimator: Annotated[
        str, typer.Option(help="auto, or the name of an estimator.", metavar="NAME")
    ] = "auto"
    cutoff_hz: Annotated[
        str,
        typer.Option(
            help="Zero-phase 4th-order low-pass for motion and torque alike, or auto.", metavar="HZ"
        ),
    ] = "10"
    delay_s: Annotated[
        str,
        typer.Option(
            help="By how much torque was recorded later than the motion, or auto.", metavar="S"
        ),
    ] = "0"
    rotor_inertia: Annotated[
        bool | None,
        typer.Option(
            "--rotor-inertia/--no-rotor-inertia",
            help="One per joint; by default where torque was measured at the motor.",
        ),
    ] = None
    no_offset: Annotated[
        bool, typer.Option("--no-offset", help="No constant torque offset per joint.")
    ] = False
    temperature: Annotated[
        str,
        typer.Option(
            help="How friction follows joint temperature: auto, none, linear, exponential, "
            "arrhenius, or thermal-model (estimated where there is no sensor)."
        ),
    ] = "auto"

    term: Annotated[
        list[str] | None,
        typer.Option(
            help="A further term beside friction, e.g. spring (a torsional spring per joint) or "
            "ripple; may be given several times.",
            metavar="NAME",
        ),
    ] = None
    compensator: Annotated[
        str | None,
        typer.Option(
            help="Joints with a gravity compensator (spring, gas cylinder) that the robot's "
            "description does not mention: names or numbers from 1.",
            metavar="JOINT,...",
        ),
    ] = None
    joint_zeros: Annotated[
        str | None,
        typer.Option(
            help="Joints whose encoder zero is not certain (names or numbers from 1, or all): what "
            "to add to recorded positions is estimated and becomes part of the model.",
            metavar="JOINT,...",
        ),
    ] = None
    joint_zero_std: Annotated[
        float,
        typer.Option(
            help="How far off they may be: standard deviation expected of joints that turn.",
            metavar="DEG",
            min=1e-3,
        ),
    ] = 1.0
    slide_zero_std: Annotated[
        float,
        typer.Option(help="The same of joints that slide.", metavar="MM", min=1e-3),
    ] = 5.0
    torque_signs: Annotated[
        str, typer.Option(help="recorded, or unknown where only magnitudes were.")
    ] = "recorded"
    sign_method: Annotated[
        str,
        typer.Option(
            help="exact, or tree: the pruned tree search of the literature (T-PBPR), which proves "
            "nothing; with --friction linear or none.",
            metavar="NAME",
        ),
    ] = "exact"
    sign_hint: Annotated[
        list[str] | None,
        typer.Option(
            "--sign-hint",
            help="Sign of an interval you know, e.g. 2:3.1-4.0:+ for joint 2 from 3.1 to 4.0 s; "
            "@RUN behind it in another run than the first. Repeatable.",
            metavar="JOINT:T0-T1:SIGN",
        ),
    ] = None

    def request(self) -> FitRequest:
        """Choices of the fit; wrong names and frequencies are refused."""
        from taufit.estimators import ESTIMATORS
        from taufit.temperature.apply import TEMPERATURE_CHOICES
        from taufit.workflow.fit_request import FitRequest

        require_choice(self.estimator, ("auto", *ESTIMATORS), "--estimator")
        require_choice(self.temperature, TEMPERATURE_CHOICES, "--temperature")
        require_choice(self.torque_signs, ("recorded", "unknown"), "--torque-signs")
        require_choice(self.sign_method, ("exact", "tree"), "--sign-method")
        same = {name: getattr(self, name) for name in _SAME}
        estimator: Any = None if self.estimator == "auto" else ESTIMATORS[self.estimator]()
        return FitRequest(
            **same,
            friction=self._friction(),
            terms=self._terms(),
            estimator=estimator,
            cutoff_hz=_cutoff(self.cutoff_hz),
            delay_s=_delay(self.delay_s),
            joint_zero_std=math.radians(self.joint_zero_std),
            prismatic_zero_std=1e-3 * self.slide_zero_std,
            offset=not self.no_offset,
        )

    @property
    def friction_file(self) -> Path | None:
        """The file friction is taken from, where one was given."""
        path = Path(self.friction)
        return path if path.suffix == ".json" or path.is_file() else None

    def _friction(self) -> Any:
        from taufit.terms.friction import FRICTION_MODELS

        if self.friction_file is not None:
            from taufit.model.model_file import read_model

            return read_model(self.friction_file)
        require_choice(self.friction, ("auto", *FRICTION_MODELS), "--friction")
        if self.friction in ("auto", "none"):
            return "auto" if self.friction == "auto" else None
        return FRICTION_MODELS[self.friction]()

    def _terms(self) -> tuple[str, ...]:
        from taufit.terms import selectable_terms

        return tuple(require_choice(name, selectable_terms(), "--term") for name in self.term or ())

    def hints(self, joint_names: tuple[str, ...]) -> list[SignHint]:
        """The known signs, each with its joint found by number or name."""
        if not self.sign_hint:
            return []
        from taufit.core.errors import TaufitError
        from taufit.signs.hints import read_hint

        try:
            return [read_hint(text, joint_names) for text in self.sign_hint]
        except TaufitError as error:
            usage_error("--sign-hint", str(error))


@dataclass(frozen=True, slots=True)
class HoldoutOptions:
    """Recordings that score the model and are kept out of the fit."""

    holdout: Annotated[
        list[Path] | None,
        typer.Option(
            "--holdout",
            help="Recording kept out of the fit, to score it; or 30% for the last 30 % of every "
            "recording. Repeatable.",
            metavar="FILE|PERCENT%",
        ),
    ] = None
    holdout_map: Annotated[
        Path | None, typer.Option(help="Column map of the hold-outs, where it is another.")
    ] = None

    @property
    def files(self) -> list[Path]:
        """The recordings kept out, none by default."""
        return [path for path in self.holdout or [] if not _is_share(path)]

    @property
    def share(self) -> float:
        """Of every recording, kept out at its end; 0 for none."""
        shares = [path for path in self.holdout or [] if _is_share(path)]
        if not shares:
            return 0.0
        try:
            share = float(str(shares[-1])[:-1]) / 100.0
        except ValueError:
            share = -1.0
        if not 0.0 < share < 1.0 or len(shares) > 1:
            usage_error("--holdout", f"expected one share between 0 and 100 %, got {shares[-1]}.")
        return share


def _is_share(path: Path) -> bool:
    return str(path).endswith("%") and not path.exists()


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """What is written and printed."""

    report: Annotated[
        Path | None, typer.Option(help="One HTML page about the fit.", metavar="FILE.html")
    ] = None
    force: Annotated[
        bool,
        typer.Option("--force", help="Fit although the recording contradicts the robot."),
    ] = False
    mend: Annotated[
        Path | None,
        typer.Option(
            help="Where the column map is wrong and the right one is known, write it there.",
            metavar="MAP.yaml",
        ),
    ] = None
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Fitted model.", metavar="MODEL")
    ] = Path("model.json")
    processes: Annotated[
        int | None,
        typer.Option(
            help="Processes that share the files; by default one per processor from "
            f"{MANY_FILES} files on. Results do not depend on it.",
            metavar="N",
            min=1,
            max=1024,
        ),
    ] = None
    cache: CacheOption = "auto"
    allow_repeats: AllowRepeats = False
    as_json: Json = False

    def kept_in(self, found_in: Path | None) -> Cache | None:
        """Where results are kept, if they are."""
        return opened_cache(self.cache, found_in)


def _cutoff(text: str) -> float | Literal["auto"]:
    if text == "auto":
        return "auto"
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 < value < 1e6:
        usage_error("--cutoff-hz", f"must be a positive frequency in Hz or auto, got {text!r}.")
    return value


def _delay(text: str) -> float | Literal["auto"]:
    if text == "auto":
        return "auto"
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < 10.0:
        usage_error("--delay-s", f"must be a time in seconds below 10, or auto, got {text!r}.")
    return value
