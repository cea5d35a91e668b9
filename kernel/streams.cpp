// Loops along time that carry something from sample to sample, or thin a stream out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <stdexcept>

namespace nb = nanobind;

namespace {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Writable = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using State = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

double sign(double x) { return (x > 0.0) - (x < 0.0); }

// Dahl states of one joint for several widths: z -> a z + (1 - a) sign(d) along each leg of
// displacement d, a = exp(-|d| / w). `state` holds the z's and `before` the travel of the sample
// that came before the first one here; both are left as the last sample leaves them.
void dahl_scan(Vector travel, Vector widths, double before, State state, Writable out) {
  const size_t n = travel.shape(0), k = widths.shape(0);
  if (state.shape(0) != k || out.shape(0) != n || out.shape(1) != k)
    throw std::invalid_argument("dahl_scan: shapes of travel, widths, state and out do not agree");
  nb::gil_scoped_release release;
  const double *u = travel.data(), *w = widths.data();
  double *z = state.data(), *to = out.data();
  for (size_t t = 0; t < n; t++, to += k) {
    const double after = u[t];
    const bool turns = before * after < 0.0;
    double there = 0.5 * (before + after), back = 0.0;
    if (turns) {
      const double span = 2.0 * (std::fabs(before) + std::fabs(after));
      there = before * std::fabs(before) / span;
      back = after * std::fabs(after) / span;
    }
    const double first = sign(there), second = sign(back);
    for (size_t i = 0; i < k; i++) {
      const double grown = -std::expm1(-std::fabs(there) / w[i]);
      double decay = 1.0 - grown, pull = grown * first;
      if (turns) {
        const double more = -std::expm1(-std::fabs(back) / w[i]);
        decay *= 1.0 - more;
        pull = pull * (1.0 - more) + more * second;
      }
      to[i] = z[i] = decay * z[i] + pull;
    }
    before = after;
  }
}

// Every factor-th row of x after a symmetric FIR filter; rows beyond the ends count as zero.
void decimate_rows(Matrix x, Vector taps, size_t factor, Writable out) {
  const size_t n = x.shape(0), c = x.shape(1), m = taps.shape(0);
  if (factor == 0 || m % 2 == 0 || out.shape(1) != c || out.shape(0) != (n + factor - 1) / factor)
    throw std::invalid_argument("decimate_rows: shapes of x, taps and out do not agree");
  nb::gil_scoped_release release;
  const size_t half = m / 2;
  for (size_t k = 0; k < out.shape(0); k++) {
    double *to = out.data() + k * c;
    for (size_t j = 0; j < c; j++) to[j] = 0.0;
    const size_t centre = k * factor;
    const size_t low = centre < half ? half - centre : 0;
    const size_t high = centre + half >= n ? n - centre + half : m;
    for (size_t i = low; i < high; i++) {
      const double weight = taps.data()[i];
      const double *row = x.data() + (centre + i - half) * c;
      for (size_t j = 0; j < c; j++) to[j] += weight * row[j];
    }
  }
}

}  // namespace

void bind_streams(nb::module_ &m) {
  m.def("dahl_scan", &dahl_scan, nb::arg("travel").noconvert(), nb::arg("widths").noconvert(),
        nb::arg("before"), nb::arg("state").noconvert(), nb::arg("out").noconvert());
  m.def("decimate_rows", &decimate_rows, nb::arg("x").noconvert(), nb::arg("taps").noconvert(),
        nb::arg("factor"), nb::arg("out").noconvert());
}
