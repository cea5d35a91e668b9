"""Numbers of statistics that several rooms share."""

from __future__ import annotations

# Half the width of a 95 % interval of a normal distribution, in standard deviations.
NORMAL_95 = 1.959963984540054


def normal_upper_quantile(probability: float) -> float:
    """The standard normal value that is exceeded with this chance."""
    from scipy.special import ndtri

    return float(-ndtri(probability))


def chi2_upper_quantile(probability: float, freedom: int) -> float:
    """The value that a sum of squares of so many standard normal ones exceeds with this chance."""
    from scipy.special import chdtri

    return float(chdtri(freedom, probability))


def student_t_upper_quantile(probability: float, freedom: float) -> float:
    """The value that Student's t with so many degrees of freedom exceeds with this chance."""
    from scipy.special import stdtrit

    return float(-stdtrit(freedom, probability))
