// A torque loop at 1 kHz for Franka arms (libfranka) around the exported C of a fitted model.
//
//     taufit export panda.json -o out/arm.c
//     c++ -std=c++17 -O2 -I out franka_loop.cpp -x c out/arm.c -lfranka -o franka_loop
//     ./franka_loop ADDRESS
//
// libfranka adds gravity itself, so gravity is taken out of the command. Keep the stop button in
// your hand: this loop was compiled and run against stand-in headers, not on a robot.
#include <franka/exception.h>
#include <franka/robot.h>

#include <algorithm>
#include <array>
#include <iostream>

#include "arm.h"
#include "reference.hpp"

#define ARM(function) panda_##function
constexpr int N = PANDA_JOINTS;
// Gains as in libfranka's impedance examples are of this order; greatest change of torque per period.
constexpr std::array<double, 7> STIFFNESS = {400, 400, 400, 400, 150, 100, 40};
constexpr std::array<double, 7> DAMPING = {40, 40, 40, 40, 12, 10, 4};
constexpr double GREATEST_CHANGE = 1.0;

int main(int argc, char **argv) {
  if (argc != 2) return std::cerr << "usage: franka_loop ADDRESS\n", 2;
  try {
    franka::Robot robot(argv[1]);
    robot.setCollisionBehavior({{40, 40, 36, 36, 32, 28, 24}}, {{40, 40, 36, 36, 32, 28, 24}},
                               {{40, 40, 40, 50, 50, 50}}, {{40, 40, 40, 50, 50, 50}});
    const std::array<double, 7> home = robot.readOnce().q;
    const Reference reference;
    ARM(controller) controller;
    ARM(controller_start)(&controller);
    double time = 0.0, worst = 0.0;
    std::array<double, 7> sent{};
    robot.control([&](const franka::RobotState &state, franka::Duration period) -> franka::Torques {
      const double dt = 0.001;
      time += period.toSec();
      double q[N], v[N], a[N], full[N], gravity[N], applied[N];
      // The command acts one period later: feed forward what is due then.
      for (int k = 0; k < N; k++) {
        reference.at(time + dt, k, q + k, v + k, a + k);
        q[k] += home[k];
      }
      ARM(feed_forward)(&controller, q, v, a, nullptr, dt, full);
      ARM(gravity)(q, gravity);
      for (int k = 0; k < N; k++) {
        double position, velocity, acceleration;
        reference.at(time, k, &position, &velocity, &acceleration);
        const double error = home[k] + position - state.q[k];
        worst = std::max(worst, std::abs(error));
        const double wanted = full[k] - gravity[k] + STIFFNESS[k] * error +
                              DAMPING[k] * (velocity - state.dq[k]);
        sent[k] = std::clamp(wanted, state.tau_J_d[k] - GREATEST_CHANGE,
                             state.tau_J_d[k] + GREATEST_CHANGE);
        applied[k] = sent[k] + gravity[k];
      }
      ARM(track_friction)(&controller, applied, dt);
      franka::Torques torques(sent);
      return time >= reference.duration ? franka::MotionFinished(torques) : torques;
    });
    std::cout << "largest tracking error " << 1e3 * worst << " mrad\n";
  } catch (const franka::Exception &error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
