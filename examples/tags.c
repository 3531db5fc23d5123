/* A library to fuzz: it reads a picture's tags into blocks of the heap. Three bugs are planted, of which none crashes.
 *
 * Tags are two bytes "TG", then entries: a kind, a length, that many bytes. Built by build.py as shared libraries, which
 * import malloc() and free().
 *
 *   'T'  a text is kept: a block has no room for the NUL behind it where its length is a multiple of 16
 *   'D'  the latest text is dropped, and is still the latest
 *   'A'  the latest text's first letter is replaced
 *   'H'  a hash of the bytes, of plain `char`: its sign differs from machine to machine
 */
#include <stddef.h>
#include <stdint.h>

#define KEEP __attribute__((noinline, used, visibility("default")))

void *malloc(size_t size);
void free(void *block);

struct tags {
    char *texts[8];
    int count;
    char *latest;
    uint32_t hash;
};

KEEP int keep_text(struct tags *tags, const uint8_t *data, size_t length) {
    if (tags->count == 8 || length == 0)
        return -1;
    char *text = malloc((length + 15) / 16 * 16);
    if (!text)
        return -1;
    for (size_t n = 0; n < length; n++)
        text[n] = (char)data[n];
    text[length] = 0;
    tags->latest = tags->texts[tags->count++] = text;
    return 0;
}

KEEP int drop_text(struct tags *tags) {
    if (tags->count == 0)
        return -1;
    free(tags->texts[--tags->count]);
    return 0;
}

KEEP int replace_letter(struct tags *tags, uint8_t letter) {
    if (!tags->latest)
        return -1;
    tags->latest[0] = (char)letter;
    return 0;
}

KEEP uint32_t hash_bytes(const uint8_t *data, size_t length) {
    uint32_t hash = 5381;
    for (size_t n = 0; n < length; n++)
        hash = hash * 33 + (uint32_t)(char)data[n];
    return hash;
}

/* The number of entries, and in the upper half what the last hash was; -1 for what are no tags. */
KEEP uint32_t tags_read(const uint8_t *data, size_t size) {
    struct tags tags = {{0}, 0, 0, 0};
    uint32_t entries = 0;
    if (size < 2 || data[0] != 'T' || data[1] != 'G')
        return 0xFFFFFFFF;
    for (size_t at = 2; at + 2 <= size;) {
        uint8_t kind = data[at], length = data[at + 1];
        const uint8_t *value = data + at + 2;
        if (length > size - at - 2)
            break;
        if (kind == 'T')
            keep_text(&tags, value, length);
        else if (kind == 'D')
            drop_text(&tags);
        else if (kind == 'A' && length == 1)
            replace_letter(&tags, value[0]);
        else if (kind == 'H')
            tags.hash = hash_bytes(value, length);
        entries++;
        at += 2 + length;
    }
    while (tags.count > 0)
        drop_text(&tags);
    return (tags.hash << 16) + entries;
}
