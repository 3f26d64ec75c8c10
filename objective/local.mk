# objective
