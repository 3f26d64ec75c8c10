# unit tests of coordinator/
