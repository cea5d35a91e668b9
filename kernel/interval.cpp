// Half width of the interval about a predicted torque; live/prediction.py has it in NumPy.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "cells.h"
#include "engine.h"

namespace nb = nanobind;

namespace {

using namespace taufit;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

class Interval {
public:
  // Root of the covariance of the links' parameters, variance of noise by state, relative scatter of
  // friction, Coulomb friction, relative scatter of the gains, standard deviations per half width.
  Interval(Matrix root, Matrix noise, Vector scatter, Vector coulomb, double gain, double factor)
      : root(root), noise(noise), scatter(scatter), coulomb(coulomb), gain(gain), factor(factor),
        links(10 * scatter.shape(0) * scatter.shape(0)), sums(root.shape(1)) {
    const size_t j = scatter.shape(0);
    if (root.shape(0) != 10 * j || noise.shape(0) != STATES || noise.shape(1) != j ||
        coulomb.shape(0) != j || j < 1)
      throw std::invalid_argument("Interval: shapes do not agree");
  }

  void half_width(const Prepared &engine, Vector q, Vector v, Vector a, Indices state,
                  Vector friction, Vector rigid, Flags standing, Vector payload, double relative,
                  Values out) {
    const size_t j = scatter.shape(0), p = 10 * j, b = root.shape(1);
    const auto fits = [j](const auto &x) { return x.shape(0) == j; };
    if (static_cast<size_t>(engine.chain.joints) != j || !fits(q) || !fits(v) || !fits(a) ||
        !fits(state) || !fits(friction) || !fits(rigid) || !fits(standing) || !fits(out) ||
        payload.shape(0) != 10)
      throw std::invalid_argument("Interval: shapes of a step do not agree");
    engine.loops->regressor(engine.chain, {q.data(), v.data(), a.data()}, 0, 1, false, links.data(),
                            workspace(engine.loops->work_size(engine.chain.joints)));
    for (size_t i = 0; i < j; i++) {
      const int64_t s = state.data()[i];
      if (s < 0 || s >= STATES) throw std::invalid_argument("Interval: there is no such state");
      const double *row = links.data() + i * p;
      for (size_t k = 0; k < b; k++) sums[k] = 0.0;
      // Links before the joint do not load it.
      for (size_t c = 10 * i; c < p; c++) {
        const double w = row[c], *r = root.data() + c * b;
        for (size_t k = 0; k < b; k++) sums[k] += w * r[k];
      }
      double variance = noise.data()[static_cast<size_t>(s) * j + i];
      for (size_t k = 0; k < b; k++) variance += sums[k] * sums[k];
      const double rubs = scatter.data()[i] * friction.data()[i], drives = gain * rigid.data()[i];
      double carried = 0.0;
      for (size_t c = 0; c < 10; c++) carried += row[p - 10 + c] * payload.data()[c];
      variance += rubs * rubs + drives * drives + relative * carried * (relative * carried);
      out.data()[i] =
          factor * std::sqrt(variance) + (standing.data()[i] ? coulomb.data()[i] : 0.0);
    }
  }

private:
  Matrix root, noise;
  Vector scatter, coulomb;
  double gain, factor;
  std::vector<double> links, sums;
};

}  // namespace

void bind_interval(nb::module_ &m) {
  nb::class_<Interval>(m, "Interval", "Interval about a predicted torque.")
      .def(nb::init<Matrix, Matrix, Vector, Vector, double, double>(), nb::arg("root").noconvert(),
           nb::arg("noise").noconvert(), nb::arg("scatter").noconvert(),
           nb::arg("coulomb").noconvert(), nb::arg("gain"), nb::arg("factor"))
      .def("half_width", &Interval::half_width, nb::arg("engine"), nb::arg("q").noconvert(),
           nb::arg("v").noconvert(), nb::arg("a").noconvert(), nb::arg("state").noconvert(),
           nb::arg("friction").noconvert(), nb::arg("rigid").noconvert(),
           nb::arg("standing").noconvert(), nb::arg("payload").noconvert(), nb::arg("relative"),
           nb::arg("out").noconvert());
}
