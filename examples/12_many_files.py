"""Fit a model to many recordings that are read one at a time, and score it on each of them."""

from pathlib import Path

from taufit.recording import read_recordings, write_recording
from taufit.recording.files import RecordingFiles
from taufit.sim import read_preset
from taufit.workflow import identify

preset = read_preset("ur10-paper")
motion = preset.motion(periods=2)
folder = Path("out/recordings")
for seed in range(5):
    run = preset.twin.run(motion, seed=seed)
    write_recording(run.recording, folder / f"run_{seed}.parquet")

# Only one file's rows are in memory at a time. `processes=None` shares the files among all
# processors; behind `if __name__ == "__main__":`, as everywhere in Python.
files = RecordingFiles(tuple(sorted(folder.glob("*.parquet"))), read_recordings)
done = identify(preset.twin.robot, files)

print(f"{len(files)} files, {done.training_score.seconds:.0f} s of motion")
print(f"mean nrmse over all of them: {done.training_score.mean_nrmse:.3f}")
for score in done.files:
    print(f"  {Path(score.file).name}: {score.mean_nrmse:.3f}")
