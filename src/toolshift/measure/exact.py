"""Exact limits of the mean of a bounded variable, without a distribution being assumed.

The bounds of Gaffke (2005) and Learned-Miller and Thomas (2019, arXiv:1905.06208): the upper
limit is a quantile of the Dirichlet(1, ..., 1) weighted mean of the values and one added highest
value; the lower limit adds a lowest value. Where the values take two extremes only, this is
Clopper-Pearson. Its general coverage is a conjecture that no simulation, ours included, has
contradicted.
"""

from __future__ import annotations

from functools import lru_cache
from math import sqrt

import numpy as np
import scipy  # type: ignore[import-untyped, unused-ignore]  # parts load at their first use
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Trapezoid nodes along the contour, in units of asinh(distance / saddle width).
_STEP = 0.03
_OFFSETS = np.sinh(np.arange(0.0, 11.0, _STEP))
_WEIGHTS = np.sqrt(1 + _OFFSETS**2) * _STEP / np.pi
_WEIGHTS[0] /= 2
_NODES = 32
"""Nodes that are taken at once."""
_NEGLIGIBLE = 60.0
"""What is smaller than the first term by a factor of exp(60), 1e26, changes no digit of the sum."""


def exact_limits(
    values: Floats, bounds: tuple[float, float], confidence: float
) -> tuple[float, float]:
    """The lower and the upper limit of the mean of values that lie within ``bounds``.

    Args:
        values: one a task, shape (tasks,).
        bounds: the least and the greatest that a value can be.
        confidence: two-sided.

    Returns:
        Limits within the bounds.
    """
    if values.size > _MAX_KEPT:
        return _limits(values, bounds, confidence)
    return _kept_limits(np.sort(np.asarray(values, np.float64)).tobytes(), bounds, confidence)


def exact_p_value(values: Floats, least: float, at: float) -> float:
    """One-sided p value of a true mean of ``at`` or less, for values of ``least`` or more.

    The test that the lower limit of ``exact_limits`` inverts; negate everything for the upper.

    Args:
        values: one a task, shape (tasks,).
        least: the least that a value can be.
        at: the mean that is tested.

    Returns:
        From 0 to 1.
    """
    if values.size > _MAX_KEPT:
        return dirichlet_cdf(*_masses(values, least), at)
    return _kept_p_value(np.sort(np.asarray(values, np.float64)).tobytes(), least, at)


def dirichlet_cdf(points: Floats, masses: Floats, at: float) -> float:
    """P(Dirichlet-weighted mean <= at).

    Dirichlet weights are normalised gammas, so the event is that a sum of
    gammas G_j * (points_j - at) is not positive. The chance of a positive sum is
    the Bromwich integral of exp(K(s)) / s, K the cumulant generating function,
    taken through the saddlepoint (Helstrom 1996) so that it does not oscillate.

    Args:
        points: where the weights lie, ascending, shape (points,).
        masses: how often each counts, same shape.
        at: the mean.

    Returns:
        From 0 to 1.
    """
    gaps = points - at
    if gaps[-1] <= 0 or gaps[0] >= 0:
        return 1.0 if gaps[-1] <= 0 else 0.0
    if points.size == 2:
        return float(scipy.special.betainc(masses[1], masses[0], -gaps[0] / (gaps[1] - gaps[0])))
    gaps = gaps / gaps[-1]

    def slope(s: float) -> float:
        return float(masses @ (gaps / (1 - s * gaps))) - 1 / s

    saddle = scipy.optimize.brentq(slope, 1e-14, 1 - 1e-14)
    width = 1 / sqrt(float(masses @ (gaps / (1 - saddle * gaps)) ** 2) + saddle**-2)
    contour = saddle + 1j * width * _OFFSETS
    integrand, first = np.zeros(contour.size, np.complex128), 0.0
    for start in range(0, contour.size, _NODES):
        nodes = contour[start : start + _NODES]
        log_integrand = -(masses @ np.log1p(-np.outer(gaps, nodes))) - np.log(nodes)
        integrand[start : start + _NODES] = np.exp(log_integrand)
        first = first or log_integrand[0].real
        if log_integrand[-1].real < first - _NEGLIGIBLE:  # it falls all along the contour
            break
    above = width * float(_WEIGHTS @ integrand.real)
    return min(1.0, max(0.0, 1 - above))


def _masses(values: Floats, added: float) -> tuple[Floats, Floats]:
    """Distinct values and their Dirichlet masses, after adding one extreme value."""
    # Rounding joins values that differ by arithmetic only, such as 0.1 + 0.2 and 0.3.
    points, counts = np.unique(np.append(values, added).round(12), return_counts=True)
    return points, counts.astype(np.float64)


def _quantile(points: Floats, masses: Floats, tail: float) -> float:
    """The ``tail`` quantile of the Dirichlet-weighted mean of ``points``."""
    if points.size == 1:
        return float(points[0])
    if points.size == 2:
        share = scipy.special.betaincinv(masses[1], masses[0], tail)
        return float(points[0] + (points[1] - points[0]) * share)

    def excess(at: float) -> float:
        return dirichlet_cdf(points, masses, at) - tail

    return float(scipy.optimize.brentq(excess, points[0], points[-1], xtol=1e-9))


def _limits(values: Floats, bounds: tuple[float, float], confidence: float) -> tuple[float, float]:
    tail = 0.5 - confidence / 2
    low = _quantile(*_masses(values, bounds[0]), tail)
    high = -_quantile(*_masses(-values, -bounds[1]), tail)
    return low, high


# Many rows of a report have the same scores, in another order of the tasks.
_MAX_KEPT = 500
"""Tasks up to which limits and p values are kept, so that what is kept stays small."""


@lru_cache(maxsize=1024)
def _kept_limits(
    values: bytes, bounds: tuple[float, float], confidence: float
) -> tuple[float, float]:
    return _limits(np.frombuffer(values), bounds, confidence)


@lru_cache(maxsize=1024)
def _kept_p_value(values: bytes, least: float, at: float) -> float:
    return dirichlet_cdf(*_masses(np.frombuffer(values), least), at)
