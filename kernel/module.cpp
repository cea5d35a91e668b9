// taufit._kernel: the compiled loops. Each file beside this one binds its own functions.
#include <nanobind/nanobind.h>

void bind_cells(nanobind::module_& m);
void bind_change_test(nanobind::module_& m);
void bind_ending(nanobind::module_& m);
void bind_external_torque(nanobind::module_& m);
void bind_intake(nanobind::module_& m);
void bind_interval(nanobind::module_& m);
void bind_model_torque(nanobind::module_& m);
void bind_payload_body(nanobind::module_& m);
void bind_payload_rows(nanobind::module_& m);
void bind_recursive_filter(nanobind::module_& m);
void bind_regressor(nanobind::module_& m);
void bind_servo(nanobind::module_& m);
void bind_signs(nanobind::module_& m);
void bind_streams(nanobind::module_& m);
void bind_text_table(nanobind::module_& m);
void bind_twin(nanobind::module_& m);

NB_MODULE(_kernel, m) {
    m.doc() = "taufit's compiled loops";
    // A command that is ended while threads still hold engines is no leak: say nothing about it.
    nanobind::set_leak_warnings(false);
    bind_cells(m);
    bind_change_test(m);
    bind_ending(m);
    bind_external_torque(m);
    bind_intake(m);
    bind_interval(m);
    bind_model_torque(m);
    bind_payload_body(m);
    bind_payload_rows(m);
    bind_recursive_filter(m);
    bind_regressor(m);
    bind_servo(m);
    bind_signs(m);
    bind_streams(m);
    bind_text_table(m);
    bind_twin(m);
}
