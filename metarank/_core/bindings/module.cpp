// The module: every family of kernels adds its functions.
#include "../parallel.h"
#include "bindings.h"

namespace {

bool python_interrupted() {
  nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) {
    PyErr_Clear();
    return true;
  }
  return false;
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "Compiled kernels of metarank: arrays and numbers in, arrays and numbers out.";
  metarank::set_interrupt_check(&python_interrupted);
  nb::set_leak_warnings(false);  // objects that live to the end of the process are no fault
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const metarank::Interrupted&) {
      PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
  });
  metarank::bindings::bind_rows(m);
  metarank::bindings::bind_lists(m);
  metarank::bindings::bind_metrics(m);
  metarank::bindings::bind_objectives(m);
  metarank::bindings::bind_linear(m);
  metarank::bindings::bind_neighbors(m);
  metarank::bindings::bind_boosting(m);
  metarank::bindings::bind_label_trees(m);
  metarank::bindings::bind_instance_trees(m);
  metarank::bindings::bind_text(m);
}
