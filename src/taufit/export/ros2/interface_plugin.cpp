// Plug-in for inverse_dynamics_interface: links and rotors; friction of steady motion and
// external wrenches (force; moment) apart.
#include <stdexcept>
#include <string>

#include <Eigen/Core>

#include "@NAME@.h"
#include "inverse_dynamics_interface/inverse_dynamics_interface.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace taufit_@NAME@ {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using Wrench = Eigen::Matrix<double, 6, 1>;
constexpr int JOINTS = ARM_JOINTS;

class Interface : public inverse_dynamics_interface::InverseDynamicsInterface {
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

  // Twist of the flange (linear; angular) in base axes per joint velocity. Some versions of the
  // interface have this function, others the next one.
  MatrixXd getJacobian(const VectorXd &q) const {
    require_size(q);
    double rows[6 * JOINTS];
    arm_jacobian(q.data(), rows);
    MatrixXd jacobian(6, JOINTS);
    for (int k = 0; k < 6; ++k)
      for (int i = 0; i < JOINTS; ++i) jacobian((k + 3) % 6, i) = rows[JOINTS * k + i];
    return jacobian;
  }

  // Joint torque that exerts a wrench (force; moment, in base axes) with the flange.
  VectorXd getExternalTorques(const VectorXd &q, const Wrench &wrench) const {
    return getJacobian(q).transpose() * wrench;
  }

  VectorXd getTorques(const VectorXd &q, const VectorXd &v, const VectorXd &a,
                      const Wrench &wrench = Wrench::Zero()) const override {
    require_size(q), require_size(v), require_size(a);
    VectorXd tau(JOINTS);
    arm_inverse_dynamics(q.data(), v.data(), a.data(), tau.data());
    if (!wrench.isZero(0.0)) tau += getExternalTorques(q, wrench);
    return tau;
  }

 private:
  static void require_size(const VectorXd &x) {
    if (x.size() != JOINTS)
      throw std::invalid_argument("this model has " + std::to_string(JOINTS) + " joints, found " +
                                  std::to_string(x.size()) + " values");
  }
};

}  // namespace taufit_@NAME@

PLUGINLIB_EXPORT_CLASS(taufit_@NAME@::Interface, inverse_dynamics_interface::InverseDynamicsInterface)
