/* Replaying a graph of pieces of work: when each would start and end with other durations, and what decides that. */
#include "replay.h"

#include <stdlib.h>

#define NEVER INT64_MIN
#define ANY (-1)

/* Take columns of one row for each node. */
static int32_t take(const replay *r, struct ArrowArrayStream **given, int count, const int64_t **columns,
                    struct ArrowArray *held) {
    for (int i = 0; i < count; i++) {
        if (!(columns[i] = take_column(given[i], r->nodes, held + i)) || has_nulls(held + i)) return REFUSED;
    }
    return DONE;
}

static int64_t *times(int64_t count) { return malloc((size_t)(count + 1) * sizeof(int64_t)); }

/* Hand over a column, which is freed also if there is no memory. */
static int32_t give_times(struct ArrowArray *array, struct ArrowSchema *schema, int64_t *values, int64_t count) {
    int32_t status = give_column(array, count, 0, 2, (void *[]){NULL, values});
    if (!status) describe(schema, "l");
    return status;
}

/* Hand over two columns, which are freed also if there is no memory. */
static int32_t give_two(struct ArrowArray **arrays, struct ArrowSchema **schemas, int64_t *one, int64_t *other,
                        int64_t count) {
    int32_t status = give_times(arrays[0], schemas[0], one, count);
    if (status) {
        free(other);
    } else if ((status = give_times(arrays[1], schemas[1], other, count))) {
        ss_drop(arrays[0], schemas[0]);
    }
    return status;
}

/* The last end among the predecessors of a place in the order. */
static inline int64_t last_before(const replay *r, int64_t place, const int64_t *end) {
    int64_t last = NEVER;
    for (int32_t k = r->first[place]; k < r->first[place + 1]; k++) {
        if (end[r->before[k]] > last) last = end[r->before[k]];
    }
    return last;
}

static inline int waits(const replay *r, int64_t place) { return r->first[place + 1] > r->first[place]; }

/* When each node ends. Durations and lags must not be below 0, nor times too large. */
static int32_t replay_ends(const replay *r, const int64_t *duration, const int64_t *lag, int64_t *end) {
    const int64_t *starts = r->starts;
    int wrong = 0;
    for (int64_t i = 0; i < r->nodes; i++) {
        int64_t node = r->order[i], at = waits(r, i) ? last_before(r, i, end) : *starts++;
        wrong |= (duration[node] < 0) | (lag[node] < 0) | __builtin_add_overflow(at, lag[node], &at) |
                 __builtin_add_overflow(at, duration[node], end + node);
    }
    return wrong ? REFUSED : DONE;
}

/* The last end of each group of nodes; `ANY` is none. */
static int32_t last_of_groups(const replay *r, const int64_t *end, const int64_t *group, int64_t groups, int64_t *last) {
    for (int64_t g = 0; g < groups; g++) last[g] = NEVER;
    for (int64_t v = 0; v < r->nodes; v++) {
        if (group[v] == ANY) continue;
        if (group[v] < 0 || group[v] >= groups) return REFUSED;
        if (end[v] > last[group[v]]) last[group[v]] = end[v];
    }
    return DONE;
}

/* Rows of edges that are left out, as they close a cycle. */
EXPORT int32_t ss_replay_left_out(const replay *r, struct ArrowArray *array, struct ArrowSchema *schema) {
    int64_t *rows = times(r->left);
    if (!rows) return NO_MEMORY;
    for (int64_t i = 0; i < r->left; i++) rows[i] = r->left_out[i];
    return give_times(array, schema, rows, r->left);
}

/* From traced starts and ends: the time from the last end before each node to its start, and that from its start to the
 * last end before it, neither below 0. */
EXPORT int32_t ss_replay_lags(const replay *r, struct ArrowArrayStream **given, struct ArrowArray **arrays,
                              struct ArrowSchema **schemas) {
    struct ArrowArray held[2] = {0};
    const int64_t *columns[2];
    int64_t *lag = times(r->nodes), *early = times(r->nodes);
    int32_t status = lag && early ? take(r, given, 2, columns, held) : NO_MEMORY;
    for (int64_t i = 0; i < r->nodes && !status; i++) {
        int64_t node = r->order[i], length = 0;
        if (waits(r, i) && __builtin_sub_overflow(columns[0][node], last_before(r, i, columns[1]), &length)) status = REFUSED;
        if (length == INT64_MIN) status = REFUSED;
        lag[node] = length > 0 ? length : 0;
        early[node] = length < 0 && !status ? -length : 0;
    }
    release_columns(held, 2);
    if (status) {
        free(lag), free(early);
        return status;
    }
    return give_two(arrays, schemas, lag, early, r->nodes);
}

/* When each node ends, given durations and lags. */
EXPORT int32_t ss_replay_ends(const replay *r, struct ArrowArrayStream **given, struct ArrowArray *array,
                              struct ArrowSchema *schema) {
    struct ArrowArray held[2] = {0};
    const int64_t *columns[2];
    int64_t *end = times(r->nodes);
    int32_t status = end ? take(r, given, 2, columns, held) : NO_MEMORY;
    if (!status) status = replay_ends(r, columns[0], columns[1], end);
    release_columns(held, 2);
    if (!status) return give_times(array, schema, end, r->nodes);
    free(end);
    return status;
}

/* When the last node of each group ends, given durations, lags and the groups of nodes. */
EXPORT int32_t ss_replay_last_ends(const replay *r, struct ArrowArrayStream **given, int64_t groups,
                                   struct ArrowArray *array, struct ArrowSchema *schema) {
    struct ArrowArray held[3] = {0};
    const int64_t *columns[3];
    int64_t *end = times(r->nodes), *last = times(groups);
    int32_t status = end && last ? take(r, given, 3, columns, held) : NO_MEMORY;
    if (!status) status = replay_ends(r, columns[0], columns[1], end);
    if (!status) status = last_of_groups(r, end, columns[2], groups, last);
    release_columns(held, 3);
    free(end);
    if (!status) return give_times(array, schema, last, groups);
    free(last);
    return status;
}

/* The predecessor that sets the start of a place in the order: the one that ends last, of several the lowest. */
static int64_t deciding(const replay *r, int64_t place, const int64_t *end) {
    int64_t by = NO_ROW;
    for (int32_t k = r->first[place]; k < r->first[place + 1]; k++) {
        int64_t one = r->before[k];
        if (by == NO_ROW || end[one] > end[by] || (end[one] == end[by] && one < by)) by = one;
    }
    return by;
}

/* How much later each node may end before any group ends later. `slack` has room for it, `last` is when each ends. */
static int32_t find_slack(const replay *r, const int64_t *const columns[3], const int64_t *end, const int64_t *last,
                          int64_t *slack) {
    const int64_t *duration = columns[0], *lag = columns[1], *group = columns[2];
    int64_t all = NEVER;
    int wrong = 0;
    for (int64_t v = 0; v < r->nodes; v++) all = end[v] > all ? end[v] : all;
    for (int64_t v = 0; v < r->nodes; v++) slack[v] = group[v] == ANY ? all : last[group[v]];
    for (int64_t i = r->nodes; i--;) { /* all that wait for a node come before it; latest ends so far */
        int64_t node = r->order[i], latest = slack[node] - duration[node] - lag[node];
        for (int32_t k = r->first[i]; k < r->first[i + 1]; k++) {
            if (slack[r->before[k]] > latest) slack[r->before[k]] = latest;
        }
    }
    for (int64_t v = 0; v < r->nodes; v++) wrong |= __builtin_sub_overflow(slack[v], end[v], slack + v);
    return wrong ? REFUSED : DONE;
}

/* When each node ends, given durations, lags and the groups of nodes; how much later it may before any group ends later;
 * and the predecessor that sets its start. */
EXPORT int32_t ss_replay_slack(const replay *r, struct ArrowArrayStream **given, int64_t groups, struct ArrowArray **arrays,
                               struct ArrowSchema **schemas) {
    struct ArrowArray held[3] = {0};
    const int64_t *columns[3];
    int64_t *end = times(r->nodes), *slack = times(r->nodes), *by = times(r->nodes), *last = times(groups);
    int32_t status = end && slack && by && last ? take(r, given, 3, columns, held) : NO_MEMORY;
    if (!status) status = replay_ends(r, columns[0], columns[1], end);
    if (!status) status = last_of_groups(r, end, columns[2], groups, last);
    if (!status) status = find_slack(r, columns, end, last, slack);
    release_columns(held, 3);
    free(last);
    if (status) {
        free(end), free(slack), free(by);
        return status;
    }
    for (int64_t i = 0; i < r->nodes; i++) by[r->order[i]] = deciding(r, i, end);
    if ((status = give_rows(arrays[2], schemas[2], by, r->nodes))) {
        free(end), free(slack);
    } else if ((status = give_two(arrays, schemas, end, slack, r->nodes))) {
        ss_drop(arrays[2], schemas[2]);
    }
    return status;
}

/* Which of some nodes each path begins at and where it must not go on: at nodes that end at `since` or before. */
typedef struct {
    int64_t count;
    const int64_t *from, *since;
} path_ends;

/* Walk back along the nodes that decide when others end. Nodes may be on several paths, which the capacity limits. */
static int32_t walk_back(const replay *r, const path_ends *of, const int32_t *place, const int64_t *end, int64_t *found[2],
                         int64_t *length) {
    int64_t room = r->nodes;
    for (int64_t p = 0; p < of->count; p++) {
        if (of->from[p] < 0 || of->from[p] >= r->nodes) return REFUSED;
        for (int64_t v = of->from[p]; v != NO_ROW; v = deciding(r, place[v], end)) {
            if (v != of->from[p] && end[v] <= of->since[p]) break;
            if (*length == room) {
                room *= 2;
                for (int i = 0; i < 2; i++) {
                    int64_t *grown = realloc(found[i], (size_t)(room + 1) * sizeof *grown);
                    if (!grown) return NO_MEMORY;
                    found[i] = grown;
                }
            }
            found[0][*length] = p;
            found[1][(*length)++] = v;
        }
    }
    return DONE;
}

/* The nodes that decide when some nodes end, from each of these back to one without predecessors, or to one that ends after
 * a given time while its own predecessor does not: the numbers of paths, and nodes. Given are durations and lags, and for
 * each path the node and the time. */
EXPORT int32_t ss_replay_paths(const replay *r, struct ArrowArrayStream **given, int64_t paths, struct ArrowArray **arrays,
                               struct ArrowSchema **schemas) {
    struct ArrowArray held[4] = {0};
    const int64_t *columns[4];
    int64_t *end = times(r->nodes), *found[2] = {times(r->nodes), times(r->nodes)}, length = 0;
    int32_t *place = malloc((size_t)r->nodes * sizeof *place);
    int32_t status = end && found[0] && found[1] && place ? take(r, given, 2, columns, held) : NO_MEMORY;
    for (int i = 2; i < 4 && !status; i++) {
        if (!(columns[i] = take_column(given[i], paths, held + i)) || has_nulls(held + i)) status = REFUSED;
    }
    if (!status) status = replay_ends(r, columns[0], columns[1], end);
    if (!status) {
        for (int64_t i = 0; i < r->nodes; i++) place[r->order[i]] = (int32_t)i;
        status = walk_back(r, &(path_ends){paths, columns[2], columns[3]}, place, end, found, &length);
    }
    release_columns(held, 4);
    free(end), free(place);
    if (!status) return give_two(arrays, schemas, found[0], found[1], length);
    free(found[0]), free(found[1]);
    return status;
}
