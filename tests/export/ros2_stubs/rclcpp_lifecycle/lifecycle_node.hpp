// A node whose parameters are set by the test.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>
namespace rclcpp_lifecycle {
class State {};
using Value = std::variant<bool, std::vector<double>, std::vector<std::string>>;
class Parameter {
 public:
  explicit Parameter(Value value) : value_(std::move(value)) {}
  bool as_bool() const { return std::get<bool>(value_); }
  std::vector<double> as_double_array() const { return std::get<std::vector<double>>(value_); }
  std::vector<std::string> as_string_array() const {
    return std::get<std::vector<std::string>>(value_);
  }

 private:
  Value value_;
};
class LifecycleNode {
 public:
  const char *get_name() const { return "feed_forward_controller"; }
  Parameter get_parameter(const std::string &name) const { return Parameter(values.at(name)); }
  std::map<std::string, Value> values;
};
}  // namespace rclcpp_lifecycle
