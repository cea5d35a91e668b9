// A reference motion for the loops beside it: every joint swings about the pose it starts from.
#pragma once

#include <cmath>

struct Reference {
  double size = 0.15, rate = 1.2, duration = 8.0;  // rad, rad/s, s

  // Position relative to the start, velocity, acceleration: at rest at both ends.
  void at(double t, int joint, double *q, double *v, double *a) const {
    const double w = rate * (1.0 + 0.15 * joint);
    const double s = std::fmin(std::fmax(t / duration, 0.0), 1.0);
    // (4 s (1 - s))^3 and its derivatives in time.
    const double u = 4.0 * s * (1.0 - s), du = 4.0 * (1.0 - 2.0 * s) / duration;
    const double ddu = -8.0 / (duration * duration);
    const double fade = u * u * u, dfade = 3.0 * u * u * du;
    const double ddfade = 6.0 * u * du * du + 3.0 * u * u * ddu;
    const double wave = std::sin(w * t), dwave = w * std::cos(w * t);
    *q = size * fade * wave;
    *v = size * (dfade * wave + fade * dwave);
    *a = size * (ddfade * wave + 2.0 * dfade * dwave - fade * w * w * wave);
  }
};
