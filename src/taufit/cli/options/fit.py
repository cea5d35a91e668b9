"""Options of `taufit fit`: model, hold-out data, output."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from taufit.cli.options import AllowRepeats, Json, require_choice, usage_error
from taufit.cli.options.option_groups import FormerName
from taufit.cli.options.result_cache import CacheOption, open_result_cache
from taufit.core.dataclasses import dataclass

# Number of files from which several processes are used.
MANY_FILES = 8
# Options passed to `FitRequest` unchanged.
_REQUEST_FIELDS = (
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
    """Model: structure and estimation."""

    friction: Annotated[
        str,
        typer.Option(
            help="Friction model: auto, none, linear, power_law, polynomial, stribeck, "
            "stribeck_load and others, or a file of `taufit friction` (its shape parameters are "
            "kept, its coefficients are the prior).",
            metavar="NAME|MODEL",
        ),
    ] = "auto"
    estimator: Annotated[
        str,
        typer.Option(
            help="Estimator: auto, ols, wls, irls, tls, consistent_sdp or pbpr.", metavar="NAME"
        ),
    ] = "auto"
    cutoff_hz: Annotated[
        str,
        typer.Option(
            help="Cut-off of the zero-phase 4th-order low-pass of motion and torque [Hz], or auto. "
            "Lower values remove noise and fast dynamics.",
            metavar="HZ",
        ),
    ] = "10"
    delay_s: Annotated[
        str,
        typer.Option(
            help="Delay of torque behind motion [s], one per joint (0,0.02,...), or auto.",
            metavar="S",
        ),
    ] = "0"
    rotor_inertia: Annotated[
        bool | None,
        typer.Option(
            "--rotor-inertia/--no-rotor-inertia",
            help="Rotor inertia per joint; default if torque is measured at the motor.",
        ),
    ] = None
    no_offset: Annotated[
        bool, typer.Option("--no-offset", help="No constant torque offset per joint.")
    ] = False
    temperature: Annotated[
        str,
        typer.Option(
            help="Temperature law of friction: auto, none, linear, exponential, arrhenius, or "
            "thermal-model (temperature estimated, without sensor)."
        ),
    ] = "auto"

    term: Annotated[
        list[str] | None,
        typer.Option(
            help="Further model term, e.g. spring (torsional spring per joint) or ripple. "
            "Repeatable.",
            metavar="NAME",
        ),
    ] = None
    compensator: Annotated[
        str | None,
        typer.Option(
            help="Joints with a gravity compensator (spring, gas cylinder) that the robot "
            "description lacks: names or numbers from 1.",
            metavar="JOINT,...",
        ),
    ] = None
    joint_zeros: Annotated[
        str | None,
        typer.Option(
            help="Joints whose zero offset is estimated and added to the model: names or numbers "
            "from 1, or all.",
            metavar="JOINT,...",
        ),
    ] = None
    joint_zero_std: Annotated[
        float,
        typer.Option(
            help="Prior standard deviation of zero offsets, revolute joints [deg].",
            metavar="DEG",
            min=1e-3,
        ),
    ] = 1.0
    prismatic_zero_std: Annotated[
        float,
        typer.Option(
            help="Prior standard deviation of zero offsets, prismatic joints [mm].",
            metavar="MM",
            min=1e-3,
        ),
        FormerName("--slide-zero-std"),
    ] = 5.0
    torque_signs: Annotated[
        str,
        typer.Option(help="Torque signs: recorded, or unknown if only magnitudes are recorded."),
    ] = "recorded"
    sign_method: Annotated[
        str,
        typer.Option(
            help="Sign recovery: exact, or tree (pruned tree search T-PBPR, without proof; with "
            "--friction linear or none).",
            metavar="NAME",
        ),
    ] = "exact"
    sign_hint: Annotated[
        list[str] | None,
        typer.Option(
            "--sign-hint",
            help="Known sign of an interval, e.g. 2:3.1-4.0:+ for joint 2 from 3.1 to 4.0 s; "
            "append @RUN for another run than the first. Repeatable.",
            metavar="JOINT:T0-T1:SIGN",
        ),
    ] = None

    def request(self) -> FitRequest:
        """Convert to a fit request; wrong usage for unknown names and frequencies."""
        from taufit.estimators import ESTIMATORS
        from taufit.workflow.fit_request import FitRequest

        require_choice(self.estimator, ("auto", *ESTIMATORS), "--estimator")
        if self.temperature != "auto":
            from taufit.temperature.apply import TEMPERATURE_CHOICES

            require_choice(self.temperature, TEMPERATURE_CHOICES, "--temperature")
        require_choice(self.torque_signs, ("recorded", "unknown"), "--torque-signs")
        require_choice(self.sign_method, ("exact", "tree"), "--sign-method")
        unchanged = {name: getattr(self, name) for name in _REQUEST_FIELDS}
        estimator: Any = None if self.estimator == "auto" else ESTIMATORS[self.estimator]()
        return FitRequest(
            **unchanged,
            friction=self._friction(),
            terms=self._terms(),
            estimator=estimator,
            cutoff_hz=_parse_cutoff(self.cutoff_hz),
            delay_s=_parse_delay(self.delay_s),
            joint_zero_std=math.radians(self.joint_zero_std),
            prismatic_zero_std=1e-3 * self.prismatic_zero_std,
            offset=not self.no_offset,
        )

    @property
    def friction_file(self) -> Path | None:
        """File of the friction model, if one was given."""
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
        """Known signs, with joints by number or name."""
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
    """Hold-out: recordings for testing the model."""

    holdout: Annotated[
        list[Path] | None,
        typer.Option(
            "--holdout",
            help="Hold-out recording to test the model, or 30% for the last 30 % of every "
            "recording. Repeatable.",
            metavar="FILE|PERCENT",
        ),
    ] = None
    holdout_map: Annotated[
        Path | None, typer.Option(help="Column map of the hold-out files, if different.")
    ] = None

    @property
    def files(self) -> list[Path]:
        """Hold-out recordings."""
        return [path for path in self.holdout or [] if not _is_percentage(path)]

    @property
    def share(self) -> float:
        """Hold-out fraction at the end of every recording; 0 for none."""
        shares = [path for path in self.holdout or [] if _is_percentage(path)]
        if not shares:
            return 0.0
        try:
            share = float(str(shares[-1]).removesuffix("%")) / 100.0
        except ValueError:
            share = -1.0
        if 0.0 < share < 0.01 and not str(shares[-1]).endswith("%"):
            usage_error("--holdout", f"{shares[-1]} is a fraction: write {1e4 * share:g}%.")
        if not 0.0 < share < 1.0 or len(shares) > 1:
            usage_error("--holdout", f"expected one share between 0 and 100 %, got {shares[-1]}.")
        return share


def _is_percentage(path: Path) -> bool:
    """Whether a hold-out is a fraction: 30% or 30, unless there is a file of that name."""
    text = str(path)
    return (text.endswith("%") or text.replace(".", "", 1).isdecimal()) and not path.exists()


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """Output: files and messages."""

    again: Annotated[
        Path | None,
        typer.Option(
            "--again", help="Repeat the fit that made MODEL; needs no arguments.", metavar="MODEL"
        ),
    ] = None
    report: Annotated[
        Path | None, typer.Option(help="HTML report to write.", metavar="FILE.html")
    ] = None
    ignore_contradictions: Annotated[
        bool,
        typer.Option(
            "--ignore-contradictions",
            help="Fit even if the recording contradicts the robot, write even if the model fails.",
        ),
        FormerName("--force"),
    ] = False
    write_map: Annotated[
        Path | None,
        typer.Option(
            help="Corrected column map to write, if the given one is wrong.",
            metavar="MAP.yaml",
        ),
        FormerName("--mend"),
    ] = None
    apply_remedy: Annotated[
        bool,
        typer.Option("--apply-remedy", help="With --write-map: fit again with the corrected map."),
    ] = False
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Model file to write.", metavar="MODEL")
    ] = Path("model.json")
    processes: Annotated[
        int | None,
        typer.Option(
            help="Parallel processes; default one per processor from "
            f"{MANY_FILES} files on. Results do not depend on it.",
            metavar="N",
            min=1,
            max=1024,
        ),
    ] = None
    cache: CacheOption = "auto"
    allow_repeats: AllowRepeats = False
    as_json: Json = False

    def open_cache(self, recordings: Path | None) -> Cache | None:
        """Open the result cache, if one is used."""
        return open_result_cache(self.cache, recordings)


def _parse_cutoff(text: str) -> float | Literal["auto"]:
    if text == "auto":
        return "auto"
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 < value < 1e6:
        usage_error("--cutoff-hz", f"must be a positive frequency in Hz or auto, got {text!r}.")
    return value


def _parse_delay(text: str) -> float | tuple[float, ...] | Literal["auto"]:
    if text == "auto":
        return "auto"
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = (float("nan"),)
    if not all(abs(value) < 10.0 for value in values):
        usage_error("--delay-s", f"must be a time in seconds below 10, or auto, got {text!r}.")
    return values[0] if len(values) == 1 else values
