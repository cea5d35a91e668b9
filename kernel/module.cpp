// taufit._kernel: the compiled loops. Each file beside this one binds its own functions.
#include <nanobind/nanobind.h>

void bind_signs(nanobind::module_ &);

NB_MODULE(_kernel, m) {
    m.doc() = "taufit's compiled loops";
    bind_signs(m);
}
