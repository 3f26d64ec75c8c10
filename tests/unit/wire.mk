# unit tests of wire/
