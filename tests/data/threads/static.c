#include <unistd.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <stdio.h>
extern char **environ;
static __thread int counter = 7;
int bump(int by) { return counter += by; }
int main(int argc, char **argv) {
    char line[128];
    char *copy = malloc(strlen(argv[argc - 1]) + 1);
    long value = strtol(strcpy(copy, argv[argc - 1]), 0, 0);
    errno = 0;
    strtol("99999999999999999999999999", 0, 10);
    int n = snprintf(line, sizeof line, "%d %s %ld %d %s %d %.2f\n", argc, argv[0], value, bump(1), getenv("GREETING"), errno == ERANGE, value / 4.0);
    write(1, line, n);
    free(copy);
    return argc;
}
