# unit tests of numeric/
