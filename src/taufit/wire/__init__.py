"""Robots that are on. In: a controller's address. Out: samples as they come, and motions played.

Left to others: what the samples mean (signals), which motions are worth playing (excitation).
"""

from taufit.wire.source import Gap, SampleBlock, Source, SourceDescription
from taufit.wire.ur import UrPorts, UrRtde

__all__ = ["Gap", "SampleBlock", "Source", "SourceDescription", "UrPorts", "UrRtde"]
