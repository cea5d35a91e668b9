// y = (b/a) x along contiguous rows, in direct form II transposed, with state carried in and out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstring>
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

// Columns that are filtered side by side: the recursion of one does not wait for the others.
constexpr size_t SIDE = 8;

#if defined(TAUFIT_X86) && defined(__GNUC__) && !defined(__clang__)
#define TAUFIT_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define TAUFIT_CLONES
#endif

// A pair of sections along time over SIDE columns in place, each from its state in a constant input:
// the second works on a sample while the first works on the next.
TAUFIT_CLONES
void sections_along(const double *k, const double *rest, const double *first, double *at,
                    ptrdiff_t step, size_t rows) {
  const double b0 = k[0], b1 = k[1], b2 = k[2], a1 = k[4], a2 = k[5];
  const double d0 = k[6], d1 = k[7], d2 = k[8], c1 = k[10], c2 = k[11];
  double s0[SIDE], s1[SIDE], r0[SIDE], r1[SIDE];
  for (size_t c = 0; c < SIDE; c++) {
    s0[c] = rest[0] * first[c];
    s1[c] = rest[1] * first[c];
    r0[c] = rest[2] * first[c];
    r1[c] = rest[3] * first[c];
  }
  for (size_t t = 0; t < rows; t++, at += step)
    for (size_t c = 0; c < SIDE; c++) {
      const double x = at[c], y = b0 * x + s0[c], z = d0 * y + r0[c];
      s0[c] = b1 * x - a1 * y + s1[c];
      s1[c] = b2 * x - a2 * y;
      r0[c] = d1 * y - c1 * z + r1[c];
      r1[c] = d2 * y - c2 * z;
      at[c] = z;
    }
}

using Signals = nb::ndarray<const double, nb::ndim<3>, nb::device::cpu>;
using WritableSignals = nb::ndarray<double, nb::ndim<3>, nb::device::cpu>;

// Forwards and backwards through pairs of second-order sections, along the first axis; beyond both
// ends the signal goes on for `pad` samples as its point reflection.
void zero_phase(Signals x, Rows sections, Rows rest, size_t pad, WritableSignals out) {
  const size_t n = x.shape(0), inner = x.shape(2), c = x.shape(1) * inner;
  const size_t count = sections.shape(0);
  if (sections.shape(1) != 6 || rest.shape(0) != count || rest.shape(1) != 2 || count % 2 ||
      out.shape(0) != n || out.shape(1) != x.shape(1) || out.shape(2) != inner || n < 2 || pad >= n)
    throw std::invalid_argument("zero_phase: shapes of signal, sections and result do not agree");
  nb::gil_scoped_release release;
  const ptrdiff_t reading = x.stride(0), writing = out.stride(0);
  const ptrdiff_t size = static_cast<ptrdiff_t>(n), margin = static_cast<ptrdiff_t>(pad);
  const ptrdiff_t step = static_cast<ptrdiff_t>(SIDE);
  std::vector<double> work((n + 2 * pad) * SIDE, 0.0);
  double first[SIDE];
  for (size_t from = 0; from < c; from += SIDE) {
    const size_t width = c - from < SIDE ? c - from : SIDE;
    double *to[SIDE];
    for (size_t k = 0; k < width; k++) {
      const ptrdiff_t i = static_cast<ptrdiff_t>((from + k) / inner);
      const ptrdiff_t j = static_cast<ptrdiff_t>((from + k) % inner);
      const double *in = x.data() + i * x.stride(1) + j * x.stride(2);
      const double twice_last = 2.0 * in[(size - 1) * reading];
      double *at = work.data() + k;
      for (ptrdiff_t t = margin; t > 0; t--, at += step) *at = 2.0 * in[0] - in[t * reading];
      for (ptrdiff_t t = 0; t < size; t++, at += step) *at = in[t * reading];
      for (ptrdiff_t t = size - 2; t >= size - 1 - margin; t--, at += step)
        *at = twice_last - in[t * reading];
      to[k] = out.data() + i * out.stride(1) + j * out.stride(2);
    }
    double *begin = work.data(), *end = begin + (n + 2 * pad - 1) * SIDE;
    std::memcpy(first, begin, sizeof first);
    for (size_t s = 0; s < count; s += 2)
      sections_along(sections.data() + 6 * s, rest.data() + 2 * s, first, begin, step, n + 2 * pad);
    std::memcpy(first, end, sizeof first);
    for (size_t s = 0; s < count; s += 2)
      sections_along(sections.data() + 6 * s, rest.data() + 2 * s, first, end, -step, pad + n);
    for (size_t k = 0; k < width; k++) {
      const double *at = work.data() + pad * SIDE + k;
      for (ptrdiff_t t = 0; t < size; t++, at += step) to[k][t * writing] = *at;
    }
  }
}

}  // namespace

void bind_recursive_filter(nb::module_ &m) {
  m.def("recursive_filter", &recursive_filter, nb::arg("b").noconvert(), nb::arg("a").noconvert(),
        nb::arg("x").noconvert(), nb::arg("y").noconvert(), nb::arg("state").noconvert());
  m.def("zero_phase", &zero_phase, nb::arg("x").noconvert(), nb::arg("sections").noconvert(),
        nb::arg("rest").noconvert(), nb::arg("pad"), nb::arg("out").noconvert());
}
