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
}
