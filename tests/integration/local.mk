# Python scripts that run the real programs. Each prints TAP.
INTEGRATION_TESTS = \
	tests/integration/test_ends.py \
	tests/integration/test_silence.py \
	tests/integration/test_optima.py \
	tests/integration/test_tiles.py \
	tests/integration/test_network_tiles.py \
	tests/integration/test_bits.py \
	tests/integration/test_directions.py \
	tests/integration/test_devices.py \
	tests/integration/test_http.py \
	tests/integration/test_init.py \
	tests/integration/test_retrain.py \
	tests/integration/test_invocations.py \
	tests/integration/test_publishing.py \
	tests/integration/test_path.py \
	tests/integration/test_folds.py \
	tests/integration/test_choosing.py \
	tests/integration/test_columns.py \
	tests/integration/test_set_changes.py \
	tests/integration/test_shuffled.py \
	tests/integration/test_text.py \
	tests/integration/test_epochs.py \
	tests/integration/test_loop.py \
	tests/integration/test_hosts_apart.py \
	tests/integration/test_links.py \
	tests/integration/test_network_models.py \
	tests/integration/test_network.py \
	tests/integration/test_downpour.py \
	tests/integration/test_weights.py \
	tests/integration/test_thresholds.py \
	tests/integration/test_calibration.py \
	tests/integration/test_offsets.py \
	tests/integration/test_precondition.py \
	tests/integration/test_l1.py \
	tests/integration/test_bounds.py \
	tests/integration/test_crosses.py \
	tests/integration/test_derive.py \
	tests/integration/test_diff.py \
	tests/integration/test_dates.py \
	tests/integration/test_jsonl.py \
	tests/integration/test_parquet.py \
	tests/integration/test_remote.py \
	tests/integration/test_folders.py \
	tests/integration/test_covariance.py \
	tests/integration/test_summary.py \
	tests/integration/test_hosts.py \
	tests/integration/test_plugin.py \
	tests/integration/test_layers.py \
	tests/integration/test_single_errors.py \
	tests/integration/test_start.py \
	tests/integration/test_early_workers.py \
	tests/integration/test_elastic.py \
	tests/integration/test_rounds.py \
	tests/integration/test_rows_by_message.py \
	tests/integration/test_level_split.py \
	tests/integration/test_near_collinear.py \
	tests/integration/test_separation.py \
	tests/integration/test_serving.py \
	tests/integration/test_manuals.py \
	tests/integration/test_monotone.py \
	tests/integration/test_examples.py \
	tests/integration/test_commands.py \
	tests/integration/test_tools.py \
	tests/integration/test_state.py \
	tests/integration/test_upgrades.py \
	tests/integration/test_versions.py \
	tests/integration/test_repeated.py \
	tests/integration/test_streams.py \
	tests/integration/test_names.py \
	tests/integration/test_limits.py \
	tests/integration/test_copies.py \
	tests/integration/test_read_only.py \
	tests/integration/test_scored_data.py \
	tests/integration/test_readback.py \
	tests/integration/test_table_ids.py \
	tests/integration/test_table_files.py \
	tests/integration/test_hints.py \
	tests/integration/test_table_nights.py \
	tests/integration/test_tables.py \
	tests/integration/test_far_columns.py \
	tests/integration/test_figures.py \
	tests/integration/test_library.py \
	tests/integration/test_python.py \
	tests/integration/test_notebook.py \
	tests/integration/test_training.py \
	tests/integration/test_service.py \
	tests/integration/test_r.py \
	tests/integration/test_intro.py \
	tests/integration/test_html.py \
	tests/integration/test_predict.py \
	tests/integration/test_proportional_odds.py \
	tests/integration/test_prune.py \
	tests/integration/test_export.py \
	tests/integration/test_explain.py \
	tests/integration/test_pasted_rows.py \
	tests/integration/test_importance.py \
	tests/integration/test_terminal.py \
	tests/integration/test_holdout.py \
	tests/integration/test_early_stopping.py \
	tests/integration/test_completion.py \
	tests/integration/test_bad_input.py \
	tests/integration/test_penalty.py \
	tests/integration/test_residual_tables.py \
	tests/integration/test_units.py \
	tests/integration/test_kronecker.py \
	tests/integration/test_kubernetes.py \
	tests/integration/test_spellings.py \
	tests/integration/test_standardise.py \
	tests/integration/test_objectives.py \
	tests/integration/test_onnx.py \
	tests/integration/test_losses.py \
	tests/integration/test_leading_block.py \
	tests/integration/test_ordinal.py \
	tests/integration/test_multilabel.py \
	tests/integration/test_scratch.py \
	tests/integration/test_fencing.py \
	tests/integration/test_waiting.py \
	tests/integration/test_images.py \
	tests/integration/test_cuda.py \
	tests/integration/test_reading.py \
	tests/integration/test_nights.py
TESTS += $(INTEGRATION_TESTS)
EXTRA_DIST += $(INTEGRATION_TESTS) \
	tests/integration/harness.py \
	tests/integration/stored.py \
	tests/integration/version_1.tar.xz \
	tests/integration/adagrad.py \
	tests/integration/descent.py \
	tests/integration/wide.py \
	tests/integration/nightly.py \
	tests/integration/objects.py \
	tests/integration/onnx_graph.py \
	tests/integration/optimum.py \
	tests/integration/row_hash.py \
	tests/integration/responses.py \
	tests/integration/divided.py \
	tests/integration/bins.py \
	tests/integration/summaries.py \
	tests/integration/exact_fits.py \
	tests/integration/sweeps.py \
	tests/integration/terminal.py \
	tests/integration/metrics_text.py

# Every combination of the settings that must not change a bit: takes minutes.
DIVIDED_TESTS = tests/integration/test_tiles.py tests/integration/test_network_tiles.py \
	tests/integration/test_directions.py \
	tests/integration/test_leading_block.py tests/integration/test_offsets.py \
	tests/integration/test_covariance.py
check-bits: all
	$(MAKE) check-TESTS DML_BITS=all TESTS='tests/integration/test_bits.py $(DIVIDED_TESTS)'
.PHONY: check-bits

# The optima of all rows of the large data sets, too.
check-optima: all
	$(MAKE) check-TESTS TESTS=tests/integration/test_optima.py DML_OPTIMA=all
.PHONY: check-optima
