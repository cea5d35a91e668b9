// y = (b/a) x along contiguous rows, in direct form II transposed, with state carried in and out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>
#include <vector>

namespace nb = nanobind;

namespace {

using Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Writable = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void second_order(const double *b, const double *a, const double *x, double *y, size_t n,
                  double *state) {
  double s0 = state[0], s1 = state[1];
  const double b0 = b[0], b1 = b[1], b2 = b[2], a1 = a[1], a2 = a[2];
  for (size_t i = 0; i < n; i++) {
    const double in = x[i], out = b0 * in + s0;
    s0 = b1 * in - a1 * out + s1;
    s1 = b2 * in - a2 * out;
    y[i] = out;
  }
  state[0] = s0;
  state[1] = s1;
}

void any_order(const double *b, const double *a, const double *x, double *y, size_t n,
               double *state, size_t order) {
  for (size_t i = 0; i < n; i++) {
    const double in = x[i], out = b[0] * in + (order ? state[0] : 0.0);
    for (size_t k = 0; k + 1 < order; k++) state[k] = b[k + 1] * in - a[k + 1] * out + state[k + 1];
    if (order) state[order - 1] = b[order] * in - a[order] * out;
    y[i] = out;
  }
}

// b and a have equal length, a[0] = 1; state has one row of length order per row of x.
void recursive_filter(Vector b, Vector a, Rows x, Writable y, Writable state) {
  const size_t rows = x.shape(0), n = x.shape(1);
  const size_t order = b.shape(0) ? b.shape(0) - 1 : 0;
  if (b.shape(0) == 0 || a.shape(0) != b.shape(0) || y.shape(0) != rows || y.shape(1) != n ||
      state.shape(0) != rows || state.shape(1) != order)
    throw std::invalid_argument("filter: shapes of coefficients, signals and state do not agree");
  nb::gil_scoped_release release;
  for (size_t r = 0; r < rows; r++) {
    const double *in = x.data() + r * n;
    double *out = y.data() + r * n, *own = state.data() + r * order;
    if (order == 2)
      second_order(b.data(), a.data(), in, out, n, own);
    else
      any_order(b.data(), a.data(), in, out, n, own, order);
  }
}

}  // namespace

void bind_recursive_filter(nb::module_ &m) {
  m.def("recursive_filter", &recursive_filter, nb::arg("b").noconvert(), nb::arg("a").noconvert(),
        nb::arg("x").noconvert(), nb::arg("y").noconvert(), nb::arg("state").noconvert());
}
