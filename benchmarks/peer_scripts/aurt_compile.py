"""AURT's symbolic rigid-body dynamics of a UR10e, in so many CPU seconds at most.

python -m peer_scripts.aurt_compile JOINTS SECONDS         prints {"cpu": ..., "finished": ...}
"""

from __future__ import annotations

import json
import logging
import math
import os
import resource
import sys
import tempfile

# The UR10e's modified DH table, as Universal Robots publishes it: d, a and alpha before the joint.
D = (0.0, 0.1807, 0.0, 0.0, 0.17415, 0.11985, 0.11655)
A = (0.0, 0.0, -0.6127, -0.57155, 0.0, 0.0, 0.0)
ALPHA = (0.0, math.pi / 2, 0.0, 0.0, math.pi / 2, -math.pi / 2, 0.0)


def compile_arm(joints: int) -> None:
    import sympy
    from aurt.caching import PersistentPickleCache
    from aurt.data_processing import ModifiedDH
    from aurt.rigid_body_dynamics import RigidBodyDynamics

    n = joints + 1
    angles = [sympy.Integer(0), *(sympy.symbols(f"q{j}") for j in range(1, n))]
    table = ModifiedDH(list(D[:n]), list(A[:n]), list(ALPHA[:n]), angles)
    with tempfile.TemporaryDirectory() as place:
        cache = PersistentPickleCache(place)
        RigidBodyDynamics(logging.getLogger("aurt"), table, cache, multi_processing=False)


def main(joints: int, seconds: int) -> None:
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        compile_arm(joints)
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "finished": float(status == 0)}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
