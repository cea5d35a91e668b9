// Functions that both interfaces of inverse dynamics ask for, from the exported C.
#pragma once
#include <stdexcept>
#include <string>

#include <Eigen/Core>

#include "@NAME@.h"

namespace taufit_@NAME@ {

using Eigen::MatrixXd;
using Eigen::VectorXd;
constexpr int JOINTS = ARM_JOINTS;

template <class Base>
class InverseDynamics : public Base {
 public:
  void initialize(rclcpp::node_interfaces::NodeParametersInterface::ConstSharedPtr,
                  const std::string &, const std::string &) override {}

  MatrixXd getInertiaMatrix(const VectorXd &q) const override {
    require_size(q);
    MatrixXd m(JOINTS, JOINTS);  // symmetric: rows and columns are alike
    arm_mass_matrix(q.data(), m.data());
    return m;
  }

  VectorXd getCoriolisVector(const VectorXd &q, const VectorXd &v) const override {
    require_size(q), require_size(v);
    VectorXd tau(JOINTS);
    arm_coriolis(q.data(), v.data(), tau.data());
    return tau;
  }

  VectorXd getGravityVector(const VectorXd &q) const override {
    require_size(q);
    VectorXd tau(JOINTS);
    arm_gravity(q.data(), tau.data());
    return tau;
  }

  // Neither position nor load is given: friction is that at q = 0 without load.
  VectorXd getFrictionVector(const VectorXd &v) const override {
    require_size(v);
    const double zero[JOINTS] = {0};
    VectorXd tau(JOINTS);
    arm_friction(zero, v.data(), zero, nullptr, tau.data());
    return tau;
  }

 protected:
  // Torque of links and rotors.
  static VectorXd torques(const VectorXd &q, const VectorXd &v, const VectorXd &a) {
    require_size(q), require_size(v), require_size(a);
    VectorXd tau(JOINTS);
    arm_inverse_dynamics(q.data(), v.data(), a.data(), tau.data());
    return tau;
  }

  static void require_size(const VectorXd &x) {
    if (x.size() != JOINTS)
      throw std::invalid_argument("this model has " + std::to_string(JOINTS) + " joints, found " +
                                  std::to_string(x.size()) + " values");
  }
};

}  // namespace taufit_@NAME@
