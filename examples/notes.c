/* A small library that keeps notes on the heap, with two mistakes for heap.py to find. It imports malloc() and free(). */
#include <stddef.h>

void *malloc(size_t size);
void free(void *memory);

struct note {
    struct note *next;
    char *text;
    unsigned short length;
    unsigned char urgent : 1, seen : 1;
};

struct book {
    struct note *first;
    int count;
};

struct book *book_open(void)
{
    struct book *book = malloc(sizeof(*book));

    if (book) {
        book->first = NULL;
        book->count = 0;
    }
    return book;
}

static char *copy(const char *text, unsigned short length)
{
    char *kept = malloc(length + 1);

    if (kept)
        for (unsigned n = 0; n <= length; n++)
            kept[n] = text[n];
    return kept;
}

/* The new note's number, or -1. */
int book_add(struct book *book, const char *text, int urgent)
{
    struct note *note = malloc(sizeof(*note));
    unsigned short length = 0;

    while (text[length])
        length++;
    if (!note)
        return -1;
    note->text = copy(text, length);
    if (!note->text)
        return -1; /* the first mistake: where no memory is left for the text, the note leaks */
    note->length = length;
    note->urgent = urgent;
    note->seen = 0;
    note->next = book->first;
    book->first = note;
    return book->count++;
}

/* Drop the newest note. */
void book_drop(struct book *book)
{
    struct note *note = book->first;

    if (!note)
        return;
    book->first = note->next;
    free(note->text);
    free(note);
}

void book_close(struct book *book)
{
    while (book->first)
        book_drop(book);
    free(book);
}

/* Keep the urgent ones only. */
void book_trim(struct book *book)
{
    for (struct note *note = book->first, *next; note; note = next) {
        next = note->next;
        if (!note->urgent)
            free(note->text); /* the second: the note stays, and its text is freed again when the book is closed */
    }
}
