# unit tests of shard/
