"""Servo arms without torque. In: a `Robot` and recordings of commands and positions. Out: a
`ServoModel` scored by open-loop replay.

Elsewhere: torque models (fitting), files of simulators (export).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.servo.estimate import STAGES as STAGES, estimate_servo as estimate_servo
    from taufit.servo.identify import (
        ServoIdentification as ServoIdentification,
        compare_run as compare_run,
        identify_servo as identify_servo,
    )
    from taufit.servo.model import (
        ServoModel as ServoModel,
        is_servo_file as is_servo_file,
        read_servo_model as read_servo_model,
        write_servo_model as write_servo_model,
    )
    from taufit.servo.motion import (
        CommandedMotion as CommandedMotion,
        commanded_motions as commanded_motions,
    )
    from taufit.servo.parameters import Floor as Floor, ServoParameters as ServoParameters

lazy_package(__name__)
