# replica
