// The module: every kernel family adds its functions.
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
  metarank::interrupt_check().store(&python_interrupted);
  nb::set_leak_warnings(false);  // objects that live to the end of the process are no fault
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const metarank::Interrupted&) {
      PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
  });
  metarank::bind_elementary(m);
  metarank::bind_hashing(m);
  metarank::bind_pair_scores(m);
  metarank::bind_rank_gradients(m);
  metarank::bind_auc_gradients(m);
  metarank::bind_lambda_gradients(m);
  metarank::bind_names(m);
  metarank::bind_gbdt_predict(m);
  metarank::bind_text_parse(m);
  metarank::bind_linear_train(m);
  metarank::bind_label_tree_train(m);
  metarank::bind_unit_rows(m);
  metarank::bind_linear_predict(m);
  metarank::bind_kernel_machine(m);
  metarank::bind_forest_predict(m);
  metarank::bind_metrics(m);
  metarank::bind_regression_errors(m);
  metarank::bind_topk(m);
  metarank::bind_inverted_index(m);
  metarank::bind_label_neighbors(m);
  metarank::bind_neighbor_votes(m);
  metarank::bind_centroid(m);
  metarank::bind_gram(m);
  metarank::bind_label_means(m);
  metarank::bind_label_mean_index(m);
  metarank::bind_candidate_lists(m);
  metarank::bind_standardize(m);
  metarank::bind_cuts(m);
  metarank::bind_label_vectors(m);
  metarank::bind_label_partition(m);
  metarank::bind_weight_blocks(m);
  metarank::bind_weight_index(m);
  metarank::bind_label_trees(m);
  metarank::bind_one_vs_all(m);
  metarank::bind_instance_tree_train(m);
  metarank::bind_instance_trees(m);
  metarank::bind_text_encoder(m);
  metarank::bind_vector_scores(m);
}
