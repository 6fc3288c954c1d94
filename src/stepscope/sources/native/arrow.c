#include "arrow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void release_schema(struct ArrowSchema *schema) { schema->release = NULL; }

static void release_array(struct ArrowArray *array) {
    for (int64_t i = 0; i < array->n_buffers; i++) free((void *)array->buffers[i]);
    free(array->buffers);
    array->release = NULL;
}

int32_t give_column(struct ArrowArray *array, int64_t rows, int64_t nulls, int count, void *const *given) {
    const void **buffers = malloc((size_t)count * sizeof *buffers);
    for (int i = 0; i < count; i++) {
        if (buffers) buffers[i] = given[i];
        else free(given[i]);
    }
    if (!buffers) return NO_MEMORY;
    memset(array, 0, sizeof *array);
    array->length = rows;
    array->null_count = nulls;
    array->n_buffers = count;
    array->buffers = buffers;
    array->release = release_array;
    return DONE;
}

void describe(struct ArrowSchema *schema, const char *format) {
    memset(schema, 0, sizeof *schema);
    schema->format = format;
    schema->name = "";
    schema->flags = 2; /* nullable */
    schema->release = release_schema;
}

static void release_struct_schema(struct ArrowSchema *schema) {
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (schema->children[i]->release) schema->children[i]->release(schema->children[i]);
    }
    free(schema->private_data), free(schema->children);
    schema->release = NULL;
}

static void release_struct(struct ArrowArray *array) {
    for (int64_t i = 0; i < array->n_children; i++) {
        if (array->children[i]->release) array->children[i]->release(array->children[i]);
    }
    free(array->private_data), free(array->children), free(array->buffers);
    array->release = NULL;
}

#define NAME_BYTES 24

int32_t new_struct(struct ArrowArray *array, struct ArrowSchema *schema, int64_t columns) {
    size_t count = (size_t)columns + 1;
    struct ArrowArray *arrays = calloc(count, sizeof *arrays), **array_children = malloc(count * sizeof *array_children);
    struct ArrowSchema *schemas = calloc(count, sizeof *schemas + NAME_BYTES); /* and their names */
    struct ArrowSchema **schema_children = malloc(count * sizeof *schema_children);
    const void **buffers = calloc(1, sizeof *buffers);
    if (!arrays || !array_children || !schemas || !schema_children || !buffers) {
        free(arrays), free(array_children), free(schemas), free(schema_children), free(buffers);
        return NO_MEMORY;
    }
    for (int64_t i = 0; i < columns; i++) array_children[i] = arrays + i, schema_children[i] = schemas + i;
    describe(schema, "+s");
    memset(array, 0, sizeof *array);
    array->n_children = schema->n_children = columns;
    array->children = array_children, schema->children = schema_children;
    array->private_data = arrays, schema->private_data = schemas;
    array->buffers = buffers, array->n_buffers = 1;
    array->release = release_struct, schema->release = release_struct_schema;
    return DONE;
}

void name_child(struct ArrowSchema *schema, int64_t column) {
    char *names = (char *)((struct ArrowSchema *)schema->private_data + schema->n_children + 1);
    snprintf(names + column * NAME_BYTES, NAME_BYTES, "%lld", (long long)column);
    schema->children[column]->name = names + column * NAME_BYTES;
}

const int64_t *take_column(struct ArrowArrayStream *stream, int64_t rows, struct ArrowArray *held) {
    struct ArrowSchema schema;
    int fits;
    if (stream->get_schema(stream, &schema)) return NULL;
    fits = !strcmp(schema.format, "l");
    schema.release(&schema);
    if (!fits) return NULL;
    if (stream->get_next(stream, held)) {
        held->release = NULL;
        return NULL;
    }
    if (!held->release || held->length != rows || held->n_buffers != 2) return NULL;
    return (const int64_t *)held->buffers[1] + held->offset;
}

int has_nulls(const struct ArrowArray *held) { return held->null_count != 0 && held->buffers[0]; }

void release_columns(struct ArrowArray *held, int count) {
    for (int i = 0; i < count; i++) {
        if (held[i].release) held[i].release(&held[i]);
    }
}

uint8_t *new_validity(int64_t rows) { return calloc((size_t)rows / 8 + 64, 1); }

int32_t give_rows(struct ArrowArray *array, struct ArrowSchema *schema, int64_t *rows, int64_t count) {
    uint8_t *known = new_validity(count);
    int64_t nulls = 0;
    int32_t status;
    if (!known) {
        free(rows);
        return NO_MEMORY;
    }
    for (int64_t i = 0; i < count; i++) {
        if (rows[i] == NO_ROW) nulls++, rows[i] = 0;
        else set_valid(known, i);
    }
    if (!(status = give_column(array, count, nulls, 2, (void *[]){known, rows}))) describe(schema, "l");
    return status;
}

void ss_drop(struct ArrowArray *array, struct ArrowSchema *schema) {
    if (array->release) array->release(array);
    if (schema->release) schema->release(schema);
}
