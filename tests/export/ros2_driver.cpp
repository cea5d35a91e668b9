// Loads the plug-ins of an exported package and compares them with the C beside them.
#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "arm_under_test.h"
#include "controller_interface/chainable_controller_interface.hpp"
#include "inverse_dynamics_interface/inverse_dynamics_interface.hpp"
#include "inverse_dynamics_solver/inverse_dynamics_solver.hpp"

static long allocations = 0;
extern "C" void *__libc_malloc(size_t);
extern "C" void *malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}

template <class Plugin>
static Plugin *load(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) std::fprintf(stderr, "%s\n", dlerror()), std::exit(2);
  return reinterpret_cast<Plugin *(*)()>(dlsym(library, "make_plugin"))();
}

static double worst = 0.0;
static void compare(double x, double y) {
  worst = std::fmax(worst, std::fabs(x - y) / std::fmax(100.0, std::fabs(y)));
}

int main(int, char **paths) {
  auto *solver = load<inverse_dynamics_solver::InverseDynamicsSolver>(paths[1]);
  auto *interface = load<inverse_dynamics_interface::InverseDynamicsInterface>(paths[2]);
  auto *controller = load<controller_interface::ChainableControllerInterface>(paths[3]);
  const int states = std::atoi(paths[4]);
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  Eigen::VectorXd q(JOINTS), v(JOINTS), a(JOINTS);
  double tau[JOINTS], m[JOINTS * JOINTS], zero[JOINTS] = {0};
  for (int s = 0; s < states; ++s) {
    for (int i = 0; i < JOINTS; ++i) q[i] = normal(random), v[i] = normal(random), a[i] = normal(random);
    ARM(inverse_dynamics)(q.data(), v.data(), a.data(), tau);
    const auto one = solver->getTorques(q, v, a), two = interface->getTorques(q, v, a);
    for (int i = 0; i < JOINTS; ++i) compare(one[i], tau[i]), compare(two[i], tau[i]);
    // The base class's sum of parts is another way to the same torque.
    const auto parts = solver->InverseDynamicsSolver::getTorques(q, v, a);
    for (int i = 0; i < JOINTS; ++i) compare(parts[i], tau[i]);
    ARM(friction)(zero, v.data(), zero, nullptr, tau);
    const auto friction = solver->getFrictionVector(v);
    for (int i = 0; i < JOINTS; ++i) compare(friction[i], tau[i]);
    ARM(mass_matrix)(q.data(), m);
    const auto inertia = interface->getInertiaMatrix(q);
    for (int i = 0; i < JOINTS; ++i)
      for (int k = 0; k < JOINTS; ++k) compare(inertia(i, k), m[JOINTS * i + k]);
  }
  // The controller: feed-forward with memory plus the position loop, without an allocation.
  controller->on_init();
  auto &values = controller->get_node()->values;
  std::vector<std::string> names;
  for (int i = 0; i < JOINTS; ++i) names.push_back("joint" + std::to_string(i));
  values["joints"] = names;
  values["stiffness"] = std::vector<double>(JOINTS, 50.0);
  values["track_friction"] = true;
  if (controller->on_configure({}) != controller_interface::CallbackReturn::SUCCESS) return 3;
  controller->references();
  static double effort[JOINTS], state[2 * JOINTS];
  for (int i = 0; i < JOINTS; ++i) controller->command_interfaces_.emplace_back(&effort[i]);
  for (int i = 0; i < 2 * JOINTS; ++i) controller->state_interfaces_.emplace_back(&state[i]);
  if (controller->on_activate({}) != controller_interface::CallbackReturn::SUCCESS) return 4;
  ARM_TYPE(controller) other;
  ARM(controller_start)(&other);
  long before = allocations;
  for (int s = 0; s < 2000; ++s) {
    for (int i = 0; i < JOINTS; ++i) {
      const double t = 0.002 * s, w = 1.0 + 0.3 * i;
      q[i] = std::sin(w * t), v[i] = w * std::cos(w * t), a[i] = -w * w * std::sin(w * t);
      controller->reference_interfaces_[3 * i] = q[i];
      controller->reference_interfaces_[3 * i + 1] = v[i];
      controller->reference_interfaces_[3 * i + 2] = a[i];
      state[2 * i] = q[i] - 0.01;
      state[2 * i + 1] = v[i];
    }
    if (controller->run(0.002) != controller_interface::return_type::OK) return 5;
    ARM(feed_forward)(&other, q.data(), v.data(), a.data(), nullptr, 0.002, tau);
    for (int i = 0; i < JOINTS; ++i) tau[i] += 50.0 * (q[i] - state[2 * i]);
    ARM(track_friction)(&other, tau, 0.002);
    for (int i = 0; i < JOINTS; ++i) compare(effort[i], tau[i]);
  }
  before = allocations - before;
  state[0] = std::nan("");
  const bool refused = controller->run(0.002) == controller_interface::return_type::ERROR;
  std::printf("%.3g %ld %d\n", worst, before, refused);
}
