"""Numbers of statistics that several rooms share."""

from __future__ import annotations

# Half the width of a 95 % interval of a normal distribution, in standard deviations.
NORMAL_95 = 1.959963984540054
