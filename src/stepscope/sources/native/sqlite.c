/* Rows of a table in a SQLite file -> columns (https://www.sqlite.org/fileformat2.html). Nothing in the file is believed:
 * every place is checked before it is read, every page is read at most once, and row numbers only rise. Whatever is odd
 * is refused, and read by SQLite itself; so what is given is what SQLite gives. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arrow.h"
#include "numbers.h"
#include "text.h"

#define MAX_DEPTH 20
#define MAX_RECORD (4 << 20)
#define MAX_FIELDS 2000
#define TOGETHER 32 /* rows that Python gets from SQLite at a time: of a damaged table, it has whole pieces of that many */
#define LOCK_PLACE 0x40000000 /* the page there is never used */

enum cell { CELL_INT, CELL_FLOAT, CELL_TEXT };
enum page { INNER_PAGE = 5, LEAF_PAGE = 13 };

typedef struct {
    int32_t place, kind; /* of the column in a record */
    int64_t nulls;
    uint8_t *validity, *text;
    union {
        int64_t *whole; /* of texts: where each ends, after a 0 */
        double *decimal;
    } values;
    int64_t text_room;
} field;

typedef struct {
    uint8_t *data;
    uint32_t start; /* of the header: after the file's header on the first page */
    int32_t cells, next;
} level;

typedef struct {
    int file, refused;
    uint32_t page_bytes, usable, pages, seen;
    uint32_t root;
    level levels[MAX_DEPTH];
    int32_t depth; /* levels in use; 0 before the first row and after the last */
    int started;
    int64_t row_number, given;
    int32_t key; /* place of the column that is the row's number; below 0 if none is */
    uint8_t *record;
    int64_t record_room;
    int64_t types[MAX_FIELDS];
    int64_t starts[MAX_FIELDS];
    int32_t columns, count;
    int64_t rows, room, text_bytes; /* of the batch */
    field fields[];
} table;

static uint32_t two(const uint8_t *p) { return (uint32_t)p[0] << 8 | p[1]; }
static uint32_t four(const uint8_t *p) { return two(p) << 16 | two(p + 2); }

/* The number at `p`; returns the place after it, null if it does not end in time. */
static const uint8_t *number(const uint8_t *p, const uint8_t *end, uint64_t *out) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++, p++) {
        if (p >= end) return NULL;
        value = value << 7 | (*p & 0x7f);
        if (*p < 0x80) {
            *out = value;
            return p + 1;
        }
    }
    if (p >= end) return NULL;
    *out = value << 8 | *p;
    return p + 1;
}

/* Read a page; 0 if there is none or it was not read whole, or more pages were read than there are. */
static int read_page(table *t, uint32_t page, uint8_t *out) {
    uint32_t done = 0;
    if (page < 1 || page > t->pages || page == LOCK_PLACE / t->page_bytes + 1 || t->seen++ >= t->pages) return 0;
    while (done < t->page_bytes) {
        ssize_t got = pread(t->file, out + done, t->page_bytes - done, (off_t)(page - 1) * t->page_bytes + done);
        if (got <= 0) return 0;
        done += (uint32_t)got;
    }
    return 1;
}

/* How much of a record of `size` bytes stands in its cell; the rest is on pages of its own. */
static int64_t held_bytes(const table *t, int64_t size) {
    int64_t most = t->usable - 35, least = (t->usable - 12) * 32 / 255 - 23, held;
    if (size <= most) return size;
    held = least + (size - least) % (t->usable - 4);
    return held <= most ? held : least;
}

/* A cell of a leaf: size and place of its record, and its number; 0 if it is not whole. */
static int leaf_cell(const table *t, const level *l, int32_t i, int64_t *size, const uint8_t **record, int64_t *row) {
    const uint8_t *end = l->data + t->usable, *p = l->data + two(l->data + l->start + 8 + 2 * i);
    uint64_t length, key;
    int64_t held;
    if (!(p = number(p, end, &length)) || !(p = number(p, end, &key))) return 0;
    if (length < 1 || length > MAX_RECORD) return 0;
    held = held_bytes(t, (int64_t)length);
    if (end - p < held + (held < (int64_t)length ? 4 : 0)) return 0;
    *size = (int64_t)length;
    *record = p;
    *row = (int64_t)key;
    return 1;
}

/* Go down to a page, whose cells all lie within it. */
static int enter(table *t, uint32_t page) {
    level *l = &t->levels[t->depth];
    uint32_t head, inner;
    if (t->depth >= MAX_DEPTH || (!l->data && !(l->data = malloc(t->page_bytes)))) return 0;
    if (!read_page(t, page, l->data)) return 0;
    l->start = page == 1 ? 100 : 0;
    inner = l->data[l->start] == INNER_PAGE;
    if (!inner && l->data[l->start] != LEAF_PAGE) return 0;
    l->cells = (int32_t)two(l->data + l->start + 3);
    l->next = 0;
    if (!l->cells && (t->depth || inner)) return 0;
    head = l->start + (inner ? 12 : 8);
    if (head + 2 * (uint32_t)l->cells > t->usable) return 0;
    for (int32_t i = 0; i < l->cells; i++) {
        uint32_t at = two(l->data + head + 2 * i);
        int64_t size, row;
        uint64_t key;
        const uint8_t *record;
        if (at < head + 2 * (uint32_t)l->cells || at + 4 > t->usable) return 0;
        if (inner ? !number(l->data + at + 4, l->data + t->usable, &key) : !leaf_cell(t, l, i, &size, &record, &row))
            return 0;
    }
    t->depth++;
    return 1;
}

/* Move to the leaf with the next row; 1 if there is one, 0 at the end, `REFUSED`. */
static int find_leaf(table *t) {
    if (!t->started) {
        t->started = 1;
        if (!enter(t, t->root)) return REFUSED;
    }
    while (t->depth) {
        level *l = &t->levels[t->depth - 1];
        const uint8_t *head = l->data + l->start;
        if (head[0] == LEAF_PAGE) {
            if (l->next < l->cells) return 1;
            t->depth--;
        } else if (l->next <= l->cells) {
            const uint8_t *child = l->next < l->cells ? l->data + two(head + 12 + 2 * l->next) : head + 8;
            l->next++;
            if (!enter(t, four(child))) return REFUSED;
        } else {
            t->depth--;
        }
    }
    return 0;
}

/* A whole record, put together if parts of it are on other pages; null to refuse. */
static const uint8_t *whole_record(table *t, const uint8_t *held, int64_t size) {
    int64_t done = held_bytes(t, size);
    uint32_t page;
    uint8_t *at;
    if (done == size) return held;
    if (t->record_room < size + t->page_bytes) {
        if (!(at = realloc(t->record, (size_t)(size + t->page_bytes)))) return NULL;
        t->record = at;
        t->record_room = size + t->page_bytes;
    }
    memcpy(t->record, held, (size_t)done);
    for (page = four(held + done); done < size; done += t->usable - 4) {
        at = t->record + done;
        uint8_t kept[4]; /* where the page's first bytes go, which are the number of the next */
        memcpy(kept, at - 4, 4);
        if (!read_page(t, page, at - 4)) return NULL;
        page = four(at - 4);
        memcpy(at - 4, kept, 4);
    }
    return t->record;
}

static int64_t stored_bytes(uint64_t type) {
    static const int8_t bytes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};
    return type < 10 ? bytes[type] : (int64_t)((type - 12) >> 1);
}

/* Where the columns of a record are, which must fill it. */
static int read_header(table *t, const uint8_t *record, int64_t size) {
    uint64_t header, type;
    const uint8_t *p = number(record, record + size, &header), *end;
    int64_t at;
    if (!p || header > (uint64_t)size || header < (uint64_t)(p - record)) return 0;
    end = record + header;
    at = (int64_t)header;
    for (t->columns = 0; p < end; t->columns++) {
        if (*p < 0x80) type = *p++;
        else if (!(p = number(p, end, &type))) return 0;
        if (t->columns >= MAX_FIELDS || type == 10 || type == 11 || type > 2 * MAX_RECORD + 13) return 0;
        t->types[t->columns] = (int64_t)type;
        t->starts[t->columns] = at;
        at += stored_bytes(type);
        if (at > size) return 0;
    }
    return at == size;
}

static int64_t stored_int(const uint8_t *p, int64_t type) {
    int64_t bytes = stored_bytes((uint64_t)type), value;
    if (type >= 8) return type - 8;
    value = (int8_t)p[0];
    for (int64_t i = 1; i < bytes; i++) value = (int64_t)((uint64_t)value << 8 | p[i]);
    return value;
}

static double stored_float(const uint8_t *p) {
    uint64_t bits = (uint64_t)four(p) << 32 | four(p + 4);
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

/* A text of digits alone. */
static int digits_int(const uint8_t *p, int64_t length, int64_t *out) {
    int64_t value = 0;
    if (length < 1 || length > 19) return 0;
    for (int64_t i = 0; i < length; i++)
        if (!is_digit(p[i]) || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, p[i] - '0', &value))
            return 0;
    *out = value;
    return 1;
}

static int add_text(table *t, field *f, const uint8_t *p, int64_t length) {
    int64_t end = f->values.whole[t->rows];
    if (!is_utf8(p, length)) return 0;
    if (end + length > f->text_room) {
        int64_t room = 2 * f->text_room + length + 256;
        uint8_t *grown = realloc(f->text, (size_t)room);
        if (!grown) return 0;
        f->text = grown;
        f->text_room = room;
    }
    memcpy(f->text + end, p, (size_t)length);
    f->values.whole[t->rows + 1] = end + length;
    t->text_bytes += length;
    return 1;
}

static int add_null(table *t, field *f) {
    f->nulls++;
    if (f->kind == CELL_TEXT) f->values.whole[t->rows + 1] = f->values.whole[t->rows];
    else f->values.whole[t->rows] = 0;
    return 1;
}

/* Add a cell to its column; 0 if it is for Python to judge. */
static int add_cell(table *t, field *f, const uint8_t *record) {
    int64_t type, whole;
    double decimal;
    const uint8_t *p;
    if (f->place >= t->columns) return 0; /* a column younger than the row: its default is in the schema */
    type = t->types[f->place];
    p = record + t->starts[f->place];
    if (!type && f->place == t->key) whole = t->row_number;
    else if (!type) return add_null(t, f);
    else if (type != 7 && type < 10) whole = stored_int(p, type);
    else if (type == 7 && f->kind == CELL_FLOAT) {
        decimal = f->values.decimal[t->rows] = stored_float(p);
        set_valid(f->validity, t->rows);
        return !isnan(decimal);
    } else if (type == 7 && f->kind == CELL_INT) {
        decimal = stored_float(p);
        if (!(fabs(decimal) < 9e18)) return 0;
        whole = (int64_t)decimal;
    } else if (type & 1 && type > 12 && f->kind == CELL_TEXT) {
        set_valid(f->validity, t->rows);
        return add_text(t, f, p, stored_bytes((uint64_t)type));
    } else if (!(type & 1 && type > 12 && f->kind == CELL_INT && digits_int(p, stored_bytes((uint64_t)type), &whole))) {
        return 0;
    }
    if (f->kind == CELL_TEXT) return 0;
    if (f->kind == CELL_INT) f->values.whole[t->rows] = whole;
    else f->values.decimal[t->rows] = (double)whole;
    set_valid(f->validity, t->rows);
    return 1;
}

/* Room for one more row in each column. */
static int make_room(table *t) {
    int64_t room = t->room ? 4 * t->room : 256;
    if (t->rows < t->room) return 1;
    for (int32_t i = 0; i < t->count; i++) {
        field *f = &t->fields[i];
        int64_t *values = realloc(f->values.whole, ((size_t)room + 1) * sizeof *values);
        uint8_t *validity;
        if (!values) return 0;
        if (!f->values.whole) values[0] = 0;
        f->values.whole = values;
        if (!(validity = realloc(f->validity, (size_t)room / 8 + 64))) return 0;
        memset(validity + t->room / 8, 0, (size_t)(room - t->room) / 8 + (t->room ? 0 : 64));
        f->validity = validity;
    }
    t->room = room;
    return 1;
}

/* Add the next row; 1 if there is one, 0 at the end, `REFUSED`. */
static int add_row_of_table(table *t) {
    level *l;
    const uint8_t *held, *record;
    int64_t size, row;
    int found = find_leaf(t);
    if (found != 1) return found;
    l = &t->levels[t->depth - 1];
    if (!make_room(t) || !leaf_cell(t, l, l->next++, &size, &held, &row)) return REFUSED;
    if (t->given + t->rows && row <= t->row_number) return REFUSED;
    t->row_number = row;
    if (!(record = whole_record(t, held, size)) || !read_header(t, record, size)) return REFUSED;
    for (int32_t i = 0; i < t->count; i++)
        if (!add_cell(t, &t->fields[i], record)) return REFUSED;
    t->rows++;
    return 1;
}

EXPORT void ss_db_close(table *t) {
    if (!t) return;
    for (int32_t i = 0; i < t->count; i++) free(t->fields[i].validity), free(t->fields[i].text), free(t->fields[i].values.whole);
    for (int32_t i = 0; i < MAX_DEPTH; i++) free(t->levels[i].data);
    free(t->record);
    free(t);
}

/* Learn the size of the file's pages; 0 for anything unusual. */
static int read_file_header(table *t) {
    uint8_t head[100];
    struct stat about;
    uint64_t pages;
    uint32_t stated;
    if (fstat(t->file, &about) || pread(t->file, head, sizeof head, 0) != sizeof head) return 0;
    if (memcmp(head, "SQLite format 3", 16) || four(head + 56) != 1) return 0; /* 1: texts are UTF-8 */
    t->page_bytes = two(head + 16) == 1 ? 65536 : two(head + 16);
    if (t->page_bytes < 512 || t->page_bytes & (t->page_bytes - 1)) return 0;
    t->usable = t->page_bytes - head[20];
    pages = (uint64_t)about.st_size / t->page_bytes;
    stated = four(head + 28);
    if (stated && !memcmp(head + 24, head + 92, 4) && stated < pages) pages = stated;
    t->pages = pages > UINT32_MAX - 1 ? UINT32_MAX - 1 : (uint32_t)pages;
    return t->usable >= 480;
}

/* Columns of the table that begins at page `root` of an open file: `places[i]` is the place of one in the table, and
 * `kinds[i]` what it becomes. Null if it refuses. */
EXPORT table *ss_db_open(int32_t file, int64_t root, int32_t key, const int32_t *places, const int32_t *kinds, int32_t count) {
    table *t = calloc(1, sizeof *t + (size_t)count * sizeof *t->fields);
    if (!t) return NULL;
    t->file = file;
    t->key = key;
    t->count = count;
    for (int32_t i = 0; i < count; i++) t->fields[i].place = places[i], t->fields[i].kind = kinds[i];
    if (root >= 1 && root <= UINT32_MAX && read_file_header(t)) {
        t->root = (uint32_t)root;
        return t;
    }
    ss_db_close(t);
    return NULL;
}

/* Read up to about so many rows or bytes of text; returns how many rows there are, 0 at the end, `REFUSED` where the rest
 * is for SQLite. */
EXPORT int64_t ss_db_rows(table *t, int64_t most_rows, int64_t most_bytes) {
    int found = t->refused ? REFUSED : 1;
    t->rows = t->room = t->text_bytes = 0;
    while (found == 1 && t->rows < most_rows && t->text_bytes < most_bytes) found = add_row_of_table(t);
    if (found == REFUSED) {
        t->refused = 1;
        /* Python looks for the row after a piece before it gives the piece: damage behind a whole one takes it along. */
        t->rows -= (t->given + t->rows + TOGETHER - 1) % TOGETHER + 1;
        if (t->rows <= 0) return REFUSED;
    }
    t->given += t->rows;
    return t->rows;
}

/* One column of the rows just read, as int64, float64 or texts; each can be taken once. */
static int32_t give_field(table *t, int64_t i, struct ArrowArray *array, struct ArrowSchema *schema) {
    field *f = &t->fields[i];
    void *buffers[] = {f->validity, f->values.whole, f->text};
    int texts = f->kind == CELL_TEXT;
    int32_t status;
    if (texts && !buffers[2] && !(buffers[2] = malloc(1))) return NO_MEMORY;
    if (!f->nulls) {
        free(f->validity);
        buffers[0] = NULL;
    }
    status = give_column(array, t->rows, f->nulls ? -1 : 0, texts ? 3 : 2, buffers);
    f->validity = f->text = NULL;
    f->values.whole = NULL;
    f->nulls = f->text_room = 0;
    if (status == DONE) describe(schema, texts ? "U" : f->kind == CELL_FLOAT ? "g" : "l");
    return status;
}

/* The columns of the rows just read, as those of a struct. */
EXPORT int32_t ss_db_columns(table *t, struct ArrowArray *array, struct ArrowSchema *schema) {
    int32_t status = new_struct(array, schema, t->count);
    for (int64_t i = 0; !status && i < t->count; i++) {
        status = give_field(t, i, array->children[i], schema->children[i]);
        if (status) array->children[i]->release = NULL, schema->children[i]->release = NULL;
        else name_child(schema, i);
    }
    if (status && array->release) array->release(array), schema->release(schema);
    else array->length = t->rows;
    return status;
}
