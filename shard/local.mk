# shard
