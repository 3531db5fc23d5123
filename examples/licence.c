/* A program that wants a licence: `licence KEY`, or `licence -f FILE` for a key that a file begins with. A key is
 * "KP-", digits for the seats, and a letter that is computed from them. Built by build.py for 32-bit Arm and Linux,
 * statically with musl, and stripped: no name of this file is in the program.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define KEEP __attribute__((noinline))

static unsigned seats;

KEEP static char letter(const char *digits, size_t length) {
    unsigned sum = 7;
    for (size_t n = 0; n < length; n++)
        sum = sum * 10 + (unsigned)(digits[n] - '0');
    return (char)('A' + sum % 26);
}

KEEP static int check(const char *key) {
    size_t length = strlen(key);
    if (length < 5 || memcmp(key, "KP-", 3) || letter(key + 3, length - 4) != key[length - 1])
        return 0;
    for (const char *digit = key + 3; digit < key + length - 1; digit++)
        seats = seats * 10 + (unsigned)(*digit - '0');
    return 1;
}

KEEP static void say(const char *text) {
    write(1, text, strlen(text));
}

KEEP static char *from_file(const char *path) {
    static char key[32];
    int file = open(path, O_RDONLY);
    ssize_t size = file < 0 ? 0 : read(file, key, sizeof key - 1);
    while (size > 0 && key[size - 1] == '\n')
        key[--size] = 0;
    return key;
}

int main(int argc, char **argv) {
    const char *key = argc == 3 ? from_file(argv[2]) : argc == 2 ? argv[1] : "";
    if (!check(key)) {
        say("no licence\n");
        return 1;
    }
    say(seats > 9 ? "licensed for many\n" : "licensed for few\n");
    return 0;
}
