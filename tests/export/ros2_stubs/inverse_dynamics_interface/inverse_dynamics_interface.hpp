// Signatures of inverse_dynamics_interface.
#pragma once
#include <Eigen/Core>
#include <string>
#include <tuple>

#include "rclcpp/node_interfaces/node_parameters_interface.hpp"
namespace inverse_dynamics_interface {
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Wrench = Eigen::Matrix<double, 6, 1>;
class InverseDynamicsInterface {
 public:
  virtual ~InverseDynamicsInterface() = default;
  virtual void initialize(rclcpp::node_interfaces::NodeParametersInterface::ConstSharedPtr node = nullptr,
                          const std::string &prefix = "", const std::string &urdf = "") = 0;
  virtual MatrixXd getInertiaMatrix(const VectorXd &q) const = 0;
  virtual VectorXd getCoriolisVector(const VectorXd &q, const VectorXd &v) const = 0;
  virtual VectorXd getGravityVector(const VectorXd &q) const = 0;
  virtual VectorXd getFrictionVector(const VectorXd &v) const = 0;
  virtual VectorXd getExternalTorques(const VectorXd &q, const Wrench &wrench) const = 0;
  virtual VectorXd getTorques(const VectorXd &q, const VectorXd &v, const VectorXd &a,
                              const Wrench &wrench = VectorXd::Zero(6)) const {
    return getInertiaMatrix(q) * a + getCoriolisVector(q, v) + getGravityVector(q) +
           getExternalTorques(q, wrench);
  }
};
}  // namespace inverse_dynamics_interface
