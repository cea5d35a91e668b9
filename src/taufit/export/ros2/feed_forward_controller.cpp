// Chainable controller: references in, effort out. update_and_write_commands allocates nothing.
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "@NAME@.h"
#include "controller_interface/chainable_controller_interface.hpp"
#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace taufit_@NAME@ {

constexpr std::size_t JOINTS = ARM_JOINTS;

// Newer interfaces give an optional, older ones a number.
template <class Interface, class = decltype(std::declval<const Interface &>().get_optional())>
double read(const Interface &state, int) {
  const auto value = state.get_optional();
  return value ? *value : std::numeric_limits<double>::quiet_NaN();
}
template <class Interface>
double read(const Interface &state, long) {
  return state.get_value();
}

class FeedForwardController : public controller_interface::ChainableControllerInterface {
 public:
  using CallbackReturn = controller_interface::CallbackReturn;

  CallbackReturn on_init() override {
    auto_declare<std::vector<std::string>>("joints", {});
    auto_declare<std::vector<double>>("stiffness", std::vector<double>(JOINTS, 0.0));
    auto_declare<std::vector<double>>("damping", std::vector<double>(JOINTS, 0.0));
    auto_declare<bool>("track_friction", false);
    auto_declare<bool>("guide", false);
    auto_declare<std::vector<double>>("payload", std::vector<double>(4, 0.0));
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_configure(const rclcpp_lifecycle::State &) override {
    joints_ = get_node()->get_parameter("joints").as_string_array();
    const auto stiffness = get_node()->get_parameter("stiffness").as_double_array();
    const auto damping = get_node()->get_parameter("damping").as_double_array();
    payload_ = get_node()->get_parameter("payload").as_double_array();
    track_ = get_node()->get_parameter("track_friction").as_bool();
    guide_ = get_node()->get_parameter("guide").as_bool();
    if (joints_.size() != JOINTS || stiffness.size() != JOINTS || damping.size() != JOINTS ||
        payload_.size() != 4)
      return CallbackReturn::ERROR;
    for (std::size_t i = 0; i < JOINTS; ++i) {
      stiffness_[i] = stiffness[i];
      damping_[i] = damping[i];
    }
    return CallbackReturn::SUCCESS;
  }

  controller_interface::InterfaceConfiguration command_interface_configuration() const override {
    return names({hardware_interface::HW_IF_EFFORT});
  }

  controller_interface::InterfaceConfiguration state_interface_configuration() const override {
    return names({hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY});
  }

  CallbackReturn on_activate(const rclcpp_lifecycle::State &) override {
    arm_controller_start(&controller_);
    arm_controller_payload(&controller_, payload_[0], payload_.data() + 1, nullptr);
    std::array<double, JOINTS> q, v;
    if (!read_state(q, v)) return CallbackReturn::ERROR;
    // Stand still until references arrive.
    for (std::size_t i = 0; i < JOINTS; ++i) {
      reference_interfaces_[3 * i] = q[i];
      reference_interfaces_[3 * i + 1] = reference_interfaces_[3 * i + 2] = 0.0;
    }
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) override {
    return CallbackReturn::SUCCESS;
  }

 protected:
  std::vector<hardware_interface::CommandInterface> on_export_reference_interfaces() override {
    reference_interfaces_.resize(3 * JOINTS, std::numeric_limits<double>::quiet_NaN());
    std::vector<hardware_interface::CommandInterface> out;
    for (std::size_t i = 0; i < JOINTS; ++i)
      for (const char *kind : {"position", "velocity", "acceleration"})
        out.emplace_back(get_node()->get_name(), joints_[i] + "/" + kind,
                         &reference_interfaces_[out.size()]);
    return out;
  }

  bool on_set_chained_mode(bool) override { return true; }

  controller_interface::return_type update_reference_from_subscribers(
      const rclcpp::Time &, const rclcpp::Duration &) override {
    return controller_interface::return_type::OK;
  }

  controller_interface::return_type update_and_write_commands(
      const rclcpp::Time &, const rclcpp::Duration &period) override {
    std::array<double, JOINTS> q, v, q_ref, v_ref, a_ref, tau;
    const double dt = period.seconds();
    if (!read_state(q, v) || !(dt > 0.0)) return controller_interface::return_type::ERROR;
    if (guide_) {
      arm_guide(&controller_, q.data(), v.data(), nullptr, dt, tau.data());
    } else {
      for (std::size_t i = 0; i < JOINTS; ++i) {
        q_ref[i] = reference_interfaces_[3 * i];
        v_ref[i] = reference_interfaces_[3 * i + 1];
        a_ref[i] = reference_interfaces_[3 * i + 2];
        if (!std::isfinite(q_ref[i] + v_ref[i] + a_ref[i]))
          return controller_interface::return_type::ERROR;
      }
      arm_feed_forward(&controller_, q_ref.data(), v_ref.data(), a_ref.data(), nullptr, dt,
                       tau.data());
      for (std::size_t i = 0; i < JOINTS; ++i)
        tau[i] += stiffness_[i] * (q_ref[i] - q[i]) + damping_[i] * (v_ref[i] - v[i]);
      if (track_) arm_track_friction(&controller_, tau.data(), dt);
    }
    for (std::size_t i = 0; i < JOINTS; ++i) {
      if (!std::isfinite(tau[i])) return controller_interface::return_type::ERROR;
      static_cast<void>(command_interfaces_[i].set_value(tau[i]));
    }
    return controller_interface::return_type::OK;
  }

 private:
  controller_interface::InterfaceConfiguration names(std::vector<std::string> kinds) const {
    controller_interface::InterfaceConfiguration out;
    out.type = controller_interface::interface_configuration_type::INDIVIDUAL;
    for (const auto &joint : joints_)
      for (const auto &kind : kinds) out.names.push_back(joint + "/" + kind);
    return out;
  }

  bool read_state(std::array<double, JOINTS> &q, std::array<double, JOINTS> &v) const {
    bool finite = true;
    for (std::size_t i = 0; i < JOINTS; ++i) {
      q[i] = read(state_interfaces_[2 * i], 0);
      v[i] = read(state_interfaces_[2 * i + 1], 0);
      finite = finite && std::isfinite(q[i] + v[i]);
    }
    return finite;
  }

  arm_controller controller_;
  std::vector<std::string> joints_;
  std::vector<double> payload_;
  std::array<double, JOINTS> stiffness_{}, damping_{};
  bool track_ = false, guide_ = false;
};

}  // namespace taufit_@NAME@

PLUGINLIB_EXPORT_CLASS(taufit_@NAME@::FeedForwardController,
                       controller_interface::ChainableControllerInterface)
