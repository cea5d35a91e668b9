// Checks of every incoming sample; signals/stream/row_screen.py and spike_detector.py have them in NumPy.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace nb = nanobind;

namespace {

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Numbers = std::vector<double>;

void require(bool right, const char *message) {
  if (!right) throw std::invalid_argument(message);
}

Numbers copied(const Vector &x) { return Numbers(x.data(), x.data() + x.shape(0)); }

enum Bit { MEASURED = 1, HELD = 2, MOVES = 4 };

// Rows are positions, velocities and torques side by side.
class Screen {
public:
  Screen(Vector largest, double standstill) : largest(copied(largest)), standstill(standstill) {
    require(largest.shape(0) % 3 == 0, "Screen: three channels per joint");
  }

  int look(Vector row) const {
    const size_t c = largest.size(), j = c / 3;
    require(row.shape(0) == c, "Screen: three channels per joint");
    const double *x = row.data();
    bool inside = true, same = !held.empty(), moves = false;
    // Comparisons with nan are false, so this also sees what is missing.
    for (size_t i = 0; i < c; i++) inside = inside && std::fabs(x[i]) < largest[i];
    for (size_t i = 0; i < held.size(); i++) same = same && x[2 * j + i] == held[i];
    for (size_t i = j; i < 2 * j; i++) moves = moves || std::fabs(x[i]) > standstill;
    return (inside ? MEASURED : 0) | (same ? HELD : 0) | (moves ? MOVES : 0);
  }

  void hold(Vector row) {
    require(row.shape(0) == largest.size(), "Screen: three channels per joint");
    held.assign(row.data() + 2 * (largest.size() / 3), row.data() + largest.size());
  }

private:
  Numbers largest, held;
  double standstill;
};

class SpikeGuard {
public:
  SpikeGuard(Vector floor, double sigmas, double middle, double back, double memory, double fewest)
      : floor(copied(floor)), scale(floor.shape(0), 0.0), value(floor.shape(0), 0.0),
        slope(floor.shape(0), 0.0), error(floor.shape(0), 0.0), sigmas(sigmas), middle(middle),
        back(back), memory(memory), fewest(fewest) {}

  void clear() { known = 0; }

  bool suspicious(double time, Vector values) {
    if (!foretell(time, values) || count < fewest) return false;
    for (size_t i = 0; i < floor.size(); i++)
      if (error[i] > std::fmax(floor[i], sigmas * scale[i])) return true;
    return false;
  }

  bool is_spike(double time, Vector values, double later, Vector after) const {
    fits(values);
    fits(after);
    if (known < 1) return false;
    const double share = (time - last) / (later - last);
    for (size_t i = 0; i < floor.size(); i++) {
      const double way = after.data()[i] - value[i];
      const double off = std::fabs(values.data()[i] - value[i] - share * way);
      if (off > std::fmax(floor[i], sigmas * middle * scale[i]) && std::fabs(way) < back * off)
        return true;
    }
    return false;
  }

  void accept(double time, Vector values) {
    const bool foretold = foretell(time, values);
    if (foretold) count += 1.0;
    const double weight = 1.0 / std::fmin(std::fmax(count, 1.0), memory);
    for (size_t i = 0; i < floor.size(); i++) {
      if (foretold) {
        double off = error[i];
        if (count > std::floor(0.5 * memory))
          off = std::fmin(off, 4.0 * std::fmax(scale[i], 0.1 * floor[i]));
        scale[i] += (off - scale[i]) * weight;
      }
      if (known) slope[i] = (values.data()[i] - value[i]) / (time - last);
      value[i] = values.data()[i];
    }
    known = known ? 2 : 1;
    last = time;
  }

private:
  void fits(const Vector &x) const {
    require(x.shape(0) == floor.size(), "SpikeGuard: as many values as channels");
  }

  // How far values are from where their channels were going; false where that is not known.
  bool foretell(double time, const Vector &values) {
    fits(values);
    if (known < 2) return false;
    for (size_t i = 0; i < floor.size(); i++)
      error[i] = std::fabs(values.data()[i] - value[i] - (time - last) * slope[i]);
    return true;
  }

  Numbers floor, scale, value, slope, error;
  double sigmas, middle, back, memory, fewest, count = 0.0, last = 0.0;
  // Samples in a row that are known: 0, 1, or 2 for a line.
  int known = 0;
};

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Writable = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Value at a fraction of the sorted values, between two neighbours on their line.
double quantile(Numbers &x, double fraction) {
  const double at = fraction * static_cast<double>(x.size() - 1);
  const size_t low = static_cast<size_t>(at);
  std::nth_element(x.begin(), x.begin() + low, x.end());
  if (low + 1 >= x.size()) return x[low];
  const double first = x[low], second = *std::min_element(x.begin() + low + 1, x.end());
  return first + (at - static_cast<double>(low)) * (second - first);
}

// signals/noise.py's standard deviation without values above three of it.
double clipped_std(const Numbers &magnitude, Numbers &sorted, double clip, double clipped) {
  sorted = magnitude;
  const double top = quantile(sorted, 0.99);
  double squares = 0.0;
  for (const double x : magnitude) squares += std::min(x, top) * std::min(x, top);
  const double rms = std::sqrt(squares / static_cast<double>(magnitude.size()));
  double found = 1.4826 * quantile(sorted, 0.5);
  for (int round = 0; round < 8; round++) {
    double inside = 0.0, count = 0.0;
    for (const double x : magnitude)
      if (x <= clip * found) inside += x * x, count += 1.0;
    const double before = found;
    found = std::sqrt(inside / std::max(count, 1.0)) / clipped;
    if (found == before) break;
  }
  return found > 0.1 * rms ? found : rms;
}

// The smallest of the levels of white noise that differences of three orders show, per column.
void noise_std(Matrix columns, double clip, double clipped, Writable out) {
  const size_t n = columns.shape(0), c = columns.shape(1);
  require(out.shape(0) == c && n > 8, "noise_std: shapes do not agree");
  const double variance[] = {6.0, 20.0, 70.0};  // of differences of order 2, 3, 4
  Numbers difference, magnitude, sorted;
  for (size_t k = 0; k < c; k++) {
    difference.resize(n);
    for (size_t i = 0; i < n; i++) difference[i] = columns.data()[i * c + k];
    double least = INFINITY;
    for (int order = 1; order <= 4; order++) {
      for (size_t i = 0; i + 1 < difference.size(); i++)
        difference[i] = difference[i + 1] - difference[i];
      difference.pop_back();
      if (order == 1) continue;
      magnitude.resize(difference.size());
      for (size_t i = 0; i < magnitude.size(); i++) magnitude[i] = std::fabs(difference[i]);
      least = std::min(least,
                       clipped_std(magnitude, sorted, clip, clipped) / std::sqrt(variance[order - 2]));
    }
    out.data()[k] = least;
  }
}

// Slope at the middle of three samples where velocity is derived, the measured velocity elsewhere.
void derived_velocity(Vector before, Vector value, Vector after, double back, double ahead,
                      Flags derived, Vector measured, Writable out) {
  const size_t j = out.shape(0);
  require(before.shape(0) == j && value.shape(0) == j && after.shape(0) == j &&
              derived.shape(0) == j && measured.shape(0) == j,
          "derived_velocity: shapes do not agree");
  for (size_t i = 0; i < j; i++) {
    const double x = value.data()[i], backward = (x - before.data()[i]) / back;
    const double forward = (after.data()[i] - x) / ahead;
    out.data()[i] = derived.data()[i] ? (ahead * backward + back * forward) / (back + ahead)
                                      : measured.data()[i];
  }
}

}  // namespace

void bind_intake(nb::module_ &m) {
  nb::class_<Screen>(m, "Screen", "Whether a row of values can be a measurement.")
      .def(nb::init<Vector, double>(), nb::arg("largest"), nb::arg("standstill"))
      .def("look", &Screen::look, nb::arg("row"))
      .def("hold", &Screen::hold, nb::arg("row"));
  nb::class_<SpikeGuard>(m, "SpikeGuard", "Noise of every channel, and what is out of its reach.")
      .def(nb::init<Vector, double, double, double, double, double>(), nb::arg("floor"),
           nb::arg("sigmas"), nb::arg("middle"), nb::arg("back"), nb::arg("memory"),
           nb::arg("fewest"))
      .def("clear", &SpikeGuard::clear)
      .def("suspicious", &SpikeGuard::suspicious, nb::arg("time"), nb::arg("values"))
      .def("is_spike", &SpikeGuard::is_spike, nb::arg("time"), nb::arg("values"), nb::arg("later"),
           nb::arg("after"))
      .def("accept", &SpikeGuard::accept, nb::arg("time"), nb::arg("values"));
  m.def("noise_std", &noise_std, nb::arg("columns").noconvert(), nb::arg("clip"),
        nb::arg("clipped"), nb::arg("out").noconvert());
  m.def("derived_velocity", &derived_velocity, nb::arg("before").noconvert(),
        nb::arg("value").noconvert(), nb::arg("after").noconvert(), nb::arg("back"),
        nb::arg("ahead"), nb::arg("derived").noconvert(), nb::arg("measured").noconvert(),
        nb::arg("out").noconvert());
}
