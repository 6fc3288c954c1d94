/* Putting a graph of pieces of work in order, and leaving out edges that close a cycle. */
#include <stdlib.h>
#include <string.h>

#include "replay.h"

/* The graph as given, and for each node the edges to those that wait for it. */
typedef struct {
    int32_t nodes, edges;
    const int64_t *start, *end, *node, *before;
    uint8_t *left_out;     /* by edge */
    int32_t *first, *rows; /* by node: where its edges begin in `rows` */
    int32_t *waiting;      /* by node: edges from nodes that are not in the order */
    int32_t *stack;
} graph;

static void free_graph(graph *g) { free(g->left_out), free(g->first), free(g->rows), free(g->waiting), free(g->stack); }

EXPORT void ss_replay_free(replay *r) {
    if (!r) return;
    free(r->order), free(r->first), free(r->before), free(r->starts), free(r->left_out);
    free(r);
}

static int32_t *numbers(int64_t count) { return malloc((size_t)(count + 1) * sizeof(int32_t)); }

/* Turn how many there are of each place, given one place later, into where those of each place begin. */
static void sum_up(int32_t *first, int32_t places) {
    for (int32_t i = 0; i < places; i++) first[i + 1] += first[i];
}

/* Move the beginnings back by one place, once each has been advanced to where the next one begins. */
static void move_back(int32_t *first, int32_t places) {
    memmove(first + 1, first, (size_t)places * sizeof *first);
    first[0] = 0;
}

static int32_t prepare_graph(graph *g) {
    for (int32_t e = 0; e < g->edges; e++) {
        if (g->node[e] < 0 || g->node[e] >= g->nodes || g->before[e] < 0 || g->before[e] >= g->nodes) return REFUSED;
    }
    g->left_out = calloc((size_t)g->edges + 1, 1);
    g->first = calloc((size_t)g->nodes + 1, sizeof *g->first);
    g->rows = numbers(g->edges), g->waiting = numbers(g->nodes), g->stack = numbers(g->nodes);
    if (!g->left_out || !g->first || !g->rows || !g->waiting || !g->stack) return NO_MEMORY;
    for (int32_t e = 0; e < g->edges; e++) g->first[g->before[e] + 1]++;
    sum_up(g->first, g->nodes);
    for (int32_t e = 0; e < g->edges; e++) g->rows[g->first[g->before[e]]++] = e;
    move_back(g->first, g->nodes);
    return DONE;
}

/* Put nodes behind those that they wait for; how many could be. Those that follow one another stay together, as the
 * replay then finds their times in the processor's cache. */
static int32_t put_in_order(graph *g, int32_t *order) {
    int32_t placed = 0, top = 0;
    memset(g->waiting, 0, (size_t)g->nodes * sizeof *g->waiting);
    for (int32_t e = 0; e < g->edges; e++) g->waiting[g->node[e]] += !g->left_out[e];
    for (int32_t v = g->nodes; v--;) {
        if (!g->waiting[v]) g->stack[top++] = v;
    }
    while (top) {
        int32_t v = g->stack[--top];
        order[placed++] = v;
        for (int32_t k = g->first[v + 1]; k-- > g->first[v];) {
            int32_t e = g->rows[k], next = (int32_t)g->node[e];
            if (!g->left_out[e] && !--g->waiting[next]) g->stack[top++] = next;
        }
    }
    return placed;
}

/* Give nodes that lie on one cycle the same number in `component`, and others different ones; nodes in the order have
 * none (-1). This is Tarjan's algorithm, without recursion. */
static int32_t find_components(const graph *g, int32_t *component) {
    int32_t *reached = calloc((size_t)g->nodes + 1, sizeof *reached), *low = numbers(g->nodes), *next = numbers(g->nodes);
    int32_t *open = numbers(g->nodes), *path = g->stack, count = 0, opened = 0, status = NO_MEMORY;
    if (!reached || !low || !next || !open) goto done;
    for (int32_t v = 0; v < g->nodes; v++) component[v] = -1;
    for (int32_t root = 0; root < g->nodes; root++) {
        int32_t depth = 0;
        if (g->waiting[root] && !reached[root]) path[depth++] = root;
        while (depth) {
            int32_t v = path[depth - 1];
            if (!reached[v]) {
                reached[v] = low[v] = ++count;
                next[v] = g->first[v];
                open[opened++] = v;
            }
            if (next[v] < g->first[v + 1]) {
                int32_t e = g->rows[next[v]++], w = (int32_t)g->node[e];
                if (g->left_out[e] || component[w] >= 0) continue;
                if (!reached[w]) path[depth++] = w;
                else if (reached[w] < low[v]) low[v] = reached[w];
                continue;
            }
            if (--depth && low[v] < low[path[depth - 1]]) low[path[depth - 1]] = low[v];
            if (low[v] < reached[v]) continue;
            for (int32_t w = -1; w != v;) component[w = open[--opened]] = v;
        }
    }
    status = DONE;
done:
    free(reached), free(low), free(next), free(open);
    return status;
}

/* Whether an edge goes against the traced starts; on cycles of equal starts, the ends; on those of equal ends, the rows. */
static int goes_back(const graph *g, int32_t e, int turn) {
    int64_t node = g->node[e], before = g->before[e];
    return turn == 0 ? g->start[before] > g->start[node] : turn == 1 ? g->end[before] > g->end[node] : before >= node;
}

/* Put all nodes in order, leaving out edges of cycles. */
static int32_t order_all(graph *g, int32_t *order) {
    int32_t *component, status = DONE;
    if (put_in_order(g, order) == g->nodes) return DONE;
    if (!(component = numbers(g->nodes))) return NO_MEMORY;
    for (int turn = 0; turn < 3; turn++) {
        if ((status = find_components(g, component))) break;
        for (int32_t e = 0; e < g->edges; e++) {
            int32_t of = component[g->before[e]];
            if (of >= 0 && of == component[g->node[e]] && goes_back(g, e, turn)) g->left_out[e] = 1;
        }
        if (put_in_order(g, order) == g->nodes) break;
    }
    free(component);
    return status;
}

/* What a replay needs, in its order. */
static int32_t prepare_replay(graph *g, replay *r) {
    int32_t *place = g->stack, status;
    int64_t roots = 0;
    r->nodes = g->nodes;
    if (!(r->order = numbers(g->nodes))) return NO_MEMORY;
    if ((status = order_all(g, r->order))) return status;
    for (int32_t e = 0; e < g->edges; e++) r->left += g->left_out[e];
    r->first = calloc((size_t)g->nodes + 1, sizeof *r->first);
    r->before = numbers(g->edges - r->left);
    r->left_out = malloc((size_t)(r->left + 1) * sizeof *r->left_out);
    if (!r->first || !r->before || !r->left_out) return NO_MEMORY;
    for (int32_t i = 0; i < g->nodes; i++) place[r->order[i]] = i;
    r->left = 0;
    for (int32_t e = 0; e < g->edges; e++) {
        if (g->left_out[e]) r->left_out[r->left++] = e;
        else r->first[place[g->node[e]] + 1]++;
    }
    for (int32_t i = 0; i < g->nodes; i++) roots += !r->first[i + 1];
    if (!(r->starts = malloc((size_t)(roots + 1) * sizeof *r->starts))) return NO_MEMORY;
    roots = 0;
    for (int32_t i = 0; i < g->nodes; i++) {
        if (!r->first[i + 1]) r->starts[roots++] = g->start[r->order[i]];
    }
    sum_up(r->first, g->nodes);
    for (int32_t e = 0; e < g->edges; e++) {
        if (!g->left_out[e]) r->before[r->first[place[g->node[e]]]++] = (int32_t)g->before[e];
    }
    move_back(r->first, g->nodes);
    return DONE;
}

/* Prepare the replay of nodes (start, end) and edges (node, and the one before it: their rows); null if there is not
 * enough memory or the columns are anything else. */
EXPORT replay *ss_replay(struct ArrowArrayStream **given, int64_t nodes, int64_t edges) {
    struct ArrowArray held[4] = {0};
    const int64_t *columns[4] = {0};
    graph g = {0};
    replay *r = NULL;
    int32_t status = REFUSED;
    if (nodes < 1 || nodes >= INT32_MAX || edges < 0 || edges >= INT32_MAX) return NULL;
    for (int i = 0; i < (edges ? 4 : 2); i++) {
        if (!(columns[i] = take_column(given[i], i < 2 ? nodes : edges, held + i)) || has_nulls(held + i)) goto done;
    }
    g = (graph){.nodes = (int32_t)nodes, .edges = (int32_t)edges};
    g.start = columns[0], g.end = columns[1], g.node = columns[2], g.before = columns[3];
    status = NO_MEMORY;
    if ((r = calloc(1, sizeof *r)) && !(status = prepare_graph(&g))) status = prepare_replay(&g, r);
done:
    release_columns(held, 4);
    free_graph(&g);
    if (!status) return r;
    ss_replay_free(r);
    return NULL;
}
