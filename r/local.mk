# The package for R, of the release alone: `R CMD INSTALL r` installs it.
EXTRA_DIST += r/DESCRIPTION r/LICENSE r/NAMESPACE r/R/dml.R r/man/dml_train.Rd
