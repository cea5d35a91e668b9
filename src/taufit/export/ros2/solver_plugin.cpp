// Plug-in for inverse_dynamics_solver: links and rotors; friction of steady motion apart.
#include "inverse_dynamics_solver/inverse_dynamics_solver.hpp"

#include "inverse_dynamics.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace taufit_@NAME@ {

class Solver : public InverseDynamics<inverse_dynamics_solver::InverseDynamicsSolver> {
 public:
  VectorXd getTorques(const VectorXd &q, const VectorXd &v, const VectorXd &a) const override {
    return torques(q, v, a);
  }
};

}  // namespace taufit_@NAME@

PLUGINLIB_EXPORT_CLASS(taufit_@NAME@::Solver, inverse_dynamics_solver::InverseDynamicsSolver)
