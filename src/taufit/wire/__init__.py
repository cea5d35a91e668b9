"""Connections to running robots. In: a controller's address. Out: live samples, and motions played.

Not here: conditioning of samples (signals), design of motions (excitation).
"""

from taufit.wire.source import Gap, SampleBlock, Source, SourceDescription
from taufit.wire.ur import UrPorts, UrRtde

__all__ = ["Gap", "SampleBlock", "Source", "SourceDescription", "UrPorts", "UrRtde"]
