# unit tests of store/
