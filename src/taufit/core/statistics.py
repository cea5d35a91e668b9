"""Quantiles of common distributions."""

from __future__ import annotations

# Half width of the 95 % interval of a normal distribution, in standard deviations.
NORMAL_95 = 1.959963984540054


def normal_upper_quantile(probability: float) -> float:
    """Upper quantile of the standard normal distribution."""
    from scipy.special import ndtri

    return float(-ndtri(probability))


def chi2_upper_quantile(probability: float, freedom: int) -> float:
    """Upper quantile of the chi-square distribution."""
    from scipy.special import chdtri

    return float(chdtri(freedom, probability))


def student_t_upper_quantile(probability: float, freedom: float) -> float:
    """Upper quantile of Student's t distribution."""
    from scipy.special import stdtrit

    return float(-stdtrit(freedom, probability))
