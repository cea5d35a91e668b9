// Dynamics of @TITLE@, for C++11 and later: the functions of the C header as one object.
#ifndef ARM_DYNAMICS_HPP
#define ARM_DYNAMICS_HPP

#include <array>
#include <cstddef>

#include "@FILE@.h"

/// One arm with the memory of its friction. SI units; see the C header for each function.
class arm_model {
 public:
  static constexpr std::size_t joints = ARM_JOINTS;
  using Vector = std::array<double, joints>;
  using Matrix = std::array<double, joints * joints>;  // row by row
  using Pose = std::array<double, 16>;  // 4 x 4, row by row

  arm_model() noexcept { arm_start(&state_); }

  /// Forget the path: the next sample is the first.
  void start() noexcept { arm_start(&state_); }

  /// Torque at the next sample, dt seconds after the one before.
  Vector step(const Vector &q, const Vector &v, const Vector &a, double dt,
              const double *temperature = nullptr) noexcept {
    Vector tau;
    arm_step(&state_, q.data(), v.data(), a.data(), temperature, dt, tau.data());
    return tau;
  }

  /// Measured torque less that of the model at the next sample.
  Vector residual(const Vector &q, const Vector &v, const Vector &a, double dt,
                  const Vector &measured, const double *temperature = nullptr) noexcept {
    Vector left;
    arm_residual(&state_, q.data(), v.data(), a.data(), temperature, dt, measured.data(),
                 left.data());
    return left;
  }

  static Vector inverse_dynamics(const Vector &q, const Vector &v, const Vector &a) noexcept {
    Vector tau;
    arm_inverse_dynamics(q.data(), v.data(), a.data(), tau.data());
    return tau;
  }

  static Vector gravity(const Vector &q) noexcept {
    Vector tau;
    arm_gravity(q.data(), tau.data());
    return tau;
  }

  static Vector coriolis(const Vector &q, const Vector &v) noexcept {
    Vector tau;
    arm_coriolis(q.data(), v.data(), tau.data());
    return tau;
  }

  static Matrix mass_matrix(const Vector &q) noexcept {
    Matrix m;
    arm_mass_matrix(q.data(), m.data());
    return m;
  }

  static Vector acceleration(const Vector &q, const Vector &v, const Vector &tau) noexcept {
    Vector a;
    arm_acceleration(q.data(), v.data(), tau.data(), a.data());
    return a;
  }

  static Pose forward_kinematics(const Vector &q) noexcept {
    Pose pose;
    arm_forward_kinematics(q.data(), pose.data());
    return pose;
  }

 private:
  arm_state state_;
};

#endif
