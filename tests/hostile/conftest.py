"""A model, a recording and a motion to damage; made once."""

from __future__ import annotations

import pytest

from taufit.cli import main


@pytest.fixture(scope="session")
def arm(tmp_path_factory):
    """A folder with a recording, a possible model, a motion and a column map of one arm."""
    folder = tmp_path_factory.mktemp("arm")
    for words in (
        ["simulate", "ur3", "-o", folder / "run.parquet"],
        ["fit", "ur3", folder / "run.parquet", "--friction", "linear",
         "--estimator", "consistent_sdp", "-o", folder / "model.json"],
        ["design", "ur3", "--seconds", "0.1", "--free-space", "-o", folder / "motion.json"],
    ):  # fmt: skip
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        assert not stop.value.code, words
    return folder
