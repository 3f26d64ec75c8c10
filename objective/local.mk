noinst_LIBRARIES += libobjective.a
libobjective_a_SOURCES = \
	objective/block.c \
	objective/curvature.c \
	objective/dense.c \
	objective/huber.c \
	objective/logistic.c \
	objective/objective.h objective/objectives.def objective/parameters.def \
	objective/parts.h \
	objective/proof.c \
	objective/softmax.c \
	objective/sparse.c \
	objective/squared.c \
	objective/squared_hinge.c \
	objective/table.c \
	objective/triangle.c
OBJECTIVE_LIBS = libobjective.a
