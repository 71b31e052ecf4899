/* Rosenbrock's valley in 30 dimensions in C, with protocol version 1 (docs/own-problem.md):
 *
 *     cc -O2 -ffp-contract=off -o rosen rosen.c
 *     evoxo run rosen.toml --program rosen=/path/to/rosen
 *
 * Without -ffp-contract=off a compiler may fuse a product and a sum into one instruction, which rounds only once: ARM64
 * processors would then compute different bits from x86-64 ones.
 *
 * The parser below understands the JSON of requests: it finds "batch", and "genes" of each item, and skips the rest.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH 30
#define LINE_BYTES_MAX (16 * 1024 * 1024)

static char line[LINE_BYTES_MAX + 1];
/* The parser's position in the line. */
static const char *at;

static void stop(const char *why)
{
    fprintf(stderr, "rosen: %s near \"%.40s\"\n", why, at);
    exit(1);
}

/* The next character that is not a space. It is not consumed. */
static char peek(void)
{
    at += strspn(at, " \t\r\n");
    return *at;
}

/* Consumes the character if it comes next. */
static int take(char wanted)
{
    if (peek() != wanted)
        return 0;
    at++;
    return 1;
}

static void expect(char wanted)
{
    if (!take(wanted))
        stop("the request is not as expected");
}

/* Consumes a string. Returns whether it is this one. */
static int take_string(const char *wanted)
{
    const char *begin;

    expect('"');
    for (begin = at; *at != '"'; at++) {
        if (*at == '\\')
            at++;
        if (*at == 0)
            stop("a string does not end");
    }
    at++;
    return strlen(wanted) == (size_t)(at - 1 - begin) && memcmp(begin, wanted, strlen(wanted)) == 0;
}

/* Consumes a number. strtod of the GNU C library and of musl gives the nearest double, as JSON parsers do. */
static double take_number(void)
{
    char *end;
    double number;

    peek();
    number = strtod(at, &end);
    if (end == at)
        stop("there is no number");
    at = end;
    return number;
}

/* Consumes any value. */
static void skip(void)
{
    char open = peek(), close = open == '{' ? '}' : ']';

    if (open == '"') {
        take_string("");
    } else if (open == '{' || open == '[') {
        at++;
        if (take(close))
            return;
        do {
            if (open == '{') {
                take_string("");
                expect(':');
            }
            skip();
        } while (take(','));
        expect(close);
    } else if (strchr("tfn", open) && open) {
        at += strspn(at, "truefalsn");
    } else {
        take_number();
    }
}

static double rosen(const double *x)
{
    double cost = 0;
    int i;

    for (i = 0; i + 1 < LENGTH; i++) {
        double valley = x[i + 1] - x[i] * x[i];
        cost += 100 * valley * valley + (1 - x[i]) * (1 - x[i]);
    }
    return cost;
}

/* Consumes an object. Calls the function for each value of this key, and skips other values. */
static void take_object(const char *key, void (*value)(void))
{
    int found = 0;

    expect('{');
    do {
        int wanted = take_string(key);
        expect(':');
        if (wanted)
            value();
        else
            skip();
        found |= wanted;
    } while (take(','));
    expect('}');
    if (!found)
        stop("something is missing in the request");
}

static double x[LENGTH];

static void take_genes(void)
{
    int i;

    expect('[');
    for (i = 0; i < LENGTH; i++) {
        if (i > 0)
            expect(',');
        x[i] = take_number();
    }
    expect(']');
}

static void take_parts(void)
{
    take_object("x", take_genes);
}

static void answer_items(void)
{
    const char *comma = "";

    expect('[');
    if (take(']'))
        return;
    do {
        double cost;

        take_object("genes", take_parts);
        cost = rosen(x);
        if (isfinite(cost))
            printf("%s{\"f\":[%.17g]}", comma, cost); /* 17 digits are enough for every double. */
        else
            printf("%s{\"fail\":\"cost is %g\"}", comma, cost);
        comma = ",";
    } while (take(','));
    expect(']');
}

static void take_batch(void)
{
    printf("{\"batch\":%.0f,\"items\":[", take_number());
}

int main(void)
{
    printf("{\"evoxo\":1,\"name\":\"rosen\",\"version\":\"c-1\",\"objectives\":[\"min cost\"],"
           "\"genome\":[{\"name\":\"x\",\"type\":\"real\",\"length\":%d,\"low\":-5,\"high\":5}]}\n",
           LENGTH);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        /* The batch comes first in the answer, wherever it is in the request. */
        at = line;
        take_object("batch", take_batch);
        at = line;
        take_object("items", answer_items);
        puts("]}");
        fflush(stdout);
    }
    return 0;
}
