"""A live page of a pretended robot."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace


@contextmanager
def watched(source=None, robot="ur10e", **more):
    """A dashboard of a pretended robot, served on a free port."""
    from pretended import Pretended, Ticking

    from taufit.live.batch_hub import BatchHub
    from taufit.live.dashboard import dashboard
    from taufit.live.server import open_server_socket, run_server
    from taufit.live.session import Session
    from taufit.robot import read_robot

    arm = read_robot(robot)
    hub = BatchHub()
    source = Ticking(arm.joints) if source is None else source
    session = Session(
        Pretended(), source, hub, detectable_steps=lambda _: [4.0] * arm.joints, **more
    )
    line, place = open_server_socket()
    app = dashboard(session, arm, place, about="a pretended robot")
    with run_server(app, line, place):
        session.start()
        try:
            yield SimpleNamespace(place=place, session=session, hub=hub, source=source, robot=arm)
        finally:
            session.stop()
