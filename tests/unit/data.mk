# unit tests of data/
