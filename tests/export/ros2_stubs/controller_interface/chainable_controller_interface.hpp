// Signatures of controller_interface (Jazzy): what a chainable controller overrides and calls.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rclcpp/time.hpp"
#include "rclcpp_lifecycle/lifecycle_node.hpp"
namespace hardware_interface {
class CommandInterface {
 public:
  CommandInterface(const std::string &prefix, const std::string &name, double *value)
      : name_(prefix + "/" + name), value_(value) {}
  std::string name_;
  double *value_;
};
class LoanedStateInterface {
 public:
  explicit LoanedStateInterface(const double *value) : value_(value) {}
  template <typename T = double>
  std::optional<T> get_optional(unsigned int = 10) const {
    return *value_;
  }

 private:
  const double *value_;
};
class LoanedCommandInterface {
 public:
  explicit LoanedCommandInterface(double *value) : value_(value) {}
  template <typename T>
  [[nodiscard]] bool set_value(const T &value, unsigned int = 10) {
    *value_ = value;
    return true;
  }

 private:
  double *value_;
};
}  // namespace hardware_interface
namespace controller_interface {
enum class return_type { OK, ERROR };
enum class CallbackReturn { SUCCESS, FAILURE, ERROR };
enum class interface_configuration_type { ALL, INDIVIDUAL, NONE };
struct InterfaceConfiguration {
  interface_configuration_type type;
  std::vector<std::string> names = {};
};
class ChainableControllerInterface {
 public:
  virtual ~ChainableControllerInterface() = default;
  virtual CallbackReturn on_init() = 0;
  virtual CallbackReturn on_configure(const rclcpp_lifecycle::State &) = 0;
  virtual CallbackReturn on_activate(const rclcpp_lifecycle::State &) = 0;
  virtual CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) = 0;
  virtual InterfaceConfiguration command_interface_configuration() const = 0;
  virtual InterfaceConfiguration state_interface_configuration() const = 0;
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> get_node() const { return node; }
  template <typename T>
  T auto_declare(const std::string &name, const T &value) {
    node->values.emplace(name, value);
    return value;
  }
  // Of the tests: the real class keeps these to itself.
  return_type run(double seconds) {
    return update_and_write_commands(rclcpp::Time(), rclcpp::Duration(seconds));
  }
  std::vector<hardware_interface::CommandInterface> references() {
    return on_export_reference_interfaces();
  }
  std::vector<hardware_interface::LoanedCommandInterface> command_interfaces_;
  std::vector<hardware_interface::LoanedStateInterface> state_interfaces_;
  std::vector<double> reference_interfaces_;

 protected:
  virtual std::vector<hardware_interface::CommandInterface> on_export_reference_interfaces() = 0;
  virtual bool on_set_chained_mode(bool) = 0;
  virtual return_type update_reference_from_subscribers(const rclcpp::Time &,
                                                        const rclcpp::Duration &) = 0;
  virtual return_type update_and_write_commands(const rclcpp::Time &, const rclcpp::Duration &) = 0;

 private:
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> node =
      std::make_shared<rclcpp_lifecycle::LifecycleNode>();
};
}  // namespace controller_interface
