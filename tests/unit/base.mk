# unit tests of base/
