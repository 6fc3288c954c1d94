/* A graph of pieces of work (nodes) that start when those before them have ended, ready to be replayed. */
#ifndef STEPSCOPE_REPLAY_H
#define STEPSCOPE_REPLAY_H

#include "arrow.h"

/* Nodes in an order in which each comes after those that it waits for. Nothing is changed once it is made, so that
 * several threads may replay it at once. */
typedef struct {
    int64_t nodes, left; /* `left`: edges that are left out */
    int32_t *order;      /* nodes */
    int32_t *first;      /* by place in the order: where its predecessors begin in `before`; one more for the end */
    int32_t *before;     /* nodes */
    int64_t *starts;     /* traced starts of nodes without predecessors, in the order */
    int64_t *left_out;   /* rows of edges */
} replay;

EXPORT void ss_replay_free(replay *r);

#endif
