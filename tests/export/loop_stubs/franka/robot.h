// Signatures of libfranka's robot.h, control_types.h, duration.h and robot_state.h, as far as used.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "plant.hpp"

namespace franka {
enum class RealtimeConfig { kEnforce, kIgnore };
constexpr double kDefaultCutoffFrequency = 100.0;

class Duration {
 public:
  explicit Duration(uint64_t milliseconds) noexcept : milliseconds_(milliseconds) {}
  double toSec() const noexcept { return 1e-3 * milliseconds_; }

 private:
  uint64_t milliseconds_;
};

struct Finishable {
  bool motion_finished = false;
};
class Torques : public Finishable {
 public:
  Torques(const std::array<double, 7> &torques) noexcept : tau_J(torques) {}
  std::array<double, 7> tau_J{};
};
inline Torques MotionFinished(Torques command) noexcept {
  command.motion_finished = true;
  return command;
}

struct RobotState {
  std::array<double, 7> q{}, dq{}, tau_J_d{};
};

class Robot {
 public:
  explicit Robot(const std::string &, RealtimeConfig = RealtimeConfig::kEnforce, size_t = 50) {}
  void setCollisionBehavior(const std::array<double, 7> &, const std::array<double, 7> &,
                            const std::array<double, 6> &, const std::array<double, 6> &) {}
  RobotState readOnce() const { return state({}); }
  void control(std::function<Torques(const RobotState &, Duration)> callback, bool = false,
               double = kDefaultCutoffFrequency) {
    std::array<double, 7> sent{};
    for (int k = 0; k < 20000; k++) {
      const Torques command = callback(state(sent), Duration(k ? 1 : 0));
      sent = command.tau_J;
      plant_.advance(sent.data(), 1e-3);
      if (command.motion_finished) return;
    }
  }

 private:
  RobotState state(const std::array<double, 7> &sent) const {
    RobotState out;
    for (int k = 0; k < 7; k++) out.q[k] = plant_.q[k], out.dq[k] = plant_.v[k];
    out.tau_J_d = sent;
    return out;
  }
  Plant plant_;
};
}  // namespace franka
