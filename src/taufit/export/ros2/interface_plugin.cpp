// Plug-in for inverse_dynamics_interface: links and rotors; friction of steady motion and
// external wrenches (force; moment) apart.
#include "inverse_dynamics_interface/inverse_dynamics_interface.hpp"

#include "inverse_dynamics.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace taufit_@NAME@ {

using Wrench = Eigen::Matrix<double, 6, 1>;

class Interface : public InverseDynamics<inverse_dynamics_interface::InverseDynamicsInterface> {
 public:
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
    VectorXd tau = torques(q, v, a);
    if (!wrench.isZero(0.0)) tau += getExternalTorques(q, wrench);
    return tau;
  }
};

}  // namespace taufit_@NAME@

PLUGINLIB_EXPORT_CLASS(taufit_@NAME@::Interface,
                       inverse_dynamics_interface::InverseDynamicsInterface)
