// Signatures of Universal_Robots_Client_Library's ur_driver.h and its includes, as far as used.
#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>

#include "plant.hpp"

namespace urcl {
using vector6d_t = std::array<double, 6>;

namespace comm {
enum class ControlMode : int32_t { MODE_SERVOJ = 1, MODE_TORQUE = 8 };
}

class RobotReceiveTimeout {
 public:
  static RobotReceiveTimeout millisec(unsigned = 20) { return {}; }
};

struct UrDriverConfiguration {
  std::string robot_ip, script_file, output_recipe_file, input_recipe_file;
  std::function<void(bool)> handle_program_state;
  bool headless_mode;
};

namespace rtde_interface {
class DataPackage {
 public:
  explicit DataPackage(const Plant &plant) : plant_(plant) {}
  bool getData(const std::string &name, vector6d_t &value) const {
    const double *from = name == "actual_q" ? plant_.q : name == "actual_qd" ? plant_.v : nullptr;
    if (from) std::copy(from, from + 6, value.begin());
    return from != nullptr;
  }

 private:
  const Plant &plant_;
};
}  // namespace rtde_interface

class UrDriver {
 public:
  explicit UrDriver(const UrDriverConfiguration &) {}
  bool setFrictionCompensation(const bool enabled) { return !enabled; }
  void startRTDECommunication() {}
  std::unique_ptr<rtde_interface::DataPackage> getDataPackage() {
    return std::make_unique<rtde_interface::DataPackage>(plant_);
  }
  bool writeJointCommand(const vector6d_t &values, const comm::ControlMode mode,
                         const RobotReceiveTimeout & = RobotReceiveTimeout::millisec(20)) {
    plant_.advance(values.data(), 2e-3);
    return mode == comm::ControlMode::MODE_TORQUE;
  }
  bool stopControl() { return true; }

 private:
  Plant plant_;
};
}  // namespace urcl
