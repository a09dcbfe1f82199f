// The module: every family of kernels adds its functions.
#include <nanobind/stl/string.h>

#include <cstdlib>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "../cpu_level.h"
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

const char* compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

// What was freed in pieces stays with the process otherwise.
void release_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "Compiled kernels of metarank: arrays and numbers in, arrays and numbers out.";
  metarank::choose_cpu_level(std::getenv("METARANK_CPU_LEVEL"));  // what it throws is an ImportError here
  m.def("cpu_level", &metarank::cpu_level, "The level of the processor whose kernels are used.");
  m.def("release_memory", &release_memory, "Give freed memory back to the system, where it takes it.");
  m.def("cpu_levels", &metarank::cpu_levels, "The levels that this processor has, the least first.");
  m.def("compiler", &compiler, "What this module was compiled by.");
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
  metarank::bindings::bind_plan(m);
  metarank::bindings::bind_linear(m);
  metarank::bindings::bind_neighbors(m);
  metarank::bindings::bind_boosting(m);
  metarank::bindings::bind_label_trees(m);
  metarank::bindings::bind_instance_trees(m);
  metarank::bindings::bind_text(m);
}
