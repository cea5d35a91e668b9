// The twin's inner loop: controller, friction, thermal states and integration around MuJoCo's own
// rigid-body functions, which come in as addresses so that nothing links against MuJoCo.
//
// sim/simulation_loop.py holds the same loop in Python; a test ties the two. Names of arrays are its names.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace nb = nanobind;

namespace {

using MjCall = void (*)(const void *, void *);
using MjMul = void (*)(const void *, void *, double *, const double *);

// Borrowed storage of arrays that the caller's dict keeps alive. No conversion is allowed: a
// converted copy would die here and its writes would be lost.
struct Arrays {
  nb::dict source;

  template <typename T> T *find(const char *name, size_t size) const {
    if (!source.contains(name)) throw std::invalid_argument(std::string("no array ") + name);
    auto array = nb::cast<nb::ndarray<T, nb::c_contig, nb::device::cpu>>(source[name], false);
    if (array.size() != size)
      throw std::invalid_argument(std::string(name) + " has the wrong size");
    return array.data();
  }
  double *real(const char *name, size_t size) const { return find<double>(name, size); }
  int64_t *whole(const char *name, size_t size) const { return find<int64_t>(name, size); }
  size_t count(const char *name) const {
    return nb::cast<nb::ndarray<nb::device::cpu>>(source[name], false).size();
  }
};

struct Friction {
  const double *table, *speed_grid, *speed_scale, *speed_span, *top_load, *warmth;
  int64_t speeds, loads, warms;

  // Multilinear in (|load|, temperature, |speed|); speeds are spaced like asinh.
  double level(int64_t joint, int side, double speed, double load, double temperature) const {
    const double *grid = speed_grid + joint * speeds;
    const double x = std::asinh(speed / speed_scale[joint]) / speed_span[joint] * double(speeds - 1);
    int64_t i = int64_t(x);
    if (i > speeds - 2) i = speeds - 2;
    const double f = (speed - grid[i]) / (grid[i + 1] - grid[i]); // beyond the last: its line
    int64_t l = 0, w = 0;
    double fl = 0.0, fw = 0.0;
    if (loads > 1) cell(std::fabs(load) / top_load[joint] * double(loads - 1), loads, l, fl);
    if (warms > 1)
      cell((temperature - warmth[0]) / (warmth[1] - warmth[0]) * double(warms - 1), warms, w, fw);
    const double *at = table + (((joint * 2 + side) * loads + l) * warms + w) * speeds + i;
    double out = (1.0 - fl) * (1.0 - fw) * line(at, f);
    if (fw != 0.0) out += (1.0 - fl) * fw * line(at + speeds, f);
    if (fl != 0.0) out += fl * (1.0 - fw) * line(at + warms * speeds, f);
    if (fl != 0.0 && fw != 0.0) out += fl * fw * line(at + (warms + 1) * speeds, f);
    return out;
  }

private:
  static double line(const double *at, double f) { return at[0] + f * (at[1] - at[0]); }
  static void cell(double x, int64_t size, int64_t &i, double &f) {
    if (x < 0.0) x = 0.0;
    i = int64_t(x);
    if (i > size - 2) i = size - 2;
    f = x - double(i);
    if (f > 1.0) f = 1.0;
  }
};

// Advance `steps` ticks. Returns the first tick whose state was not finite or ran away, else -1.
int64_t run(const nb::dict &source, uintptr_t model, uintptr_t data, uintptr_t position_call,
            uintptr_t velocity_call, uintptr_t acceleration_call, int64_t steps, int64_t joints,
            int64_t substeps, double tick, double runaway) {
  const Arrays in{source};
  const size_t j = size_t(joints), total = size_t(steps) * j;
  const auto position = reinterpret_cast<MjCall>(position_call);
  const auto velocity = reinterpret_cast<MjCall>(velocity_call);
  const auto acceleration = reinterpret_cast<MjCall>(acceleration_call);
  const void *m = reinterpret_cast<const void *>(model);
  void *d = reinterpret_cast<void *>(data);

  // MuJoCo's own storage.
  double *qpos = in.real("qpos", j), *qvel = in.real("qvel", j), *qacc = in.real("qacc_smooth", j);
  double *applied = in.real("qfrc_applied", j), *pushed = in.real("xfrc_hand", 6);
  const double *xpos = in.real("xpos_hand", 3), *xmat = in.real("xmat_hand", 9);
  const double *xipos = in.real("xipos_hand", 3);
  double *body_mass = in.real("payload_mass", 1), *body_ipos = in.real("payload_ipos", 3);
  double *body_iquat = in.real("payload_iquat", 4), *body_inertia = in.real("payload_inertia", 3);

  // What to follow, and how.
  const double *ref_q = in.real("reference_position", total);
  const double *ref_v = in.real("reference_velocity", total);
  const double *forward = in.real("feedforward", total);
  const double *kp = in.real("stiffness", j), *kd = in.real("damping", j);
  const double *ki = in.real("integral_gain", j), *limit = in.real("torque_limit", j);

  // The drive.
  const int64_t *flags = in.whole("flags", 4); // friction, thermal, elastic, coupled
  const int64_t *sizes = in.whole("table_sizes", 3);
  Friction friction{};
  friction.speeds = sizes[0], friction.loads = sizes[1], friction.warms = sizes[2];
  friction.table = in.real("table", j * 2 * size_t(sizes[0] * sizes[1] * sizes[2]));
  friction.speed_grid = in.real("speed_grid", j * size_t(sizes[0]));
  friction.speed_scale = in.real("speed_scale", j), friction.speed_span = in.real("speed_span", j);
  friction.top_load = in.real("top_load", j), friction.warmth = in.real("warmth", 2);
  const double *slip = in.real("slip", j), *load_friction = in.real("load_friction", j);
  const double *breakaway = in.real("breakaway", j), *rest = in.real("rest", 2);
  const double *offset = in.real("offset", j);
  const size_t ladder = in.count("slow_width");
  const double *slow_width = in.real("slow_width", ladder);
  const double *slow = in.real("slow_torque", j * ladder);
  double *slow_state = in.real("slow_state", j * ladder);
  const double *coupling = in.real("coupling", j * j); // drive positions are C q
  const double *to_motors = in.real("to_motors", j * j); // C^-T: what a motor carries
  double *at_drive = in.real("at_drive", j), *speed_drive = in.real("speed_drive", j);
  double *drag_drive = in.real("drag_drive", j);
  const size_t waves = in.count("ripple_cycles");
  const double *cycles = in.real("ripple_cycles", waves);
  const double *wave = in.real("ripple_amplitude", j * waves);
  const double *phase = in.real("ripple_phase", j * waves);
  const double *low = in.real("ripple_low", j * waves), *high = in.real("ripple_high", j * waves);
  const size_t heating = size_t(in.real("heating_waves", 1)[0]); // those of compensators do not
  const double *rotor = in.real("rotor", j), *spring_k = in.real("spring", j);
  const double *spring_d = in.real("spring_damping", j);
  const double *heat_inner = in.real("heat_capacity", j), *heat_outer = in.real("heat_capacity_housing", j);
  const double *flow_inner = in.real("conductance", j), *flow_outer = in.real("conductance_ambient", j);
  const double *copper = in.real("copper", j), *ambient = in.real("ambient", 2); // [degC, speed-up]

  // What happens at certain ticks.
  const size_t pulses = in.count("pulses") / 8, loads = in.count("loads") / 12;
  const double *pulse = in.real("pulses", pulses * 8), *event = in.real("loads", loads * 12);
  const double *tip = in.real("tip", 3);
  const double start_tick = *in.real("start_tick", 1);

  // State, carried from call to call.
  double *q = in.real("q", j), *half = in.real("v_half", j), *last = in.real("a_last", j);
  double *theta = in.real("theta", j), *theta_half = in.real("theta_half", j);
  double *theta_last = in.real("theta_last", j), *before = in.real("drive_before", j);
  double *bristle = in.real("bristle", j), *age = in.real("age", j), *sum = in.real("integral", j);
  double *warm = in.real("temperature", j), *housing = in.real("housing", j);
  double *load = in.real("load", j);

  // What is kept.
  const size_t kept = in.count("keep");
  const int64_t *keep = in.whole("keep", kept);
  double *out_q = in.real("out_position", kept * j), *out_v = in.real("out_velocity", kept * j);
  double *out_a = in.real("out_acceleration", kept * j);
  double *out_tau = in.real("out_motor_torque", kept * j);
  double *out_link = in.real("out_link_torque", kept * j);
  double *out_friction = in.real("out_friction", kept * j);
  double *out_warm = in.real("out_temperature", kept * j);
  double *out_dq = in.real("out_drive_position", kept * j);
  double *out_dv = in.real("out_drive_velocity", kept * j);
  double *command = in.real("command", j), *loss = in.real("loss", j);

  const nb::gil_scoped_release release;
  const bool rubs = flags[0], warms = flags[1], elastic = flags[2], coupled = flags[3];
  const double h = tick / double(substeps);
  size_t row = 0;
  for (int64_t k = 0; k < steps; ++k) {
    const double now = (start_tick + double(k)) * tick;
    for (size_t e = 0; e < loads; ++e) {
      const double *x = event + 12 * e;
      if (int64_t(x[0]) != int64_t(start_tick) + k) continue;
      body_mass[0] = x[1];
      for (int c = 0; c < 3; ++c) body_ipos[c] = x[2 + c], body_inertia[c] = x[9 + c];
      for (int c = 0; c < 4; ++c) body_iquat[c] = x[5 + c];
    }
    for (int64_t sub = 0; sub < substeps; ++sub) {
      for (size_t i = 0; i < j; ++i) {
        qpos[i] = q[i];
        qvel[i] = half[i] + 0.5 * h * last[i];
      }
      position(m, d);
      velocity(m, d);
      if (sub == 0)
        for (size_t i = 0; i < j; ++i) loss[i] = 0.0;
      // A springy drive has its servo in the drive, at the rate of the small steps.
      if (sub == 0 || elastic)
        for (size_t i = 0; i < j; ++i) {
          const double at = elastic ? theta[i] : q[i];
          const double speed = elastic ? theta_half[i] + 0.5 * h * theta_last[i] : qvel[i];
          const double error = ref_q[k * j + i] + double(sub) * h * ref_v[k * j + i] - at;
          const double wish = forward[k * j + i] + kp[i] * error +
                              kd[i] * (ref_v[k * j + i] - speed) + sum[i];
          command[i] = wish > limit[i] ? limit[i] : wish < -limit[i] ? -limit[i] : wish;
          if (command[i] == wish) sum[i] += ki[i] * error * (elastic ? h : tick);
        }
      for (size_t i = 0; i < j; ++i) {
        double at = elastic ? theta[i] : q[i];
        double speed = elastic ? theta_half[i] + 0.5 * h * theta_last[i] : qvel[i];
        if (coupled) {
          at = speed = 0.0;
          for (size_t c = 0; c < j; ++c)
            at += coupling[i * j + c] * q[c], speed += coupling[i * j + c] * qvel[c];
        }
        double drag = 0.0;
        if (rubs) {
          const double moved = at - before[i];
          if (moved != 0.0) {
            const double s = moved > 0.0 ? 1.0 : -1.0, far = std::fabs(moved);
            bristle[i] = s + (bristle[i] - s) * std::exp(-far / slip[i]);
            age[i] *= std::exp(-far / rest[1]);
            for (size_t w = 0; w < ladder; ++w) {
              double &z = slow_state[i * ladder + w];
              z = s + (z - s) * std::exp(-far / slow_width[w]);
            }
          }
          age[i] += (1.0 - age[i]) * (1.0 - std::exp(-h / rest[0]));
          double carried = load[i];
          if (coupled) {
            carried = 0.0;
            for (size_t c = 0; c < j; ++c) carried += to_motors[i * j + c] * load[c];
          }
          const double level =
              friction.level(int64_t(i), bristle[i] >= 0.0 ? 0 : 1, std::fabs(speed), carried, warm[i]) +
              load_friction[i] * std::fabs(carried);
          drag = level * bristle[i] * (1.0 + breakaway[i] * age[i]);
          for (size_t w = 0; w < ladder; ++w)
            drag += slow[i * ladder + w] * (slow_state[i * ladder + w] - bristle[i]);
        }
        before[i] = at;
        const auto turn = [&](size_t w) {
          const size_t k = i * waves + w;
          return wave[k] * std::sin(cycles[w] * std::min(std::max(at, low[k]), high[k]) + phase[k]);
        };
        for (size_t w = 0; w < heating; ++w) drag += turn(w);
        loss[i] += std::fabs(drag * speed) / double(substeps);
        for (size_t w = heating; w < waves; ++w) drag += turn(w);
        at_drive[i] = at, speed_drive[i] = speed, drag_drive[i] = drag;
      }
      for (size_t i = 0; i < j; ++i) {
        double drag = drag_drive[i];
        if (coupled) { // tau = C' tau_m
          drag = 0.0;
          for (size_t c = 0; c < j; ++c) drag += coupling[c * j + i] * drag_drive[c];
        }
        drag += offset[i];
        const double spring = elastic ? spring_k[i] * (theta[i] - q[i]) +
                                            spring_d[i] * (speed_drive[i] - qvel[i])
                                      : 0.0;
        applied[i] = elastic ? spring : command[i] - drag;
        if (elastic) theta_last[i] = (command[i] - drag - spring) / rotor[i];
        if (sub == 0 && row < kept && keep[row] == k) {
          out_friction[row * j + i] = drag;
          out_dq[row * j + i] = elastic ? theta[i] : q[i];
          out_dv[row * j + i] = elastic ? speed_drive[i] : qvel[i];
        }
      }
      for (int c = 0; c < 6; ++c) pushed[c] = 0.0;
      for (size_t p = 0; p < pulses; ++p) {
        const double *x = pulse + 8 * p;
        const double into = (now + double(sub) * h - x[0]) / x[1];
        if (into <= 0.0 || into >= 1.0) continue;
        const double shape = std::sin(3.14159265358979323846 * into);
        double arm[3];
        for (int c = 0; c < 3; ++c)
          arm[c] = xpos[c] + xmat[3 * c] * tip[0] + xmat[3 * c + 1] * tip[1] +
                   xmat[3 * c + 2] * tip[2] - xipos[c];
        const double f[3] = {shape * x[2], shape * x[3], shape * x[4]};
        for (int c = 0; c < 3; ++c) pushed[c] += f[c];
        pushed[3] += shape * x[5] + arm[1] * f[2] - arm[2] * f[1];
        pushed[4] += shape * x[6] + arm[2] * f[0] - arm[0] * f[2];
        pushed[5] += shape * x[7] + arm[0] * f[1] - arm[1] * f[0];
      }
      acceleration(m, d);
      for (size_t i = 0; i < j; ++i) {
        if (!(std::fabs(half[i] + h * qacc[i]) < runaway)) return k;
        load[i] = applied[i];
        if (!elastic && !coupled) load[i] -= rotor[i] * qacc[i];
        if (coupled) // C' diag(rotor) C a
          for (size_t c = 0; c < j; ++c) {
            double turned = 0.0;
            for (size_t e = 0; e < j; ++e) turned += coupling[c * j + e] * qacc[e];
            load[i] -= coupling[c * j + i] * rotor[c] * turned;
          }
        if (sub == 0 && row < kept && keep[row] == k) {
          const size_t o = row * j + i;
          out_q[o] = q[i], out_v[o] = qvel[i], out_a[o] = qacc[i];
          out_tau[o] = command[i], out_link[o] = load[i], out_warm[o] = warm[i];
        }
        half[i] += h * qacc[i];
        q[i] += h * half[i];
        last[i] = qacc[i];
        if (elastic) {
          theta_half[i] += h * theta_last[i];
          theta[i] += h * theta_half[i];
        }
      }
      if (sub == 0 && row < kept && keep[row] == k) ++row;
    }
    if (warms)
      for (size_t i = 0; i < j; ++i) {
        const double dt = tick * ambient[1];
        const double power = loss[i] + copper[i] * command[i] * command[i];
        const double flow = flow_inner[i] * (warm[i] - housing[i]);
        warm[i] += dt * (power - flow) / heat_inner[i];
        housing[i] += dt * (flow - flow_outer[i] * (housing[i] - ambient[0])) / heat_outer[i];
      }
  }
  return -1;
}

// tau = M(q) a + bias(q, v), row by row, by MuJoCo.
void inverse(uintptr_t model, uintptr_t data, uintptr_t position_call, uintptr_t velocity_call,
             uintptr_t mul_call, const nb::dict &source, int64_t rows, int64_t joints) {
  const Arrays in{source};
  const size_t j = size_t(joints), total = size_t(rows) * j;
  const auto position = reinterpret_cast<MjCall>(position_call);
  const auto velocity = reinterpret_cast<MjCall>(velocity_call);
  const auto mul = reinterpret_cast<MjMul>(mul_call);
  const void *m = reinterpret_cast<const void *>(model);
  void *d = reinterpret_cast<void *>(data);
  double *qpos = in.real("qpos", j), *qvel = in.real("qvel", j);
  const double *bias = in.real("qfrc_bias", j);
  const double *q = in.real("position", total), *v = in.real("velocity", total);
  const double *a = in.real("acceleration", total);
  double *out = in.real("torque", total);
  const nb::gil_scoped_release release;
  for (int64_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < j; ++i) qpos[i] = q[r * j + i], qvel[i] = v[r * j + i];
    position(m, d);
    velocity(m, d);
    mul(m, d, out + r * j, a + r * j);
    for (size_t i = 0; i < j; ++i) out[r * j + i] += bias[i];
  }
}

} // namespace

void bind_twin(nb::module_ &m) {
  m.def("twin_run", &run, "Advance the simulated arm; -1, or the tick at which it ran away.");
  m.def("twin_inverse", &inverse, "Joint torques of a motion by MuJoCo, row by row.");
}
