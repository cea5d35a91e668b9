"""Kinova Gen3: runs of 2 to 6 s, one of them warmer, two of a single joint."""

from benchmarks.open.arm import Arm, Section, Split, mapped

LONG = "kinova_gen3/RecordTrajectory_quadratic.csv.gz"
OTHER = "kinova_gen3/opti_traj_testing1.csv.gz"
WARM = "kinova_gen3/Trajectory1.csv.gz"
SECOND_JOINT = "kinova_gen3/joint_2_trapez.csv.gz"
LAST_JOINT = "kinova_gen3/joint_7_trapez.csv.gz"

ARM = Arm(
    title="Kinova Gen3",
    source="github wissem01chiha/dynamic-identification (3b3baef)",
    licence="MIT-like",
    torque="motor current times gain",
    torque_source="motor_torque",
    robot="kinova_gen3/gen3.urdf",
    read=mapped(
        {
            "torque_side": "motor",
            "columns": {
                "time": {"columns": "Time", "unit": "ms"},
                "position": "Position{joint}",
                "velocity": "Velocity{joint}",
                "torque": "TorqueCur{joint}",
            },
        }
    ),
    splits={
        "unseen motion": Split((Section(LONG),), (Section(OTHER),)),
        "short data": Split((Section(LONG, 1000, 2600),), (Section(OTHER),)),
        "poor excitation": Split((Section(SECOND_JOINT), Section(LAST_JOINT)), (Section(WARM),)),
        "other day": Split((Section(LONG),), (Section(WARM),)),
    },
)
