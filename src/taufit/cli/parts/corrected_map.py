"""`taufit fit ... --write-map MAP`: corrected column map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taufit.core.dataclasses import dataclass

if TYPE_CHECKING:
    from taufit.cli.options import RecordingOptions
    from taufit.cli.options.fit import ResultOptions
    from taufit.recording import Finding
    from taufit.recording.map.remedy import Remedy


@dataclass(frozen=True, slots=True)
class CorrectedMap:
    """Remedy of a fit, and the corrected column map if one was written.

    Attributes:
        remedy: Remedy of all findings together.
        map: File written, or None.
    """

    remedy: Remedy
    map: Path | None

    @property
    def description(self) -> str:
        """Changed arguments of the command."""
        robot, options = self.remedy.robot, list(self.remedy.options)
        if self.map is not None:
            options = ["--map", str(self.map), *options]
        parts = [f"robot {robot}"] if robot else []
        parts += [" ".join(options)] if options else []
        if self.remedy.edits and self.map is None:
            parts.append("a corrected column map (--write-map MAP.yaml writes it)")
        return ", ".join(parts)

    @property
    def arguments(self) -> list[str] | None:
        """Arguments of the corrected fit; None outside the command line or without its map."""
        from taufit.cli.parts.next_step import correct_arguments
        from taufit.cli.parts.repeated_fit import fit_arguments

        arguments = fit_arguments.get()
        return correct_arguments(arguments, self.remedy, self.map) if arguments else None

    @property
    def next_line(self) -> str:
        """Line with the corrected command; "" outside the command line."""
        from taufit.cli.parts.next_step import next_step
        from taufit.cli.parts.repeated_fit import fit_arguments

        if not fit_arguments.get():
            return ""
        if self.arguments is not None:
            return "\n" + next_step("fit", *self.arguments)
        options = ("--write-map", "corrected_map.yaml", "--apply-remedy")
        return "\n" + next_step("fit", *fit_arguments.get(), *options)

    def fit_again(self, error: Exception, result: ResultOptions) -> None:
        """Fit with the corrections of a refusal in place of the present command."""
        import sys

        from taufit.cli.app import run_typer_app
        from taufit.cli.parts.repeated_fit import expand_again

        print(f"{error}\nCorrected: {self.description}. Fitted again with it:", file=sys.stderr)
        assert self.arguments is not None
        words = [*self.arguments, "-o", str(result.output)]
        words += [] if result.report is None else ["--report", str(result.report)]
        words += ["--json"] if result.as_json else []
        # A further fault is corrected in another file: none is read and written at once.
        if result.write_map is not None and self.map is not None:
            name = f"{result.write_map.stem}_2{result.write_map.suffix}"
            words += ["--write-map", str(result.write_map.with_name(name)), "--apply-remedy"]
        run_typer_app("fit", expand_again(words))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        written = {} if self.map is None else {"map_file": str(self.map)}
        return {**self.remedy.to_dict(), **written}


def write_corrected_map(
    findings: Sequence[Finding],
    paths: Sequence[Path],
    source: RecordingOptions,
    robot: str,
    output: Path | None,
) -> CorrectedMap | None:
    """Remedy of findings, with the corrected column map written if needed; None without remedy."""
    from taufit.recording.map.edited_map import apply_edits
    from taufit.recording.map.remedy import combine_remedies

    remedy = combine_remedies(f.remedy for f in findings if f.severity != "info")
    if remedy is None:
        return None
    if output is None or not remedy.edits:
        return CorrectedMap(remedy, None)
    import yaml

    from taufit.core.files import write_text

    page = apply_edits(_present_map(paths[0], source, robot), remedy.edits)
    write_text(output, yaml.safe_dump(page, sort_keys=False, default_flow_style=None))
    return CorrectedMap(remedy, output)


def _present_map(path: Path, source: RecordingOptions, robot: str) -> Mapping[str, Any]:
    """Column map of the recording, or one that reads it in the same way."""
    from taufit.recording.column_map import read_page
    from taufit.workflow.draft import draft_files

    if source.map is not None:
        return read_page(source.map)
    draft = draft_files([path], robot=robot, topic=source.topic).draft
    if draft is not None:
        return draft.page
    return _native_map(replace(source, start=None, end=None).runs(path)[0])


def _native_map(recording: Any) -> dict[str, Any]:
    """Column map of a file in taufit's format."""
    from taufit.recording.quantity import QUANTITIES, SIGNALS

    signal = {"A": "current", "N m": "torque"}.get(recording.signal_unit, "signal")
    columns = {
        name: f"{spec.prefix}_{{joint}}" if spec.per_joint else spec.prefix
        for name, spec in QUANTITIES.items()
        if (name not in SIGNALS or name == signal)
        and getattr(recording, spec.field, None) is not None
        and name != "payload"
    }
    page: dict[str, Any] = {"columns": columns}
    if recording.gain is not None and signal != "torque":
        page["gains"] = recording.gain.tolist()
    return page
