# unit tests of objective/
