"""KUKA LWR4+: two runs of one course in which five joints move by one signal."""

from benchmarks.open.arm import Arm, Section, Split, mapped, parts

FIRST = "kuka_lwr4/lwr4_run1.csv.gz"
SECOND = "kuka_lwr4/lwr4_run2.csv.gz"

ARM = Arm(
    title="KUKA LWR4+",
    source="github kjyv/FloBaRoID (e6c077e)",
    licence="LGPL-3.0",
    torque="joint torque sensors",
    torque_source="joint_torque_sensor",
    robot="kuka_lwr4/kuka_lwr4.urdf",
    read=mapped("lwr4_csv.yaml"),
    cutoff_hz=8.0,
    splits={
        "unseen motion": parts(FIRST, (0, 3000), (3100, 5027)),
        "short data": parts(FIRST, (0, 1500), (3100, 5027)),
        "poor excitation": Split((Section(FIRST),), (Section(SECOND),)),
    },
    why_not={"other day": "both runs follow each other"},
)
