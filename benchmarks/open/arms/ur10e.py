"""Universal Robots UR10e: runs of several days, three with a payload, six of one joint each."""

import numpy as np

from benchmarks.open.arm import Arm, Section, Split, mapped

RUNS = "ur10e/identification_data/ur-{}.csv.gz"
JOINT = "ur10e/jointwise_motion/ur-20_01_22-joint_{}.csv.gz"
# Joint torque per ampere: the controller's ratio of target torque and target current at rest; that
# of joint 6 could not be measured and is taken from joint 5.
GAINS = np.array([11.976, 11.976, 9.839, 10.763, 10.763, 10.763])


def rows(name: str, first: int, last: int, mass: float = 0.0) -> Section:
    return Section(RUNS.format(name), first, last, mass)


TRAINING = (rows("20_02_10-30sec_12harm", 634, 3510),)
SAME_DAY = (rows("20_02_10-20sec_7harm", 543, 2500),)

ARM = Arm(
    title="Universal Robots UR10e",
    source="github shamilmamedov/dynamic_calibration (11af40e)",
    licence="no licence file",
    torque="motor current times the controller's gains",
    torque_source="motor_torque",
    robot="ur10e/ur10e.urdf",
    read=mapped("ur10e_csv.yaml", gain=GAINS),
    cutoff_hz=5.0,
    splits={
        "unseen motion": Split(TRAINING, SAME_DAY),
        "short data": Split((rows("20_02_10-30sec_12harm", 634, 1386),), SAME_DAY),
        "poor excitation": Split(tuple(Section(JOINT.format(j)) for j in range(1, 7)), SAME_DAY),
        "other day": Split(
            TRAINING,
            (
                rows("19_12_23_free", 0, 2005),
                rows("20_01_31-unload", 299, 2623),
                rows("20_02_19_14harm50sec", 194, 4966),
            ),
        ),
        "payload": Split(
            TRAINING,
            (
                rows("20_02_19_14harm50secLoad", 307, 5071, 2.805),
                rows("20_01_31-load", 369, 2881, 2.805),
                rows("20_01_13-load_2600", 249, 2274, 2.602),
            ),
        ),
    },
)
