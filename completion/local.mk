completiondir = $(datadir)/bash-completion/completions
dist_completion_DATA = completion/dml-coordinator
