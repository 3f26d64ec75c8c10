# unit tests of replica/
