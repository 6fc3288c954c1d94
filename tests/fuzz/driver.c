/* A small fuzzer for compilers without libFuzzer: seeded mutations of the files it is given, the same in every run.
 *
 *     harness --seed N --count N FILE...     the files as they are, then as many mutations
 *     harness --seed N --only N FILE...      one of these again; its input is printed first */
#include "target.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_FILES = 256, MOST_BYTES = 1 << 16, SLOW_S = 30 };

typedef struct {
    uint8_t bytes[MOST_BYTES];
    size_t size;
} input;

static const char *const TOKENS[] = {
    "\"", "\\", ",", ":", "{", "}", "[", "]", " ", "\n", "\r\n", "\t", "\x0b", "\xff", "\xc3", "\xc3\xa9", "\xc2\xa0",
    "\xed\xa0\x80", "\xf0\x9f\x98\x80", "\\u00e9", "\\ud83d\\ude00", "\\ud83d", "\\u0000", "\\n", "\\x", "null", "true", "false",
    "nul", "-", "-0", "1e", "1e308", "1e999", "1e-999", "0.1", "01", "1.", ".5", "123456789012345678", "9223372036854775807",
    "-9223372036854775808", "18446744073709551616", "0.30000000000000004", "9000000000000001", "1760000000000462.9049", "NaN",
    "\"ph\":\"X\"", "\"cat\":", "\"ts\":", "\"dur\":", "\"pid\":", "\"id\":", "\"args\":{", "\"args\":null", "\"Input Dims\":",
    "\"Input type\":", "\"bytes\":", "\"stream\":", "[1 2,,3]", "[[1,2],[],3]", "[1,]", "{\"a\":1,}", "\"\"", "\"\"\"", "N/A",
    "NA", "twelve bytes", "thirteen byte", "a long name of a kernel<float, 4>", "aten::add", "x"};

static input corpus[MOST_FILES], current;
static int files;
static uint64_t seed = 1, number, state;
static const char *program;

/* SplitMix64. */
static uint64_t draw(uint64_t below) {
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (z ^ z >> 31) % below;
}

/* Put `size` bytes in the place of `cut` bytes at `at`. */
static void splice(input *one, size_t at, size_t cut, const void *bytes, size_t size) {
    if (one->size - cut + size > MOST_BYTES) return;
    memmove(one->bytes + at + size, one->bytes + at + cut, one->size - at - cut);
    memcpy(one->bytes + at, bytes, size);
    one->size += size - cut;
}

static void mutate(input *one) {
    static uint8_t copy[MOST_BYTES];
    size_t at = draw(one->size + 1), rest = one->size - at, some = rest ? draw(rest < 40 ? rest : 40) : 0;
    const char *token = TOKENS[draw(sizeof TOKENS / sizeof *TOKENS)];
    const input *other = &corpus[draw((uint64_t)files)];
    size_t from = draw(other->size + 1), length = other->size - from < 200 ? other->size - from : 200;
    uint8_t byte = (uint8_t)draw(256);
    switch (draw(8)) {
    case 0: if (rest) one->bytes[at] ^= (uint8_t)(1u << draw(8)); break;
    case 1: if (rest) one->bytes[at] = byte; break;
    case 2: case 3: splice(one, at, 0, token, strlen(token)); break;
    case 4: splice(one, at, some, token, strlen(token)); break;
    case 5: splice(one, at, some, "", 0); break;
    case 6: memcpy(copy, one->bytes + at, some); splice(one, at, 0, copy, some); break;
    default: splice(one, at, some, other->bytes + from, draw(length + 1));
    }
}

static void failed(int signal_number) {
    fprintf(stderr, "fuzz: input %llu %s; to try it again:\n  %s --seed %llu --only %llu CORPUS\n", (unsigned long long)number,
            signal_number == SIGALRM ? "takes too long" : "fails", program, (unsigned long long)seed, (unsigned long long)number);
    _exit(1);
}

const char *__asan_default_options(void) { return "abort_on_error=1:allocator_may_return_null=1"; }
const char *__ubsan_default_options(void) { return "abort_on_error=1:print_stacktrace=1"; }

/* The input of a number: a file, or a mutation of one. Sanitizers see its end, as it fills its memory. */
static void try_input(uint64_t which, int print) {
    uint8_t *exact;
    number = which;
    state = seed * 0x2545f4914f6cdd1dull + which;
    current = corpus[which < (uint64_t)files ? which : draw((uint64_t)files)];
    for (uint64_t i = which < (uint64_t)files ? 0 : 1 + draw(6); i; i--) mutate(&current);
    if (which >= (uint64_t)files && !draw(4)) current.size = draw(current.size + 1); /* reading must end where the text does */
    if (print) fwrite(current.bytes, 1, current.size, stdout), fflush(stdout);
    exact = malloc(current.size ? current.size : 1);
    memcpy(exact, current.bytes, current.size);
    alarm(SLOW_S);
    LLVMFuzzerTestOneInput(exact, current.size);
    free(exact);
}

int main(int count, char **words) {
    uint64_t inputs = 10000, only = UINT64_MAX;
    program = words[0];
    for (int i = 1; i < count; i++) {
        FILE *file;
        if (i + 1 < count && !strcmp(words[i], "--seed")) seed = strtoull(words[++i], NULL, 10);
        else if (i + 1 < count && !strcmp(words[i], "--count")) inputs = strtoull(words[++i], NULL, 10);
        else if (i + 1 < count && !strcmp(words[i], "--only")) only = strtoull(words[++i], NULL, 10);
        else if (files < MOST_FILES && (file = fopen(words[i], "rb"))) {
            corpus[files].size = fread(corpus[files].bytes, 1, MOST_BYTES, file);
            files++;
            fclose(file);
        } else return fprintf(stderr, "fuzz: cannot read %s\n", words[i]), 2;
    }
    if (!files) return fprintf(stderr, "usage: %s [--seed N] [--count N | --only N] FILE...\n", program), 2;
    signal(SIGABRT, failed);
    signal(SIGALRM, failed);
    if (only != UINT64_MAX) try_input(only, 1);
    else for (uint64_t i = 0; i < (uint64_t)files + inputs; i++) try_input(i, 0);
    printf("fuzz: %llu inputs from %d files, no failure\n", (unsigned long long)(number + 1), files);
    return 0;
}
