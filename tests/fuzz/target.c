/* One input through the compiled decoder: `LLVMFuzzerTestOneInput`, for libFuzzer and for `driver.c`.
 *
 * The first byte chooses what the rest is: `e` events, `l` the last events of a file, `c` a CSV table (digits up to the end
 * of the line: how its columns are kept), `n` ranges (thread, start, duration and parent or `x`, a line each), `r` nodes
 * and edges of a replay. Each input is run twice, the second time with allocations that fail from some point on. What is
 * left allocated afterwards is a leak. */
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keys.h"
#include "text.h"

enum { COLUMNS = 24, CLASSES = 3, PAIRS = 16, ROWS = 4096, KINDS = 5, THREADS = 4, WORDS = 5 };

static long allowed = -1, live; /* allocations until they fail (-1: never), and those that are not freed */

void *fuzz_malloc(size_t size) {
    void *made = allowed == 0 ? NULL : malloc(size);
    allowed -= allowed > 0;
    live += made != NULL;
    return made;
}

void *fuzz_calloc(size_t count, size_t size) {
    void *made = allowed == 0 ? NULL : calloc(count, size);
    allowed -= allowed > 0;
    live += made != NULL;
    return made;
}

void *fuzz_realloc(void *old, size_t size) {
    void *made = allowed == 0 ? NULL : realloc(old, size);
    allowed -= allowed > 0;
    live += made != NULL && old == NULL;
    return made;
}

void fuzz_free(void *old) {
    live -= old != NULL;
    free(old);
}

static void require(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

/* A column as the library gave it must be whole: every text in its buffer and valid UTF-8, every value readable. */
static void check_column(struct ArrowArray *array, struct ArrowSchema *schema, int64_t rows) {
    const uint8_t *validity = array->buffers[0];
    int64_t nulls = 0;
    require(array->length == rows, "a column has another number of rows");
    for (int64_t i = 0; i < rows; i++) {
        const uint8_t *view = (const uint8_t *)array->buffers[1] + i * 16, *text = view + 4;
        uint32_t length, offset;
        if (validity && !(validity[i >> 3] >> (i & 7) & 1)) {
            nulls++;
            continue;
        }
        if (strcmp(schema->format, "vu")) continue;
        memcpy(&length, view, 4);
        memcpy(&offset, view + 12, 4);
        if (length > 12) {
            require(offset + (int64_t)length <= *(const int64_t *)array->buffers[3], "a text is not in its buffer");
            text = (const uint8_t *)array->buffers[2] + offset;
            require(!memcmp(text, view + 4, 4), "a text does not begin as its view");
        }
        require(is_utf8(text, length), "a text is not UTF-8");
    }
    require(array->null_count == nulls, "a column has another number of nulls");
}

static void check_and_drop(struct ArrowArray *array, struct ArrowSchema *schema, int64_t rows) {
    check_column(array, schema, rows);
    ss_drop(array, schema);
}

static void check_struct(const struct ArrowArray *array, const struct ArrowSchema *schema, int64_t rows) {
    require(array->length == rows, "a struct has another number of rows");
    for (int64_t i = 0; i < array->n_children; i++) check_column(array->children[i], schema->children[i], rows);
}

/* A stream that hands over a struct. */
typedef struct {
    struct ArrowArray array;
    struct ArrowSchema schema;
} handed;

static int hand_schema(struct ArrowArrayStream *stream, struct ArrowSchema *schema) {
    handed *h = stream->private_data;
    *schema = h->schema;
    h->schema.release = NULL;
    return 0;
}

static int hand_array(struct ArrowArrayStream *stream, struct ArrowArray *array) {
    handed *h = stream->private_data;
    *array = h->array;
    h->array.release = NULL;
    return 0;
}

/* Some fields as a struct, which is packed, and unpacked twice below itself. */
static void run_struct(const scan *s, const uint8_t *text, int64_t from, int64_t rows, int32_t fields, int32_t shift) {
    int32_t numbers[COLUMNS], kinds[COLUMNS];
    int64_t ends[COLUMNS], twice[] = {rows, rows}, count = fields < COLUMNS ? fields : COLUMNS;
    const uint8_t *blocks[2 * COLUMNS];
    char formats[COLUMNS];
    uint8_t *bytes;
    handed given = {0}, found = {0};
    struct ArrowArrayStream stream = {.get_schema = hand_schema, .get_next = hand_array, .private_data = &given};
    for (int32_t k = 0; k < count; k++) numbers[k] = k, kinds[k] = (k + shift) % KINDS;
    if (ss_columns(s, text, numbers, kinds, count, from, rows, &given.array, &given.schema) != DONE) {
        require(!given.array.release && !given.schema.release, "a refused struct is not released");
        return;
    }
    check_struct(&given.array, &given.schema, rows);
    for (int64_t k = 0; k < count; k++) formats[k] = given.schema.children[k]->format[0];
    bytes = ss_pack(&stream, rows, count, ends);
    if (bytes) {
        for (int64_t k = 0; k < count; k++) blocks[2 * k] = blocks[2 * k + 1] = bytes + (k ? ends[k - 1] : 0);
        if (ss_unpack(blocks, twice, 2, count, formats, &found.array, &found.schema) == DONE) {
            check_struct(&found.array, &found.schema, 2 * rows);
            ss_drop(&found.array, &found.schema);
        } else {
            require(!found.array.release, "a refused struct is not released");
        }
        ss_free_bytes(bytes);
    }
    ss_drop(&given.array, &given.schema);
}

static void run_columns(const scan *s, const uint8_t *text, int64_t from, int64_t rows, int32_t fields) {
    for (int32_t shift = 0; shift < KINDS; shift++) run_struct(s, text, from, rows, fields, shift);
    for (int32_t field = 0; field < fields; field++) {
        for (int32_t kind = 0; kind < KINDS; kind++) {
            struct ArrowArray array = {0};
            struct ArrowSchema schema = {0};
            if (ss_column(s, text, field, from, rows, kind, &array, &schema) == DONE) check_and_drop(&array, &schema, rows);
            else require(!array.release, "a refused column is not released");
        }
    }
}

static void run_events(const uint8_t *text, int64_t length, int last) {
    static const uint8_t words[] = "Input DimsInput typestreambytesid";
    static const int32_t ends[] = {10, 20, 26, 31, 33}, rule_pair[] = {0, 1}, rule_class[] = {2, 2};
    static const uint8_t names[] = "aten::addhcom_allReduce_";
    static const int32_t name_ends[] = {9, 24};
    int32_t firsts[PAIRS], class_of[PAIRS], known, *pairs;
    int64_t counts[CLASSES], from = 0;
    scan *s = ss_scan(text, length, words, ends, WORDS, last);
    if (!s) return;
    require(last ? ss_end(s) > 0 && ss_end(s) <= length : ss_end(s) == -1, "the array ends outside the text");
    pairs = malloc(sizeof *pairs * (size_t)(ss_count(s) + 1));
    known = ss_pairs(s, text, pairs, firsts, PAIRS);
    for (int32_t i = 0; i < PAIRS; i++) class_of[i] = i % CLASSES - 1;
    if (known >= 0 && ss_sort(s, text, pairs, class_of, CLASSES, names, name_ends, rule_pair, rule_class, 2, counts) == DONE) {
        for (int c = 0; c < CLASSES; from += counts[c++]) run_columns(s, text, from, counts[c], BASE_FIELDS + WORDS);
        for (int64_t i = 0; i < ss_count(s); i++) from += pairs[i] < 0;
        require(from == ss_count(s), "events are lost");
    }
    free(pairs);
    ss_free(s);
}

static void run_table(const uint8_t *text, int64_t length) {
    int32_t columns[COLUMNS], width = 0;
    scan *s;
    for (; length && *text >= '0' && *text <= '5' && width < COLUMNS; text++, length--) columns[width++] = *text - '0';
    if (length) text++, length--;
    if (!(s = ss_table(text, length, columns, width))) return;
    run_columns(s, text, 0, ss_count(s), width);
    ss_free(s);
}

/* An int64 column that the harness gives: `held` values from `offset` on, with a bit each if there are nulls. */
typedef struct {
    const int64_t *values;
    const uint8_t *validity;
    int64_t rows, offset;
} given;

static void release_schema(struct ArrowSchema *schema) { schema->release = NULL; }

static void release_array(struct ArrowArray *array) {
    free((void *)array->buffers[0]);
    free((void *)array->buffers[1]);
    free(array->buffers);
    array->release = NULL;
}

static int give_schema(struct ArrowArrayStream *stream, struct ArrowSchema *schema) {
    (void)stream;
    memset(schema, 0, sizeof *schema);
    schema->format = "l";
    schema->release = release_schema;
    return 0;
}

static int give_array(struct ArrowArrayStream *stream, struct ArrowArray *array) {
    const given *g = stream->private_data;
    int64_t held = g->rows + g->offset, *values = malloc((size_t)(held ? held : 1) * sizeof *values);
    uint8_t *validity = g->validity ? calloc((size_t)held / 8 + 1, 1) : NULL;
    memset(array, 0, sizeof *array);
    for (int64_t i = 0; i < g->rows; i++) {
        int64_t at = i + g->offset;
        values[at] = g->values[i];
        if (validity && g->validity[i]) validity[at >> 3] |= (uint8_t)(1 << (at & 7));
    }
    *array = (struct ArrowArray){.length = g->rows, .offset = g->offset, .n_buffers = 2, .release = release_array};
    array->null_count = validity ? -1 : 0;
    array->buffers = malloc(2 * sizeof *array->buffers);
    array->buffers[0] = validity;
    array->buffers[1] = values;
    return 0;
}

/* Lines of three numbers and a fourth or `x`; how many there are. */
static int64_t read_lines(const uint8_t *data, size_t size, int64_t values[4][ROWS], uint8_t *known) {
    char *text = calloc(size + 1, 1), *at = text, *end;
    int64_t rows = 0;
    for (memcpy(text, data, size); rows < ROWS; rows++) {
        for (int k = 0; k < 3; k++, at = end) {
            values[k][rows] = strtoll(at, &end, 10);
            if (end == at) goto read;
        }
        values[3][rows] = strtoll(at, &end, 10);
        known[rows] = end != at;
        if (end == at && !(end = strchr(at, '\n'))) break;
        at = end;
    }
read:
    free(text);
    return rows;
}

static struct ArrowArrayStream streamed(given *column) {
    return (struct ArrowArrayStream){.get_schema = give_schema, .get_next = give_array, .private_data = column};
}

/* The same columns as ranges of a timeline, and as its events. */
static void run_timeline(struct ArrowArrayStream *streams, int64_t rows) {
    static const uint8_t bodies[] = "bodyother", heads[] = "h", lead[] = "lead";
    static const int64_t body_ends[] = {4, 9}, head_ends[] = {1}, lead_ends[] = {4};
    const uint8_t *bytes[] = {bodies, heads, lead};
    const int64_t *ends[] = {body_ends, head_ends, lead_ends};
    struct ArrowArrayStream *columns[] = {&streams[1], &streams[0], &streams[2], &streams[3], &streams[3]};
    struct ArrowArray array = {0};
    struct ArrowSchema schema = {0};
    int64_t length = 0;
    uint8_t *packets;
    if (ss_lanes(&streams[0], &streams[1], &streams[2], &streams[0], rows, 3, &array, &schema) == DONE)
        check_and_drop(&array, &schema, rows);
    packets = ss_packets(columns, rows, 1, 1, bytes, ends, 2, &length);
    require(!packets || length > 0, "packets without bytes");
    if (packets) ss_free_bytes(packets);
}

static void run_ranges(const uint8_t *data, size_t size) {
    static int64_t values[4][ROWS];
    static uint8_t known[ROWS];
    struct ArrowArrayStream streams[4];
    struct ArrowArray arrays[2] = {{0}, {0}};
    struct ArrowSchema schemas[2] = {{0}, {0}};
    given columns[4];
    int64_t rows = read_lines(data, size, values, known);
    for (int k = 0; k < 4; k++) {
        columns[k] = (given){values[k], k == 3 ? known : NULL, rows, rows % 3};
        streams[k] = streamed(&columns[k]);
    }
    if (ss_nest(&streams[0], &streams[1], &streams[2], rows, THREADS, &arrays[0], &schemas[0], &arrays[1], &schemas[1]) == DONE) {
        check_and_drop(&arrays[0], &schemas[0], rows);
        check_and_drop(&arrays[1], &schemas[1], rows);
    }
    if (ss_inside(&streams[1], &streams[2], &streams[3], rows, &arrays[0], &schemas[0]) == DONE)
        check_and_drop(&arrays[0], &schemas[0], rows);
    run_timeline(streams, rows);
}

/* Columns that a function gave, or must not have given. */
static void check_given(int32_t status, struct ArrowArray *arrays, struct ArrowSchema *schemas, int count, int64_t rows) {
    for (int k = 0; k < count; k++) {
        require(status == DONE || !arrays[k].release, "a refused column is not released");
        if (status == DONE) check_and_drop(&arrays[k], &schemas[k], rows < 0 ? arrays[k].length : rows);
    }
}

/* Nodes and edges, a line each: the node that waits, start, duration, and the node before it. */
static void run_replay(const uint8_t *data, size_t size) {
    static int64_t values[6][ROWS];
    static uint8_t known[ROWS];
    struct ArrowArrayStream streams[6], *nodes[2], *times[3], *paths[4];
    struct ArrowArray arrays[3] = {{0}, {0}, {0}}, *array_of[] = {&arrays[0], &arrays[1], &arrays[2]};
    struct ArrowSchema schemas[3] = {{0}, {0}, {0}}, *schema_of[] = {&schemas[0], &schemas[1], &schemas[2]};
    given columns[6];
    int64_t rows = read_lines(data, size, values, known), edges = 0;
    replay *r;
    while (edges < rows && known[edges]) edges++;
    for (int64_t i = 0; i < rows; i++) values[4][i] = i % (THREADS + 1) - 1, values[5][i] = rows - 1 - i;
    for (int k = 0; k < 6; k++) {
        columns[k] = (given){values[k], NULL, k == 0 || k == 3 ? edges : rows, rows % 3};
        streams[k] = streamed(&columns[k]);
    }
    if (!(r = ss_replay((struct ArrowArrayStream *[]){&streams[1], &streams[2], &streams[0], &streams[3]}, rows, edges))) return;
    nodes[0] = times[1] = &streams[1], nodes[1] = times[0] = &streams[2], times[2] = &streams[4];
    paths[0] = times[0], paths[1] = times[1], paths[2] = &streams[5], paths[3] = &streams[1];
    check_given(ss_replay_left_out(r, arrays, schemas), arrays, schemas, 1, -1);
    check_given(ss_replay_lags(r, nodes, array_of, schema_of), arrays, schemas, 2, rows);
    check_given(ss_replay_ends(r, times, arrays, schemas), arrays, schemas, 1, rows);
    check_given(ss_replay_last_ends(r, times, THREADS, arrays, schemas), arrays, schemas, 1, THREADS);
    check_given(ss_replay_last_ends(r, times, 1, arrays, schemas), arrays, schemas, 1, 1);
    check_given(ss_replay_slack(r, times, THREADS, array_of, schema_of), arrays, schemas, 3, rows);
    check_given(ss_replay_paths(r, paths, rows, array_of, schema_of), arrays, schemas, 2, -1);
    ss_replay_free(r);
}

static void run(const uint8_t *data, size_t size) {
    const char modes[] = "elcnr", *mode = size ? strchr(modes, data[0]) : NULL;
    if (!size) return;
    switch (mode && *mode ? *mode : modes[data[0] % 5]) {
    case 'e': run_events(data + 1, (int64_t)size - 1, 0); break;
    case 'l': run_events(data + 1, (int64_t)size - 1, 1); break;
    case 'c': run_table(data + 1, (int64_t)size - 1); break;
    case 'r': run_replay(data + 1, size - 1); break;
    default: run_ranges(data + 1, size - 1);
    }
    require(live == 0, "memory is not freed");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    long sum = 0;
    for (size_t i = 0; i < size; i++) sum = sum * 31 % 1009 + data[i];
    run(data, size);
    allowed = sum % 101;
    run(data, size);
    allowed = -1;
    return 0;
}
