// Prints an SDF file as libsdformat reads it: one line per moving joint.
#include <iostream>

#include <sdf/Joint.hh>
#include <sdf/JointAxis.hh>
#include <sdf/Link.hh>
#include <sdf/Model.hh>
#include <sdf/Root.hh>

static void print(const ignition::math::Pose3d &pose) {
  std::cout << " " << pose.Pos().X() << " " << pose.Pos().Y() << " " << pose.Pos().Z() << " "
            << pose.Rot().X() << " " << pose.Rot().Y() << " " << pose.Rot().Z() << " "
            << pose.Rot().W();
}

int main(int, char **arguments) {
  sdf::Root root;
  const sdf::Errors errors = root.Load(arguments[1]);
  for (const auto &error : errors) std::cerr << error.Message() << "\n";
  if (!errors.empty()) return 1;
  const sdf::Model *model = root.Model();
  std::cout.precision(17);
  std::cout << "model";
  print(model->RawPose());
  std::cout << "\n";
  for (uint64_t i = 0; i < model->JointCount(); ++i) {
    const sdf::Joint *joint = model->JointByIndex(i);
    if (joint->Type() == sdf::JointType::FIXED) continue;
    std::string parent, child;
    joint->ResolveParentLink(parent);
    joint->ResolveChildLink(child);
    const sdf::Link *link = model->LinkByName(child);
    ignition::math::Pose3d pose;
    if (!link->SemanticPose().Resolve(pose, parent).empty()) return 2;
    const sdf::JointAxis *axis = joint->Axis();
    std::cout << joint->Name() << " " << (joint->Type() == sdf::JointType::PRISMATIC);
    print(pose);
    const auto &body = link->Inertial();
    std::cout << " " << axis->Xyz().X() << " " << axis->Xyz().Y() << " " << axis->Xyz().Z() << " "
              << axis->Damping() << " " << axis->Friction() << " " << axis->SpringStiffness() << " "
              << body.MassMatrix().Mass();
    print(body.Pose());
    for (const auto &x : {body.MassMatrix().DiagonalMoments(), body.MassMatrix().OffDiagonalMoments()})
      std::cout << " " << x.X() << " " << x.Y() << " " << x.Z();
    std::cout << "\n";
  }
}
