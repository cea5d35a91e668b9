"""Open benchmark of torque models: arms x tools x tasks on fixed sections of public recordings.

    python -m benchmarks.open [--data FOLDER] [--arms NAME ...] [--tools NAME ...]

`arms/` has one file per arm (robot, reader, sections of its tasks), `tools/` one per tool (`fit`,
`predict` and, if the tool has them, `payload_mass`, `export`, `fit_servo`, `replay`). The referee
(`conditioning`, `scores`) needs none of the tools; every tool runs in a process of its own and
never gets the torque that its predictions are compared with. This package loads without taufit, so
that tools can be run in environments of their own.
"""
