"""KUKA Quantec Ultra KR300: two runs of 10 s; joint zeros and counterbalance are not documented."""

from benchmarks.open.arm import Arm, Section, Split, mapped

FIRST = "kuka_kr300/kr300_runA.csv.gz"
SECOND = "kuka_kr300/kr300_runB.csv.gz"

ARM = Arm(
    title="KUKA KR300",
    source="github JonasWeigand/Robot_Identification (9e403c0)",
    licence="MIT",
    torque="motor torque times gear ratio",
    torque_source="motor_torque",
    robot="examples/arms/kr300.yaml",
    read=mapped("kr300_csv.yaml"),
    splits={
        "unseen motion": Split((Section(FIRST),), (Section(SECOND),)),
        "short data": Split((Section(FIRST, 330, 1330),), (Section(SECOND),)),
    },
    why_not={"poor excitation": "two exciting runs", "other day": "dates are not documented"},
)
