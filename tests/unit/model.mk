# unit tests of model/
