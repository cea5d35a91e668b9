// Signatures of inverse_dynamics_solver (Humble 1.0, Jazzy 2.0).
#pragma once
#include <Eigen/Core>
#include <string>
#include <tuple>

#include "rclcpp/node_interfaces/node_parameters_interface.hpp"
namespace inverse_dynamics_solver {
using Eigen::MatrixXd;
using Eigen::VectorXd;
class InverseDynamicsSolver {
 public:
  virtual ~InverseDynamicsSolver() = default;
  virtual void initialize(rclcpp::node_interfaces::NodeParametersInterface::ConstSharedPtr node = nullptr,
                          const std::string &prefix = "", const std::string &urdf = "") = 0;
  virtual std::tuple<MatrixXd, VectorXd, VectorXd> getDynamicParameters(const VectorXd &q,
                                                                        const VectorXd &v) const {
    return {getInertiaMatrix(q), getCoriolisVector(q, v), getGravityVector(q)};
  }
  virtual MatrixXd getInertiaMatrix(const VectorXd &q) const = 0;
  virtual VectorXd getCoriolisVector(const VectorXd &q, const VectorXd &v) const = 0;
  virtual VectorXd getGravityVector(const VectorXd &q) const = 0;
  virtual VectorXd getFrictionVector(const VectorXd &v) const = 0;
  virtual VectorXd getTorques(const VectorXd &q, const VectorXd &v, const VectorXd &a) const {
    return getInertiaMatrix(q) * a + getCoriolisVector(q, v) + getGravityVector(q);
  }
};
}  // namespace inverse_dynamics_solver
