/* Text of a CSV table -> spans, for whole lines of plain fields; the rest is for Polars to judge. */
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "numbers.h"
#include "text.h"

/* How a field is kept: as it is written, without spaces around it, without quotes around it, and so on. */
enum table_column { TABLE_SKIPPED, TABLE_RAW, TABLE_TEXT, TABLE_SHAPE, TABLE_TIME, TABLE_NUMBER };

static int is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static int is_stripped(uint8_t c, int column) {
    if (column == TABLE_TEXT) return is_space(c);
    return c == '"' ? column != TABLE_RAW : column == TABLE_TIME && (c == ' ' || c == '\t');
}

/* At a quote; moves to the place after the one that closes it. `doubled` becomes whether quotes are inside. */
static int skip_quoted(reader *r, int *doubled) {
    const uint8_t *p = r->at + 1, *end = r->end;
    for (;;) {
        while (p < end && *p != '"' && *p != '\n' && *p != '\r') p++;
        if (p >= end || *p != '"') return 0;
        if (p + 1 >= end || p[1] != '"') break;
        *doubled = 1;
        p += 2;
    }
    r->at = p + 1;
    return 1;
}

/* At a field without quotes; moves to its end. */
static int skip_plain(reader *r) {
    while (r->at < r->end && *r->at != ',' && *r->at != '\n' && *r->at != '\r') {
        if (*r->at == '"') return 0;
        r->at++;
    }
    return 1;
}

static int is_null(const uint8_t *p, int64_t length) {
    return length == 0 || (length == 2 && !memcmp(p, "NA", 2)) || (length == 3 && !memcmp(p, "N/A", 3));
}

/* What is kept of a text, from `*from` to `*to`; 0 to refuse. */
static int trim_text(const uint8_t **from, const uint8_t **to, int column, int doubled) {
    while (*from < *to && is_stripped(**from, column)) ++*from;
    while (*from < *to && is_stripped((*to)[-1], column)) --*to;
    if (*from == *to) return column != TABLE_TIME;
    if ((**from & 0x80) || ((*to)[-1] & 0x80)) return column != TABLE_TEXT; /* it may be a space of another script */
    if (doubled && memchr(*from, '"', (size_t)(*to - *from))) return 0;
    return column != TABLE_TIME || is_digit(**from);
}

/* At a field; moves to the comma or the end of the line after it, and notes what is kept of it. */
static int read_field(reader *r, int column, span *out) {
    const uint8_t *from = r->at, *to;
    int quoted = from < r->end && *from == '"', doubled = 0;
    if (!(quoted ? skip_quoted(r, &doubled) : skip_plain(r))) return 0;
    from += quoted;
    to = r->at - quoted;
    if (r->end - r->at > 1 && *r->at == '\r' && r->at[1] == '\n') r->at++;
    if (r->at >= r->end || (*r->at != ',' && *r->at != '\n')) return 0;
    if (quoted && (from == to || (doubled && column != TABLE_SHAPE && column != TABLE_SKIPPED))) return 0;
    if (column == TABLE_SKIPPED) return 1;
    if (is_null(from, to - from)) return !quoted; /* with quotes, Polars decides whether it is a text */
    if (column == TABLE_NUMBER) {
        if (quoted || number_end(from, to) != to) return 0;
    } else if (!trim_text(&from, &to, column, doubled)) {
        return 0;
    }
    if (to - from > MAX_LENGTH) return 0;
    *out = SPAN(from - r->text, to - from, column == TABLE_NUMBER ? NUMBER : STRING);
    return 1;
}

/* At the first line; moves to the second. 0 if there are no rows, or if the header may go on in the next line. */
static int skip_header(reader *r) {
    while (r->at < r->end && *r->at != '\n') {
        if (*r->at++ == '"') return 0;
    }
    if (r->end - r->at < 2) return 0;
    r->at++;
    return 1;
}

static int read_rows(reader *r, scan *s, const int32_t *columns, int32_t width) {
    for (; r->at < r->end; r->at++) {
        span *row = add_row(s);
        if (!row) return 0;
        for (int32_t i = 0; i < width; i++) {
            if (!read_field(r, columns[i], row) || (*r->at == ',') != (i + 1 < width)) return 0;
            row += columns[i] != TABLE_SKIPPED;
            r->at += i + 1 < width;
        }
    }
    return (s->order = malloc((size_t)s->count * sizeof *s->order)) != NULL;
}

/* Scan the lines of a CSV table after its header. `columns[i]` is how field i is kept; the kept ones are the fields of
 * the scan, in order. Returns null if it refuses: for anything but whole lines of `width` plain fields. */
EXPORT scan *ss_table(const uint8_t *text, int64_t length, const int32_t *columns, int32_t width) {
    reader r = {text, text, text + length};
    scan *s;
    int32_t kept = 0;
    for (int32_t i = 0; i < width; i++) kept += columns[i] != TABLE_SKIPPED;
    if (!kept || length > UINT32_MAX || !is_utf8(text, length) || !skip_header(&r)) return NULL;
    if (!(s = new_scan(kept, length))) return NULL;
    if (!read_rows(&r, s, columns, width)) {
        ss_free(s);
        return NULL;
    }
    for (int64_t i = 0; i < s->count; i++) s->order[i] = (int32_t)i;
    return s;
}
