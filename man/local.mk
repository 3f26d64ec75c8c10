dist_man_MANS += \
	man/dml-coordinator.1 \
	man/dml-shard.1 \
	man/dml-replica.1 \
	man/dml-model.3 \
	man/dml-objective.3 \
	man/dml.conf.5 \
	man/dml-cluster.7 \
	man/dml-figures.7 \
	man/dml-intro.7 \
	man/dml-protocol.7 \
	man/dml-python.7 \
	man/dml-retrain.7 \
	man/dml-status.7 \
	man/dml-summaries.7 \
	man/dml-tasks.7
