// Roll-outs of an arm of position servos, with the sensitivity of every position to every servo
// parameter.
//
// Velocities are those in the middle between two positions (leapfrog). Per step of h seconds the
// joint velocities v+ minimise
//
//     1/2 v' A v - b' v + h sum_j coulomb_j |v_j|,   A = M(q) + armature + h/2 damping,
//     b = (M(q) + armature - h/2 damping) v + h (kp (u + offset - q) - c(q, v) - g(q) + floor),
//
// by coordinate descent with a soft threshold, so that a joint below its Coulomb friction stands
// exactly. u is the mean command from h/2 before the step to h/2 after its start, delayed, behind
// the servo's own acceleration limit. A gain too stiff for the step is taken at its end (A + h^2 kp).
// Sensitivities follow the same equations, with the moving joints of the step and M and c held.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <vector>

namespace nb = nanobind;

namespace {

constexpr int MAX_JOINTS = 12;
// Parameters of a joint, in the order of servo/parameters.py.
enum { KP, DAMPING, COULOMB, ARMATURE, OFFSET, DELAY, LIMIT, FIELDS };
constexpr int SLOPES = 6;  // sensitivities per joint; one more, of the common limit, at the end
constexpr int MAX_SLOPES = SLOPES * MAX_JOINTS + 1;
constexpr double DELAY_STEP = 4e-3;  // difference for the slope of the command in the delay [s]
constexpr double LIMIT_STEP = 0.1;   // the same in the acceleration limit, relative
constexpr double PROFILE_STEP = 1e-3;  // step of the servo's own reference [s]

struct Vec {
    double x, y, z;
};
inline Vec operator+(Vec a, Vec b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
inline Vec operator-(Vec a, Vec b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
inline Vec operator*(double s, Vec a) { return {s * a.x, s * a.y, s * a.z}; }
inline Vec cross(Vec a, Vec b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
inline double dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

struct Mat {
    double a[9];
};
inline Vec operator*(const Mat& r, Vec v) {
    return {r.a[0] * v.x + r.a[1] * v.y + r.a[2] * v.z, r.a[3] * v.x + r.a[4] * v.y + r.a[5] * v.z,
            r.a[6] * v.x + r.a[7] * v.y + r.a[8] * v.z};
}
inline Vec back(const Mat& r, Vec v) {  // r' v
    return {r.a[0] * v.x + r.a[3] * v.y + r.a[6] * v.z, r.a[1] * v.x + r.a[4] * v.y + r.a[7] * v.z,
            r.a[2] * v.x + r.a[5] * v.y + r.a[8] * v.z};
}
inline Mat operator*(const Mat& p, const Mat& q) {
    Mat out;
    for (int i = 0; i < 3; ++i)
        for (int k = 0; k < 3; ++k)
            out.a[3 * i + k] = p.a[3 * i] * q.a[k] + p.a[3 * i + 1] * q.a[3 + k] +
                               p.a[3 * i + 2] * q.a[6 + k];
    return out;
}
// Tensor xx xy yy xz yz zz times a vector.
inline Vec tensor(const double* t, Vec w) {
    return {t[0] * w.x + t[1] * w.y + t[3] * w.z, t[1] * w.x + t[2] * w.y + t[4] * w.z,
            t[3] * w.x + t[4] * w.y + t[5] * w.z};
}

// Serial arm whose joints turn about the z axis of their frame.
struct Arm {
    int joints;
    const double* rotation;    // (j, 9) of each frame in the one before, at q = 0
    const double* position;    // (j, 3)
    const double* parameters;  // (j, 10) m, h, I about the frame's origin
    Vec gravity;               // in the base frame

    Vec origin(int i) const {
        return {position[3 * i], position[3 * i + 1], position[3 * i + 2]};
    }
    Vec moment(int i) const {
        const double* p = parameters + 10 * i;
        return {p[1], p[2], p[3]};
    }
    void place(const double* q, Mat* r) const {
        for (int i = 0; i < joints; ++i) {
            const double c = std::cos(q[i]), s = std::sin(q[i]);
            const double* o = rotation + 9 * i;
            for (int k = 0; k < 3; ++k) {
                r[i].a[3 * k] = o[3 * k] * c + o[3 * k + 1] * s;
                r[i].a[3 * k + 1] = -o[3 * k] * s + o[3 * k + 1] * c;
                r[i].a[3 * k + 2] = o[3 * k + 2];
            }
        }
    }
    // c(q, v) + g(q): inverse dynamics without acceleration.
    void bias(const Mat* r, const double* v, double* out) const {
        Vec force[MAX_JOINTS], torque[MAX_JOINTS];
        Vec w0{0, 0, 0}, e0{0, 0, 0}, a0 = -1.0 * gravity;
        for (int i = 0; i < joints; ++i) {
            const Vec p = origin(i), h = moment(i);
            const Vec a = back(r[i], a0 + cross(e0, p) + cross(w0, cross(w0, p)));
            const Vec wp = back(r[i], w0), turn{0, 0, v[i]};
            const Vec w = wp + turn, e = back(r[i], e0) + cross(wp, turn);
            const double* t = parameters + 10 * i;
            force[i] = t[0] * a + cross(e, h) + cross(w, cross(w, h));
            torque[i] = tensor(t + 4, e) + cross(w, tensor(t + 4, w)) + cross(h, a);
            w0 = w, e0 = e, a0 = a;
        }
        Vec f{0, 0, 0}, n{0, 0, 0};
        for (int i = joints - 1; i >= 0; --i) {
            f = f + force[i], n = n + torque[i];
            out[i] = n.z;
            f = r[i] * f;
            n = r[i] * n + cross(origin(i), f);
        }
    }
    // M(q) by composite bodies.
    void mass(const Mat* r, double* out) const {
        double m = 0, t[6] = {0, 0, 0, 0, 0, 0};
        Vec h{0, 0, 0};
        for (int i = joints - 1; i >= 0; --i) {
            const double* own = parameters + 10 * i;
            m += own[0], h = h + moment(i);
            for (int k = 0; k < 6; ++k) t[k] += own[4 + k];
            Vec f{-h.y, h.x, 0}, n{t[3], t[4], t[5]};
            out[i * joints + i] = n.z;
            for (int k = i; k > 0; --k) {
                f = r[k] * f;
                n = r[k] * n + cross(origin(k), f);
                out[i * joints + k - 1] = out[(k - 1) * joints + i] = n.z;
            }
            if (i > 0) shift(r[i], origin(i), m, h, t);
        }
    }

private:
    // A composite body expressed in the frame before.
    static void shift(const Mat& r, Vec p, double m, Vec& h, double* t) {
        const Mat s{{t[0], t[1], t[3], t[1], t[2], t[4], t[3], t[4], t[5]}};
        const Mat turned{{r.a[0], r.a[3], r.a[6], r.a[1], r.a[4], r.a[7], r.a[2], r.a[5], r.a[8]}};
        const Mat u = r * s * turned;
        const Vec c = r * h;
        const double d = 2 * dot(p, c) + m * dot(p, p);
        const double pv[3] = {p.x, p.y, p.z}, cv[3] = {c.x, c.y, c.z};
        const auto at = [&](int i, int k) {
            return u.a[3 * i + k] + (i == k ? d : 0.0) - pv[i] * cv[k] - cv[i] * pv[k] -
                   m * pv[i] * pv[k];
        };
        t[0] = at(0, 0), t[1] = at(0, 1), t[2] = at(1, 1);
        t[3] = at(0, 2), t[4] = at(1, 2), t[5] = at(2, 2);
        h = c + m * p;
    }
};

// Horizontal plane that a point of the last link touches.
struct Floor {
    bool present;
    double height, stiffness, damping, friction;
    Vec point, up;
};

// Servo's own reference: the command behind a limit of acceleration, or the command itself.
struct Reference {
    double at = 0, speed = 0;
    void follow(double command, double limit, double h) {
        const double error = command - at, far = std::fabs(error);
        const double goal = std::copysign(std::min(std::sqrt(2 * limit * far), far / h), error);
        speed += std::max(-limit * h, std::min(limit * h, goal - speed));
        at += h * speed;
    }
};

struct Run {
    Arm arm;
    Floor floor;
    const double* integral;  // (grid, j) of the command over time
    std::ptrdiff_t grid;
    double grid_step, lead;

    double command_integral(int joint, double t) const {
        double s = (t + lead) / grid_step;
        s = std::max(0.0, std::min(s, double(grid) - 1.001));
        const std::ptrdiff_t k = std::ptrdiff_t(s);
        const double* at = integral + k * arm.joints + joint;
        return at[0] + (s - double(k)) * (at[arm.joints] - at[0]);
    }
    double command(int joint, double t, double h) const {
        return (command_integral(joint, t + h) - command_integral(joint, t)) / h;
    }

    // Mean reference over a step that starts at t.
    double follow(Reference& reference, int joint, double t, double limit, double h,
                  bool first) const {
        if (!(limit > 0)) return command(joint, t, h);
        if (first) reference.at = command(joint, t, h);
        const int parts = std::max(1, int(std::lround(h / PROFILE_STEP)));
        const double step = h / parts;
        double sum = 0, before = command_integral(joint, t);
        for (int k = 1; k <= parts; ++k) {
            const double now = command_integral(joint, t + k * step);
            reference.follow((now - before) / step, limit, step);
            before = now;
            sum += reference.at;
        }
        return sum / parts;
    }

    void simulate(const double* servo, const double* start, std::ptrdiff_t rows, double row_step,
                  int substeps, double* out, double* slopes) const;
};

// Floor in the equations of a step, implicit: spring and damper of the normal direction, friction as
// a damper of the sliding direction. The gradient of the torque in q is added to `gradient`.
void add_floor(const Arm& arm, const Floor& floor, const Mat* r, const double* v, double h, double* a,
               double* b, double* gradient) {
    const int n = arm.joints;
    Vec origins[MAX_JOINTS], axes[MAX_JOINTS], x{0, 0, 0};
    Mat world{{1, 0, 0, 0, 1, 0, 0, 0, 1}};
    for (int j = 0; j < n; ++j) {
        x = x + world * arm.origin(j);
        world = world * r[j];
        origins[j] = x, axes[j] = {world.a[2], world.a[5], world.a[8]};
    }
    const Vec point = x + world * floor.point;
    const double depth = floor.height - dot(floor.up, point);
    if (depth <= 0) return;
    Vec lever[MAX_JOINTS], speed{0, 0, 0};
    for (int j = 0; j < n; ++j) {
        lever[j] = cross(axes[j], point - origins[j]);
        speed = speed + v[j] * lever[j];
    }
    const double normal = floor.stiffness * depth - floor.damping * dot(floor.up, speed);
    if (normal <= 0) return;
    const Vec slide = speed - dot(floor.up, speed) * floor.up;
    const double sliding = h * floor.friction * normal / (std::sqrt(dot(slide, slide)) + 2e-3);
    const double implicit = h * (floor.damping + h * floor.stiffness) - sliding;
    for (int j = 0; j < n; ++j) {
        b[j] += h * floor.stiffness * depth * dot(lever[j], floor.up);
        for (int k = 0; k < n; ++k) {
            const double normals = dot(lever[j], floor.up) * dot(lever[k], floor.up);
            a[j * n + k] += implicit * normals + sliding * dot(lever[j], lever[k]);
            if (gradient) gradient[j * n + k] -= floor.stiffness * normals;
        }
    }
}

// Velocities of the step, by coordinate descent with a soft threshold.
void solve_step(int n, const double* a, const double* b, const double* threshold, double* v) {
    for (int sweep = 0; sweep < 40; ++sweep) {
        double change = 0;
        for (int j = 0; j < n; ++j) {
            double s = b[j];
            for (int i = 0; i < n; ++i)
                if (i != j) s -= a[j * n + i] * v[i];
            const double next = s > threshold[j]    ? (s - threshold[j]) / a[j * n + j]
                                : s < -threshold[j] ? (s + threshold[j]) / a[j * n + j]
                                                    : 0.0;
            change = std::max(change, std::fabs(next - v[j]));
            v[j] = next;
        }
        if (change < 1e-8) break;
    }
}

// x := A^-1 x for the moving joints, zero for the standing ones; x is (n, count).
void solve_moving(int n, const double* a, const double* v, double* x, int count) {
    int moving[MAX_JOINTS], m = 0;
    for (int j = 0; j < n; ++j)
        if (v[j] != 0.0)
            moving[m++] = j;
        else
            std::fill(x + j * count, x + (j + 1) * count, 0.0);
    double l[MAX_JOINTS * MAX_JOINTS];
    for (int i = 0; i < m; ++i)
        for (int k = 0; k <= i; ++k) {
            double s = a[moving[i] * n + moving[k]];
            for (int e = 0; e < k; ++e) s -= l[i * m + e] * l[k * m + e];
            l[i * m + k] = i == k ? std::sqrt(std::max(s, 1e-18)) : s / l[k * m + k];
        }
    for (int i = 0; i < m; ++i) {
        double* xi = x + moving[i] * count;
        for (int k = 0; k < i; ++k) {
            const double* xk = x + moving[k] * count;
            const double f = l[i * m + k];
            for (int c = 0; c < count; ++c) xi[c] -= f * xk[c];
        }
        const double f = 1.0 / l[i * m + i];
        for (int c = 0; c < count; ++c) xi[c] *= f;
    }
    for (int i = m - 1; i >= 0; --i) {
        double* xi = x + moving[i] * count;
        for (int k = i + 1; k < m; ++k) {
            const double* xk = x + moving[k] * count;
            const double f = l[k * m + i];
            for (int c = 0; c < count; ++c) xi[c] -= f * xk[c];
        }
        const double f = 1.0 / l[i * m + i];
        for (int c = 0; c < count; ++c) xi[c] *= f;
    }
}

void Run::simulate(const double* servo, const double* start, std::ptrdiff_t rows, double row_step,
                   int substeps, double* out, double* slopes) const {
    const int n = arm.joints, count = SLOPES * n + 1;
    const double h = row_step / substeps;
    double q[MAX_JOINTS], v[MAX_JOINTS] = {}, before[MAX_JOINTS], bias[MAX_JOINTS];
    double mass[MAX_JOINTS * MAX_JOINTS], a[MAX_JOINTS * MAX_JOINTS], b[MAX_JOINTS];
    double threshold[MAX_JOINTS], error[MAX_JOINTS], stiffness[MAX_JOINTS * MAX_JOINTS] = {};
    double gravity_slope[MAX_JOINTS * MAX_JOINTS] = {}, du[MAX_JOINTS][2];
    std::vector<double> dq(slopes ? n * count : 0), dv(dq), next(dq);
    Reference reference[MAX_JOINTS][4];  // as is, with more and less delay, with a higher limit
    Mat r[MAX_JOINTS];
    std::copy(start, start + n, q);
    for (std::ptrdiff_t k = 0; k < rows * substeps; ++k) {
        if (k % substeps == 0) {
            std::copy(q, q + n, out + k / substeps * n);
            if (slopes) std::copy(dq.begin(), dq.end(), slopes + k / substeps * n * count);
        }
        // Mass matrix and bias change little in two steps.
        if (k % 2 == 0 || floor.present) {
            arm.place(q, r);
            if (k % 2 == 0) arm.mass(r, mass);
            arm.bias(r, v, bias);
        }
        if (slopes && k % 8 == 0) {  // dg/dq by differences
            double zero[MAX_JOINTS] = {}, g0[MAX_JOINTS], g1[MAX_JOINTS], moved[MAX_JOINTS];
            Mat turned[MAX_JOINTS];
            arm.bias(r, zero, g0);
            for (int i = 0; i < n; ++i) {
                std::copy(q, q + n, moved);
                moved[i] += 1e-4;
                arm.place(moved, turned);
                arm.bias(turned, zero, g1);
                for (int j = 0; j < n; ++j) gravity_slope[j * n + i] = (g1[j] - g0[j]) / 1e-4;
            }
        }
        std::copy(mass, mass + n * n, a);
        bool is_stiff[MAX_JOINTS];
        for (int j = 0; j < n; ++j) {
            const double* p = servo + j * FIELDS;
            a[j * n + j] += p[ARMATURE];
            is_stiff[j] = h * h * p[KP] > a[j * n + j];
            a[j * n + j] -= 0.5 * h * p[DAMPING];
        }
        for (int i = 0; i < n; ++i) {
            b[i] = 0;
            for (int j = 0; j < n; ++j) b[i] += a[i * n + j] * v[j];
        }
        if (slopes) {
            // next := (M + armature - h/2 damping) dv.
            std::fill(next.begin(), next.end(), 0.0);
            for (int i = 0; i < n; ++i)
                for (int j = 0; j < n; ++j) {
                    const double f = a[i * n + j];
                    for (int c = 0; c < count; ++c) next[i * count + c] += f * dv[j * count + c];
                }
        }
        const double t = double(k) * h;
        for (int j = 0; j < n; ++j) {
            const double* p = servo + j * FIELDS;
            const double at = t - 0.5 * h - p[DELAY], limit = p[LIMIT];
            const double u = follow(reference[j][0], j, at, limit, h, k == 0);
            if (slopes) {
                const double late = follow(reference[j][1], j, at - DELAY_STEP, limit, h, k == 0);
                const double soon = follow(reference[j][2], j, at + DELAY_STEP, limit, h, k == 0);
                const double sharp =
                    follow(reference[j][3], j, at, limit * (1 + LIMIT_STEP), h, k == 0);
                du[j][0] = (late - soon) / (2 * DELAY_STEP);
                du[j][1] = limit > 0 ? (sharp - u) / (limit * LIMIT_STEP) : 0.0;
            }
            error[j] = u + p[OFFSET] - q[j];
            b[j] += h * (p[KP] * error[j] - bias[j]);
            a[j * n + j] += h * p[DAMPING] + (is_stiff[j] ? h * h * p[KP] : 0.0);
            threshold[j] = h * p[COULOMB];
        }
        if (floor.present) {
            std::fill(stiffness, stiffness + n * n, 0.0);
            add_floor(arm, floor, r, v, h, a, b, slopes ? stiffness : nullptr);
        }
        std::copy(v, v + n, before);
        solve_step(n, a, b, threshold, v);
        for (int j = 0; j < n; ++j) q[j] += h * v[j];
        if (!slopes) continue;
        for (int j = 0; j < n; ++j) {
            const double* p = servo + j * FIELDS;
            double* row = next.data() + j * count;
            double* own = row + SLOPES * j;
            for (int i = 0; i < n; ++i) {
                const double f = h * ((i == j ? -p[KP] : 0.0) - gravity_slope[j * n + i] +
                                      stiffness[j * n + i]);
                if (f == 0.0) continue;
                const double* d = dq.data() + i * count;
                for (int c = 0; c < count; ++c) row[c] += f * d[c];
            }
            own[KP] += h * error[j] - (is_stiff[j] ? h * h * v[j] : 0.0);
            own[DAMPING] -= 0.5 * h * (v[j] + before[j]);
            own[COULOMB] -= h * (v[j] > 0 ? 1.0 : -1.0);
            own[ARMATURE] -= v[j] - before[j];
            own[OFFSET] += h * p[KP];
            own[DELAY] += h * p[KP] * du[j][0];
            row[count - 1] += h * p[KP] * du[j][1];
        }
        solve_moving(n, a, v, next.data(), count);
        dv = next;
        for (std::size_t c = 0; c < dq.size(); ++c) dq[c] += h * dv[c];
    }
}

using Array = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::c_contig, nb::device::cpu>;

void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

// floor: height, stiffness, damping, friction, point (3), up (3); empty for none. slopes: rows
// (n, j, 6 j + 1) to fill, or empty.
void rollout(Array rotation, Array position, Array parameters, Array gravity, Array servo,
             Array integral, double grid_step, double lead, Array start, double row_step,
             int substeps, Array floor, Output out, Output slopes) {
    const std::size_t n = start.size();
    require(n >= 1 && n <= MAX_JOINTS, "the arm has too many joints");
    require(rotation.size() == 9 * n && position.size() == 3 * n, "frames have the wrong size");
    require(parameters.size() == 10 * n && gravity.size() == 3, "links have the wrong size");
    require(servo.size() == FIELDS * n, "servo parameters have the wrong size");
    require(integral.ndim() == 2 && integral.shape(1) == n && integral.shape(0) >= 2,
            "the command has the wrong size");
    require(out.ndim() == 2 && out.shape(1) == n, "the output has the wrong size");
    require(floor.size() == 0 || floor.size() == 10, "the floor has the wrong size");
    require(substeps >= 1 && row_step > 0 && grid_step > 0, "steps must be positive");
    const std::size_t rows = out.shape(0);
    require(slopes.size() == 0 || slopes.size() == rows * n * (SLOPES * n + 1),
            "the slopes have the wrong size");
    Run run{};
    run.arm = {int(n), rotation.data(), position.data(), parameters.data(),
               {gravity.data()[0], gravity.data()[1], gravity.data()[2]}};
    if (floor.size() == 10) {
        const double* f = floor.data();
        run.floor = {true, f[0], f[1], f[2], f[3], {f[4], f[5], f[6]}, {f[7], f[8], f[9]}};
    }
    run.integral = integral.data(), run.grid = std::ptrdiff_t(integral.shape(0));
    run.grid_step = grid_step, run.lead = lead;
    const double *servo_data = servo.data(), *start_data = start.data();
    double *out_data = out.data(), *slope_data = slopes.size() ? slopes.data() : nullptr;
    const nb::gil_scoped_release release;
    run.simulate(servo_data, start_data, std::ptrdiff_t(rows), row_step, substeps, out_data,
                 slope_data);
}

}  // namespace

void bind_servo(nb::module_& m) {
    m.def("servo_rollout", &rollout,
          "Positions of an arm of position servos that follows commands, and their slopes.");
}
