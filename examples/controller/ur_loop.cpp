// A torque loop for Universal Robots over RTDE (Universal_Robots_Client_Library, PolyScope 5.25.1
// or 10.12.1 and later) around the exported C of a fitted model, 500 Hz.
//
//     taufit export ur5e.json -o out/arm.c
//     c++ -std=c++17 -O2 -I out ur_loop.cpp -x c out/arm.c -lurcl -o ur_loop
//     ./ur_loop ADDRESS external_control.urscript output_recipe.txt input_recipe.txt
//
// direct_torque adds gravity itself, so gravity is taken out of the command; its own friction
// compensation is switched off, since the model has it. Keep the stop button in your hand: this
// loop was compiled and run against stand-in headers, not on a robot.
#include <ur_client_library/ur/ur_driver.h>

#include <algorithm>
#include <array>
#include <iostream>

#include "arm.h"
#include "reference.hpp"

#define ARM(function) ur5e_##function
constexpr int N = UR5E_JOINTS;
constexpr double STEP = 0.002;
constexpr std::array<double, 6> STIFFNESS = {900, 900, 700, 200, 150, 80};
constexpr std::array<double, 6> DAMPING = {60, 60, 40, 8, 5, 2};
constexpr std::array<double, 6> LARGEST = {150, 150, 150, 28, 28, 28};  // maker's data sheet, N m

int main(int argc, char **argv) {
  if (argc != 5) return std::cerr << "usage: ur_loop ADDRESS SCRIPT OUTPUTS INPUTS\n", 2;
  urcl::UrDriverConfiguration settings;
  settings.robot_ip = argv[1];
  settings.script_file = argv[2];
  settings.output_recipe_file = argv[3];
  settings.input_recipe_file = argv[4];
  settings.headless_mode = true;
  settings.handle_program_state = [](bool) {};
  urcl::UrDriver driver(settings);
  if (!driver.setFrictionCompensation(false)) return std::cerr << "not in remote control\n", 1;
  driver.startRTDECommunication();
  const Reference reference;
  ARM(controller) controller;
  ARM(controller_start)(&controller);
  urcl::vector6d_t home{}, position{}, velocity{}, command{};
  double worst = 0.0;
  for (int period = 0; period * STEP <= reference.duration; period++) {
    const auto package = driver.getDataPackage();
    if (!package || !package->getData("actual_q", position) ||
        !package->getData("actual_qd", velocity))
      return driver.stopControl(), std::cerr << "no data from the robot\n", 1;
    if (period == 0) home = position;
    const double time = period * STEP;
    double q[N], v[N], a[N], full[N], gravity[N], applied[N];
    // The command acts one period later: feed forward what is due then.
    for (int k = 0; k < N; k++) {
      reference.at(time + STEP, k, q + k, v + k, a + k);
      q[k] += home[k];
    }
    ARM(feed_forward)(&controller, q, v, a, nullptr, STEP, full);
    ARM(gravity)(q, gravity);
    for (int k = 0; k < N; k++) {
      double wanted, rate, change;
      reference.at(time, k, &wanted, &rate, &change);
      const double error = home[k] + wanted - position[k];
      worst = std::max(worst, std::abs(error));
      const double torque = full[k] - gravity[k] + STIFFNESS[k] * error +
                            DAMPING[k] * (rate - velocity[k]);
      command[k] = std::clamp(torque, -LARGEST[k], LARGEST[k]);
      applied[k] = command[k] + gravity[k];
    }
    ARM(track_friction)(&controller, applied, STEP);
    if (!driver.writeJointCommand(command, urcl::comm::ControlMode::MODE_TORQUE,
                                  urcl::RobotReceiveTimeout::millisec(20)))
      return driver.stopControl(), std::cerr << "the robot takes no commands\n", 1;
  }
  driver.stopControl();
  std::cout << "largest tracking error " << 1e3 * worst << " mrad\n";
  return 0;
}
