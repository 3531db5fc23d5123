/* Debug information: entries of a unit, and rows of a table of lines, as kprobes/debug/scan.py and
 * lines.py have them in Python, which say what is looked for and why.
 *
 * A file is hostile: nothing outside its sections is read, and whatever is unusual or damaged is
 * left to Python (NOT_HERE), which does the same slowly, and knows what to say. Source: DWARF 5,
 * sections 7.5 and 6.2.
 */
#include "words.h"

enum { NOT_HERE = -1, DONE = 0 };

struct bytes { const u8 *data; u64 size; };

/* A place in a section; `bad` is set by whatever ends beyond it. */
struct cursor { const u8 *data; u64 at, end; int big, bad; };

static u64 fixed(struct cursor *c, u64 size)
{
    u64 value = 0;
    if (size > 8 || size > c->end - c->at) {
        c->bad = 1;
        return 0;
    }
    if (size == 4 && !c->big) { /* most of them */
        u32 word;
        __builtin_memcpy(&word, c->data + c->at, 4);
        c->at += 4;
        return word;
    }
    for (u64 n = 0; n < size; n++)
        value |= (u64)c->data[c->at + (c->big ? size - 1 - n : n)] << 8 * n;
    c->at += size;
    return value;
}

static u64 unsigned_leb(struct cursor *c)
{
    u64 value = 0;
    for (int shift = 0; c->at < c->end; shift += 7) {
        u8 byte = c->data[c->at++];
        if (shift < 64)
            value |= (u64)(byte & 0x7f) << shift;
        else if (byte & 0x7f)
            break; /* more than 64 bits: Python's numbers have them */
        if (byte < 0x80)
            return value;
    }
    c->bad = 1;
    return 0;
}

static long long signed_leb(struct cursor *c)
{
    u64 value = 0;
    for (int shift = 0; c->at < c->end && shift < 64; shift += 7) {
        u8 byte = c->data[c->at++];
        value |= (u64)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            if (byte & 0x40 && shift < 57)
                value |= ~0ull << (shift + 7);
            return (long long)value;
        }
    }
    c->bad = 1;
    return 0;
}

static void pass(struct cursor *c, u64 size)
{
    if (size > c->end - c->at)
        c->bad = 1;
    else
        c->at += size;
}

/* --- entries */

/* What dwarf_unit() is told, and what it has found.
 *
 *   info, abbrev, strings, line_strings   addresses of sections; `..._size`: their bytes
 *   addresses, texts    the unit's tables of addresses and of strings' offsets; `..._size`: bytes
 *   unit, first, end, table   offsets: of the unit, its first entry, behind it, its abbreviations
 *   version, address, word, big   of the unit: of DWARF, bytes of an address and of an offset, order
 *   alternative   address of the strings of the file that dwz -m has made of several; `..._size`
 *   deep      1: what stands within functions, too
 *   wanted    of FUNCTIONS, TYPES
 *   shapes, attributes, declared   room for this function's own; `..._room`: how many of each.
 *             Shapes are all free before and after; the room for what is declared is a power of
 *             two, and notes of other units in it are as good as free
 *   seen, seen_room, seen_count    a table of hashes of types that are noted already; no room: all
 *             are noted. A power of two
 *   functions, types, scopes, copies   what is found: struct function, struct type, struct scope,
 *             struct copy, and how many fit, and how many there are
 *   asked     address of the name, without scopes, of the functions whose copies are wanted
 *   templates 1: those of a template of this name are wanted, too: arguments may follow the name
 *   origins   a table of struct origin, kept from unit to unit: entries of these functions.
 *             A power of two
 *   elsewhere 1: entries of the unit may be copies of entries of other units
 *   ranges    the section of lists of ranges that the unit's version has; empty: not read here
 *   places    of dwarf_places(): struct place, filled in, how many fit, and how many there are
 *   held      room for numbers of places, of 4 bytes
 *   lines     of dwarf_source(): the section of lines; `asked` is the end of the file's path
 *   line      the line wanted; 0: all
 *   rows      what is found: struct line
 *   has_top, base, lists_base, table_of_lines   of the unit's own entry: 1 where it can be read;
 *             what relative ranges are added to; where its numbers of lists count from; the offset
 *             of its table of lines, VARIES: it has none. This library's own
 */
#define UNIT_WORDS(X) \
    X(info) X(info_size) X(abbrev) X(abbrev_size) X(strings) X(strings_size) X(line_strings) \
    X(line_strings_size) X(addresses) X(addresses_size) X(texts) X(texts_size) X(unit) X(first) \
    X(end) X(table) X(version) X(address) X(word) X(big) X(deep) X(wanted) X(shapes) \
    X(shapes_room) X(attributes) X(attributes_room) X(declared) X(declared_room) X(seen) \
    X(seen_room) X(seen_count) X(functions) X(functions_room) X(functions_count) X(types) \
    X(types_room) X(types_count) X(scopes) X(scopes_room) X(scopes_count) X(asked) X(asked_size) \
    X(origins) X(origins_room) X(origins_count) X(copies) X(copies_room) X(copies_count) \
    X(elsewhere) X(ranges) X(ranges_size) X(places) X(places_room) X(places_count) X(held) X(held_room) X(lines) \
    X(lines_size) X(line) X(rows) X(rows_room) X(rows_count) X(has_top) X(base) X(lists_base) \
    X(table_of_lines) X(templates) X(alternative) X(alternative_size)
EXPORT const char unit_words[] = UNIT_WORDS(NAME);
struct unit { UNIT_WORDS(WORD) };
enum { FUNCTIONS = 1, TYPES = 2, COPIES = 4 };

/* A name: in which section it is, its offset and bytes. Section 0: there is none. ELSEWHERE: it is
 * not read here; the offset is of the entry that has it. */
enum { NOWHERE, INFO, STRINGS, LINE_STRINGS, LINES, ELSEWHERE, ALTERNATIVE };
struct name { u64 section, offset, size; };

struct function { u64 low, high, offset; };
struct type { u64 tag, scope, section, name, size_of_name, offset, size, line; };
/* `around` and `scope`: number of a struct scope, from 1; 0: none */
struct scope { u64 around, section, name, size_of_name, hash; };
/* `offset`: of the entry, 0 where this is free; `scope` is around the function's name */
struct origin { u64 offset, scope; };
/* `function`: offset of the entry of the function that the copy stands in; `is_told`: 0 where
 * `address` is to be found in the entry otherwise */
struct copy { u64 offset, function, scope, is_told, address; };
/* Given: `address`, and `function`: offset of the entry of a function that has code there. Found:
 * is_known 0: nothing is; [`start`, `end`) is the code that the function is entered in; `block` the
 * offset of the entry of the innermost inlined copy around the address, 0: none is */
struct place {
    u64 address, function, is_known, start, end, block, last;
    struct name name, inlined;
};

/* `sibling`: bytes of the attributes before SIBLING, of an entry that is only passed over with all
 * that is in it, and whose sibling is an offset of four bytes; else VARIES */
struct shape { u64 tag, children, size, first, count, interesting, sibling, known; };
struct attribute { u64 name, form, constant, size, is_read; };
struct declared { u64 offset, scope, hash; struct name name; };

enum {
    SIBLING = 0x01, NAME_OF = 0x03, BYTES = 0x0b, LOW = 0x11, HIGH = 0x12, LINE = 0x3b,
    DECLARATION = 0x3c, SPECIFICATION = 0x47, RANGES = 0x55, ORIGIN = 0x31, ENTRY = 0x52,
    TABLE_OF_LINES = 0x10, LISTS_BASE = 0x74,
};
enum {
    CLASS = 0x02, ENUMERATION = 0x04, BLOCK = 0x0b, MEMBER = 0x0d, STRUCTURE = 0x13, TYPEDEF = 0x16,
    ARRAY = 0x01, SUBROUTINE_TYPE = 0x15, CALL = 0x48, GNU_CALL = 0x4109, UNION = 0x17, INLINED = 0x1d, MODULE = 0x1e, BASE = 0x24, SUBPROGRAM = 0x2e, VARIABLE = 0x34, NAMESPACE = 0x39,
};
enum { REF_ADDR = 0x10, REF4 = 0x13, IMPLICIT = 0x21 };
/* of the file that dwz -m has made: strp_sup, GNU_strp_alt; ref_sup4, ref_sup8, GNU_ref_alt */
static int is_alternative_text(u64 form) { return form == 0x1d || form == 0x1f21; }
static int is_alternative(u64 form) { return form == 0x1c || form == 0x24 || form == 0x1f20; }
#define VARIES (~0ull)
#define UNKNOWN (~0ull - 1)
#define UNMEASURED (~0ull) /* size of a name whose end nobody has looked for */
#define DEEPEST 256

static int is_type(u64 tag)
{
    return tag == CLASS || tag == ENUMERATION || tag == STRUCTURE || tag == TYPEDEF || tag == UNION
        || tag == BASE || tag == VARIABLE;
}

static int is_scope(u64 tag)
{
    return tag == CLASS || tag == STRUCTURE || tag == UNION || tag == MODULE || tag == NAMESPACE;
}

/* Bytes of a form, VARIES, or UNKNOWN. */
static u64 size_of(const struct unit *u, u64 form)
{
    switch (form) {
    case 0x0b: case 0x0c: case 0x11: case 0x25: case 0x29: return 1;
    case 0x05: case 0x12: case 0x26: case 0x2a: return 2;
    case 0x27: case 0x2b: return 3;
    case 0x06: case 0x13: case 0x1c: case 0x28: case 0x2c: return 4;
    case 0x07: case 0x14: case 0x20: case 0x24: return 8;
    case 0x1e: return 16;
    case 0x19: case IMPLICIT: return 0;
    case 0x0e: case 0x17: case 0x1d: case 0x1f: case 0x1f20: case 0x1f21: return u->word;
    case 0x01: return u->address;
    case 0x10: return u->version <= 2 ? u->address : u->word;
    case 0x0d: case 0x0f: case 0x15: case 0x1a: case 0x1b: case 0x22: case 0x23: case 0x1f01:
    case 0x1f02: /* LEB128 */
    case 0x09: case 0x18: case 0x08: case 0x0a: case 0x03: case 0x04: return VARIES;
    }
    return UNKNOWN;
}

static int is_leb(u64 form)
{
    return form == 0x0d || form == 0x0f || form == 0x15 || form == 0x1a || form == 0x1b
        || form == 0x22 || form == 0x23 || form == 0x1f01 || form == 0x1f02;
}

static int is_address_number(u64 form)
{
    return form == 0x1b || form == 0x1f01 || (form >= 0x29 && form <= 0x2c);
}

static int is_text_number(u64 form)
{
    return form == 0x1a || form == 0x1f02 || (form >= 0x25 && form <= 0x28);
}

/* 1: values of an attribute are looked at. */
static int is_read(const struct unit *u, u64 name)
{
    switch (name) {
    case SIBLING: case NAME_OF: case BYTES: case LOW: case HIGH: case LINE: case DECLARATION:
    case SPECIFICATION: case RANGES: case TABLE_OF_LINES: case LISTS_BASE: return 1;
    case ORIGIN: case ENTRY: return (u->wanted & COPIES) != 0;
    }
    return 0;
}

static void pass_value(struct cursor *c, const struct unit *u, u64 form)
{
    u64 size = size_of(u, form);
    if (size < UNKNOWN)
        pass(c, size);
    else if (size == UNKNOWN)
        c->bad = 1;
    else if (is_leb(form))
        unsigned_leb(c);
    else if (form == 0x08) {
        while (c->at < c->end && c->data[c->at])
            c->at++;
        pass(c, 1);
    } else if (form == 0x0a)
        pass(c, fixed(c, 1));
    else if (form == 0x03)
        pass(c, fixed(c, 2));
    else if (form == 0x04)
        pass(c, fixed(c, 4));
    else
        pass(c, unsigned_leb(c));
}

/* 1: neither functions nor inlined copies are within entries of a tag. */
static int has_no_code(u64 tag)
{
    return tag == CALL || tag == GNU_CALL || tag == ARRAY || tag == SUBROUTINE_TYPE;
}

/* Where the abbreviation of a number begins in a unit's table; VARIES: nowhere. Those before it,
 * which GCC makes hundreds, are only passed over. */
static u64 abbreviation_at(const struct unit *u, u64 wanted)
{
    struct cursor c = { (const u8 *)u->abbrev, u->table, u->abbrev_size, (int)u->big, 0 };
    while (c.at < c.end && !c.bad) {
        u64 start = c.at, code = unsigned_leb(&c);
        if (code == wanted || !code)
            return code ? start : VARIES;
        unsigned_leb(&c);
        pass(&c, 1);
        for (u64 name = 1, form = 1; (name || form) && !c.bad;) {
            name = unsigned_leb(&c);
            form = unsigned_leb(&c);
            if (form == IMPLICIT)
                signed_leb(&c);
        }
    }
    return VARIES;
}

#define ALL_SHAPES 0 /* which is the number of no abbreviation */

/* Reads a unit's abbreviations, or that of the number `only`. Returns the greatest number, or
 * NOT_HERE. */
static long long read_shapes(struct unit *u, u64 only)
{
    struct shape *shapes = (struct shape *)u->shapes;
    struct attribute *attributes = (struct attribute *)u->attributes;
    u64 start = only == ALL_SHAPES ? u->table : abbreviation_at(u, only);
    struct cursor c = { (const u8 *)u->abbrev, start, u->abbrev_size, (int)u->big, 0 };
    u64 used = 0, greatest = 0;
    u->elsewhere = 0;
    if (start > u->abbrev_size)
        return NOT_HERE;
    for (;;) {
        u64 code = unsigned_leb(&c);
        if (c.bad)
            break;
        if (!code)
            return (long long)greatest;
        if (code >= u->shapes_room)
            break;
        struct shape *shape = &shapes[code];
        if (code > greatest)
            greatest = code;
        shape->tag = unsigned_leb(&c);
        shape->children = fixed(&c, 1);
        shape->first = used;
        shape->size = 0;
        shape->known = 1;
        shape->sibling = VARIES;
        int sibling = 0, code_of = 0, declared = 0;
        for (;;) {
            u64 name = unsigned_leb(&c), form = unsigned_leb(&c);
            u64 constant = form == IMPLICIT ? (u64)signed_leb(&c) : 0;
            if (c.bad || used == u->attributes_room)
                goto damaged;
            if (!name && !form)
                break;
            u64 size = size_of(u, form);
            if (size == UNKNOWN)
                goto damaged;
            if ((name == ORIGIN || name == SPECIFICATION) && form == REF_ADDR)
                u->elsewhere = 1;
            if (name == SIBLING && form == REF4)
                shape->sibling = shape->size;
            shape->size = size == VARIES || shape->size == VARIES ? VARIES : shape->size + size;
            attributes[used++] = (struct attribute){ name, form, constant, size, is_read(u, name) };
            sibling |= name == SIBLING;
            code_of |= name == LOW || name == RANGES;
            declared |= name == DECLARATION;
        }
        shape->count = used - shape->first;
        /* an entry without code is no function: all that is in it is passed at once */
        int counts = shape->tag == SUBPROGRAM && code_of && (u->wanted & FUNCTIONS || u->deep);
        int type = is_type(shape->tag) && u->wanted & TYPES;
        if (u->wanted & COPIES && !has_no_code(shape->tag))
            shape->sibling = VARIES;
        if (!shape->children || u->deep || counts || type || is_scope(shape->tag)
            || shape->tag == MEMBER)
            shape->sibling = VARIES;
        shape->interesting = type || is_scope(shape->tag) || (shape->children && sibling)
            || (shape->tag == SUBPROGRAM && code_of)
            || (shape->tag == MEMBER && declared && u->wanted & TYPES);
        if (only != ALL_SHAPES)
            return (long long)greatest;
    }
damaged:
    for (u64 n = 0; n <= greatest; n++)
        shapes[n].known = 0;
    return NOT_HERE;
}

/* The attributes of an entry that are looked at; `has`: bits of the first 64 of DW_AT, and of
 * SPECIFICATION, RANGES and LISTS_BASE, as they are numbered here. Of COPIES, `original` is the offset of the
 * entry that an entry is a copy or the definition of, and 0: none in this section; `is_moved` is 1
 * where dwz -m has moved that to the other file, which Python reads; `entry` is an address where
 * `has_entry` is 1, and 2: it is told otherwise. */
struct values {
    u64 has, sibling, low, high, high_is_address, bytes, line, specification, original, is_moved,
        has_entry, entry, ranges, ranges_form, table_of_lines, lists_base;
    struct name name;
};
#define BIT(name) (1ull << ((name) & 63))

/* A section that names are in, by its number. */
static struct bytes section_of(const struct unit *u, u64 number)
{
    switch (number) {
    case INFO: return (struct bytes){ (const u8 *)u->info, u->info_size };
    case STRINGS: return (struct bytes){ (const u8 *)u->strings, u->strings_size };
    case LINE_STRINGS: return (struct bytes){ (const u8 *)u->line_strings, u->line_strings_size };
    case LINES: return (struct bytes){ (const u8 *)u->lines, u->lines_size };
    case ALTERNATIVE: return (struct bytes){ (const u8 *)u->alternative, u->alternative_size };
    }
    return (struct bytes){ 0, 0 };
}

/* Where a text of a section of strings is; 0: outside. An empty one is no name. Its end is looked
 * for when somebody wants it: most names are of types that are noted already, and anywhere in
 * memory.
 */
static int text_at(const struct unit *u, u64 section, u64 offset, struct name *name)
{
    if (offset >= section_of(u, section).size)
        return 0;
    *name = (struct name){ section, offset, UNMEASURED };
    return 1;
}

/* Finds the end of a name. 0: it has none. */
static int measure(const struct unit *u, struct name *name)
{
    struct bytes in = section_of(u, name->section);
    u64 n = name->offset;
    if (name->size != UNMEASURED)
        return 1;
    while (n < in.size && in.data[n])
        n++;
    if (n >= in.size)
        return 0;
    name->size = n - name->offset;
    return 1;
}

/* Offset in the section of the entry that an attribute refers to; 0: it is in no unit of it. */
static u64 entry_at(const struct unit *u, u64 form, u64 value)
{
    if (form == REF_ADDR)
        return value;
    return (form >= 0x11 && form <= 0x15) ? u->unit + value : 0;
}

static int read_values(struct cursor *c, const struct unit *u, const struct shape *shape, struct values *v)
{
    const struct attribute *attributes = (const struct attribute *)u->attributes + shape->first;
    v->has = v->original = v->is_moved = v->has_entry = 0;
    v->name = (struct name){ NOWHERE, 0, 0 };
    for (u64 n = 0; n < shape->count; n++) {
        u64 name = attributes[n].name, form = attributes[n].form, size, value;
        if (!attributes[n].is_read) {
            if (attributes[n].size < UNKNOWN)
                pass(c, attributes[n].size);
            else
                pass_value(c, u, form);
            continue;
        }
        size = attributes[n].size;
        if (is_alternative(form)) { /* to an entry that this file does not have */
            v->is_moved |= name == ORIGIN || name == SPECIFICATION;
            pass(c, size);
            continue;
        }
        v->has |= name == ENTRY ? 0 : BIT(name);
        if (form == 0x08) {
            u64 start = c->at;
            pass_value(c, u, form);
            if (name != NAME_OF || c->bad)
                return 0;
            v->name = (struct name){ INFO, start, c->at - 1 - start };
            continue;
        }
        if (form == IMPLICIT)
            value = attributes[n].constant;
        else if (is_leb(form))
            value = unsigned_leb(c);
        else if (size <= 8)
            value = fixed(c, size);
        else
            return 0;
        if (c->bad)
            return 0;
        if (is_address_number(form) && (name == LOW || name == HIGH || name == ENTRY)) {
            struct cursor t = { (const u8 *)u->addresses, 0, u->addresses_size, (int)u->big, 0 };
            if (value >= u->addresses_size / u->address)
                return 0;
            t.at = value * u->address;
            value = fixed(&t, u->address);
        }
        switch (name) {
        case SIBLING: v->sibling = value; break;
        case LOW: v->low = value; break;
        case HIGH:
            v->high = value;
            v->high_is_address = form == 0x01 || is_address_number(form);
            break;
        case BYTES: v->bytes = value; break;
        case LINE: v->line = value; break;
        case SPECIFICATION:
            v->specification = value;
            if (!v->original)
                v->original = entry_at(u, form, value);
            break;
        case ORIGIN: v->original = entry_at(u, form, value); break;
        case RANGES:
            v->ranges = value;
            v->ranges_form = form;
            break;
        case TABLE_OF_LINES: v->table_of_lines = value; break;
        case LISTS_BASE: v->lists_base = value; break;
        case ENTRY:
            v->entry = value;
            v->has_entry = form == 0x01 || is_address_number(form) ? 1 : 2;
            break;
        case NAME_OF:
            if (is_text_number(form)) {
                struct cursor t = { (const u8 *)u->texts, 0, u->texts_size, (int)u->big, 0 };
                if (value >= u->texts_size / u->word)
                    return 0;
                t.at = value * u->word;
                if (!text_at(u, STRINGS, fixed(&t, u->word), &v->name))
                    return 0;
            } else if (form == 0x0e || form == 0x1f) {
                if (!text_at(u, form == 0x0e ? STRINGS : LINE_STRINGS, value, &v->name))
                    return 0;
            } else if (is_alternative_text(form)) {
                if (!text_at(u, ALTERNATIVE, value, &v->name))
                    return 0;
            } else
                return 0;
        }
    }
    return !c->bad;
}

/* Reads an entry's number. Returns its shape, 0 for the end of a list of children; `bad` is set
 * where there is none.
 */
static const struct shape *next_entry(struct cursor *c, const struct unit *u)
{
    u64 code = unsigned_leb(c);
    if (c->bad || !code)
        return 0;
    const struct shape *shape = (const struct shape *)u->shapes + code;
    if (code >= u->shapes_room || !shape->known) {
        c->bad = 1;
        return 0;
    }
    return shape;
}

/* Goes on at a sibling: an offset in the unit, behind the entry that says it, at `start`. */
static void go_to(struct cursor *c, const struct unit *u, u64 start, u64 sibling)
{
    u64 next = u->unit + sibling;
    if (c->bad || next <= start || next > c->end)
        c->bad = 1;
    else
        c->at = next;
}

/* Passes an entry whose shape has a sibling, at `start`, and all that is in it. */
static void pass_all(struct cursor *c, const struct unit *u, u64 start, const struct shape *shape)
{
    pass(c, shape->sibling);
    go_to(c, u, start, fixed(c, 4));
}

/* Passes the attributes of an entry. */
static void pass_entry(struct cursor *c, const struct unit *u, const struct shape *shape)
{
    const struct attribute *a = (const struct attribute *)u->attributes + shape->first;
    if (shape->size != VARIES)
        pass(c, shape->size);
    else
        for (u64 n = 0; n < shape->count; n++)
            pass_value(c, u, a[n].form);
}

/* Passes what is in an entry whose attributes have been read. */
static void pass_children(struct cursor *c, const struct unit *u)
{
    for (u64 depth = 1; depth && !c->bad;) {
        u64 start = c->at;
        const struct shape *shape = next_entry(c, u);
        if (!shape) {
            depth--;
            continue;
        }
        if (shape->sibling != VARIES) {
            pass_all(c, u, start, shape);
            continue;
        }
        pass_entry(c, u, shape);
        depth += shape->children != 0;
    }
}

/* Reads a unit's own entry: what others count from. */
static void read_top(struct unit *u)
{
    struct cursor c = { (const u8 *)u->info, u->first, u->end, (int)u->big, 0 };
    const struct shape *shape = next_entry(&c, u);
    struct values v;
    u->has_top = 0;
    u->base = u->lists_base = 0;
    u->table_of_lines = VARIES;
    if (!shape || !read_values(&c, u, shape, &v))
        return;
    u->has_top = 1;
    if (v.has & BIT(LOW))
        u->base = v.low;
    if (v.has & BIT(LISTS_BASE))
        u->lists_base = v.lists_base;
    if (v.has & BIT(TABLE_OF_LINES))
        u->table_of_lines = v.table_of_lines;
}

/* --- ranges of code */

/* The ranges of an entry's code: one, or a list. next_piece() fills in `start` and `end`. */
struct pieces { struct cursor list; u64 start, end, base; int is_list, is_left; };

/* Begins to read the ranges of an entry. 0: it cannot be said here which it has. Source: DWARF 5,
 * sections 2.17 and 7.28.
 */
static int open_pieces(const struct unit *u, const struct values *v, struct pieces *p)
{
    struct cursor c = { (const u8 *)u->ranges, 0, u->ranges_size, (int)u->big, 0 };
    p->is_list = (v->has & BIT(RANGES)) != 0;
    if (!p->is_list) {
        p->is_left = v->has & BIT(LOW) && v->has & BIT(HIGH);
        p->start = v->low;
        p->end = v->high_is_address ? v->high : v->low + v->high;
        return 1;
    }
    u64 at = v->ranges;
    if (!u->has_top)
        return 0;
    if (v->ranges_form == 0x23) { /* a number of a list */
        if (u->version < 5 || at >= u->ranges_size || u->lists_base >= u->ranges_size)
            return 0;
        c.at = u->lists_base;
        pass(&c, at * u->word);
        at = u->lists_base + fixed(&c, u->word);
    }
    if (c.bad || at >= u->ranges_size)
        return 0;
    c.at = at;
    p->list = c;
    p->base = u->base;
    return 1;
}

static u64 address_of(struct cursor *c, const struct unit *u)
{
    struct cursor t = { (const u8 *)u->addresses, 0, u->addresses_size, (int)u->big, 0 };
    u64 number = unsigned_leb(c);
    if (number >= u->addresses_size / u->address) {
        c->bad = 1;
        return 0;
    }
    t.at = number * u->address;
    return fixed(&t, u->address);
}

/* 1: there is another range; 0: there is none, or `bad` is set in the list. */
static int next_piece(const struct unit *u, struct pieces *p)
{
    struct cursor *c = &p->list;
    if (!p->is_list) {
        int left = p->is_left;
        p->is_left = 0;
        return left;
    }
    for (;;) {
        u64 bias = 0;
        if (u->version < 5) {
            p->start = fixed(c, u->address);
            p->end = fixed(c, u->address);
            if (c->bad || (!p->start && !p->end))
                return 0;
            if (p->start == ~0ull >> (64 - 8 * u->address)) {
                p->base = p->end;
                continue;
            }
            bias = p->base;
        } else {
            switch (fixed(c, 1)) {
            case 0: return 0;
            case 1: p->base = address_of(c, u); continue;
            case 2: p->start = address_of(c, u); p->end = address_of(c, u); break;
            case 3: p->start = address_of(c, u); p->end = p->start + unsigned_leb(c); break;
            case 4:
                p->start = unsigned_leb(c);
                p->end = unsigned_leb(c);
                bias = p->base;
                break;
            case 5: p->base = fixed(c, u->address); continue;
            case 6: p->start = fixed(c, u->address); p->end = fixed(c, u->address); break;
            case 7:
                p->start = fixed(c, u->address);
                p->end = p->start + unsigned_leb(c);
                break;
            default: c->bad = 1;
            }
        }
        p->start += bias;
        p->end += bias;
        return !c->bad;
    }
}

static u64 mixed(u64 hash, u64 value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
    return hash ^ hash >> 29;
}

/* A text in a section of strings is known by its place: linkers keep one of each. Where there are
 * several, a type is noted twice, which does no harm. */
static u64 hash_of(const struct unit *u, const struct name *name)
{
    const u8 *data = (const u8 *)u->info;
    if (name->section != INFO)
        return mixed(mixed(name->section, name->offset), 0);
    u64 hash = name->size;
    for (u64 n = 0; n < name->size; n++)
        hash = mixed(hash, data[name->offset + n]);
    return hash;
}

/* 1: this type is not noted yet. */
static int is_new(struct unit *u, u64 hash)
{
    u64 *seen = (u64 *)u->seen;
    if (!u->seen_room)
        return 1;
    hash += !hash;
    u64 n = hash & (u->seen_room - 1);
    for (; seen[n]; n = (n + 1) & (u->seen_room - 1))
        if (seen[n] == hash)
            return 0;
    if (u->seen_count < u->seen_room / 4 * 3) {
        seen[n] = hash;
        u->seen_count++;
    }
    return 1;
}

/* The note of a declaration, or a free one, which may have another unit's. */
static struct declared *declaration(const struct unit *u, u64 offset)
{
    struct declared *all = (struct declared *)u->declared;
    u64 n = offset * 0x9E3779B97F4A7C15ull >> 20 & (u->declared_room - 1);
    while (all[n].offset >= u->first && all[n].offset < u->end && all[n].offset != offset)
        n = (n + 1) & (u->declared_room - 1);
    return &all[n];
}

/* Notes the ranges of a function's code; one of end 0, where its list cannot be read here. 0: there
 * is no room.
 */
static int note_function(struct unit *u, u64 start, const struct values *v)
{
    struct function *all = (struct function *)u->functions;
    u64 before = u->functions_count;
    struct pieces pieces;
    int is_read = open_pieces(u, v, &pieces);
    while (is_read && next_piece(u, &pieces)) {
        if (u->functions_count == u->functions_room)
            return 0;
        all[u->functions_count++] = (struct function){ pieces.start, pieces.end, start };
    }
    if (!is_read || (pieces.is_list && pieces.list.bad)) {
        u->functions_count = before;
        if (before == u->functions_room)
            return 0;
        all[u->functions_count++] = (struct function){ 0, 0, start };
    }
    return 1;
}

static long long walk(struct unit *u)
{
    struct scope *scopes = (struct scope *)u->scopes;
    struct cursor c = { (const u8 *)u->info, u->first, u->end, (int)u->big, 0 };
    u64 depth = 0, inside = 0, open = 0, declarations = 0;
    struct { u64 depth, scope; } around[DEEPEST];
    while (c.at < c.end) {
        u64 start = c.at;
        const struct shape *shape = next_entry(&c, u);
        if (c.bad)
            return NOT_HERE;
        if (!shape) {
            if (depth <= 1)
                break;
            depth--;
            if (inside && depth <= inside)
                inside = 0;
            if (open && depth <= around[open - 1].depth)
                open--;
            continue;
        }
        if (shape->sibling != VARIES && depth && !inside) {
            pass_all(&c, u, start, shape);
            if (c.bad)
                return NOT_HERE;
            continue;
        }
        int walked = u->deep && (shape->tag == SUBPROGRAM || shape->tag == BLOCK);
        if (inside || !(shape->interesting || walked)) {
            pass_entry(&c, u, shape);
            if (c.bad)
                return NOT_HERE;
            if (shape->children) {
                inside = inside ? inside : depth;
                depth++;
            }
            continue;
        }
        struct values v;
        if (!read_values(&c, u, shape, &v))
            return NOT_HERE;
        u64 scope = open ? around[open - 1].scope : 0;
        u64 hash = 0;
        int named = v.name.section != NOWHERE && v.name.size;
        if (shape->tag == SUBPROGRAM) {
            if (u->wanted & FUNCTIONS && !(v.has & BIT(DECLARATION)) && !note_function(u, start, &v))
                return NOT_HERE;
            v.name = (struct name){ NOWHERE, 0, 0 };
        } else if (u->wanted & TYPES) {
            hash = named ? hash_of(u, &v.name) : 0;
            if (v.has & BIT(DECLARATION)) {
                if (++declarations > u->declared_room / 2)
                    return NOT_HERE;
                *declaration(u, start) = (struct declared){ start, scope, hash, v.name };
            } else {
                u64 own = scope;
                if (v.has & BIT(SPECIFICATION)) {
                    const struct declared *d = declaration(u, u->unit + v.specification);
                    if (d->offset == u->unit + v.specification && d->scope <= u->scopes_count) {
                        own = d->scope;
                        if (!named) {
                            v.name = d->name;
                            hash = d->hash;
                            named = v.name.section != NOWHERE && v.name.size;
                        }
                    }
                }
                if (named && is_type(shape->tag) && !(u->deep && shape->tag == VARIABLE)) {
                    u64 bytes = v.has & BIT(BYTES) ? v.bytes : 0, line = v.has & BIT(LINE) ? v.line : 0;
                    u64 tag = shape->tag == CLASS ? STRUCTURE : shape->tag;
                    u64 all = mixed(mixed(mixed(mixed(own ? scopes[own - 1].hash : 0, hash), bytes), line), tag);
                    if (is_new(u, all)) {
                        if (!measure(u, &v.name))
                            return NOT_HERE;
                        if (!v.name.size)
                            goto noted;
                        struct type *t = (struct type *)u->types + u->types_count;
                        if (u->types_count == u->types_room)
                            return NOT_HERE;
                        *t = (struct type){ shape->tag, own, v.name.section, v.name.offset, v.name.size,
                                            start, bytes, line };
                        u->types_count++;
                    }
                }
            }
        }
noted:
        if (!shape->children)
            continue;
        if (is_scope(shape->tag)) {
            if (open == DEEPEST)
                return NOT_HERE;
            around[open].depth = depth;
            around[open].scope = scope;
            if (named && u->wanted & TYPES && !measure(u, &v.name))
                return NOT_HERE;
            if (named && u->wanted & TYPES && v.name.size) {
                if (u->scopes_count == u->scopes_room)
                    return NOT_HERE;
                u64 outer = scope ? scopes[scope - 1].hash : 1;
                scopes[u->scopes_count++] = (struct scope){
                    scope, v.name.section, v.name.offset, v.name.size, mixed(outer, hash) };
                around[open].scope = u->scopes_count;
            }
            open++;
        } else if (depth && !walked) {
            if (v.has & BIT(SIBLING)) {
                go_to(&c, u, start, v.sibling);
                if (c.bad)
                    return NOT_HERE;
                continue;
            }
            inside = depth;
        }
        depth++;
    }
    return DONE;
}

/* 1: what Python says of a unit is within its sections. */
static int is_sound(const struct unit *u)
{
    return u->first <= u->end && u->end <= u->info_size && u->address && u->address <= 8
        && (u->word == 4 || u->word == 8);
}

/* Reads what all walks of a unit need: its shapes, and its own entry. The greatest number of a
 * shape, for forget_shapes(); NOT_HERE and the like where it cannot be read.
 */
static long long begin_unit(struct unit *u)
{
    long long greatest = is_sound(u) ? read_shapes(u, ALL_SHAPES) : NOT_HERE;
    if (greatest >= 0)
        read_top(u);
    return greatest;
}

/* Reads a unit's own entry, and of its shapes that of this alone. Returns what begin_unit() does. */
static long long begin_top(struct unit *u)
{
    if (!is_sound(u))
        return NOT_HERE;
    struct cursor c = { (const u8 *)u->info, u->first, u->end, (int)u->big, 0 };
    u64 code = unsigned_leb(&c);
    long long greatest = c.bad || !code ? NOT_HERE : read_shapes(u, code);
    if (greatest >= 0)
        read_top(u);
    return greatest;
}

static void forget_shapes(struct unit *u, long long greatest)
{
    for (long long n = 0; n <= greatest; n++)
        ((struct shape *)u->shapes)[n].known = 0;
}

/* Finds the functions and types of a unit. DONE or NOT_HERE; then what was found is not all. */
EXPORT long long dwarf_unit(struct unit *u)
{
    long long greatest = begin_unit(u);
    if (greatest < 0)
        return greatest;
    long long done = walk(u);
    forget_shapes(u, greatest);
    return done;
}

/* --- inlined copies of functions of a name */

/* The note of an entry in `origins`, or a free one. */
static struct origin *origin(const struct unit *u, u64 offset)
{
    struct origin *all = (struct origin *)u->origins;
    u64 n = offset * 0x9E3779B97F4A7C15ull >> 20 & (u->origins_room - 1);
    while (all[n].offset && all[n].offset != offset)
        n = (n + 1) & (u->origins_room - 1);
    return &all[n];
}

static int is_asked(const struct unit *u, const struct name *name)
{
    struct bytes in = section_of(u, name->section);
    const u8 *asked = (const u8 *)u->asked;
    if (name->section == NOWHERE || in.size - name->offset <= u->asked_size)
        return 0;
    in.data += name->offset;
    for (u64 n = 0; n < u->asked_size; n++)
        if (in.data[n] != asked[n])
            return 0;
    u8 behind = in.data[u->asked_size];
    return !behind || (behind == '<' && u->templates);
}

#define DEEPEST_BLOCK 1024
/* What is open: an entry whose children are read. `function`: offset of the function's entry that
 * it is, or is in; 0: none. */
struct opened { int is_scope; struct name name; u64 function; };

/* Notes the scopes directly around an entry. Returns the innermost one's number, 0: there is none,
 * or VARIES: they cannot be noted. */
static u64 note_scopes(struct unit *u, struct opened *opened, u64 depth)
{
    struct scope *scopes = (struct scope *)u->scopes;
    u64 first = depth, scope = 0;
    while (first && opened[first - 1].is_scope)
        first--;
    for (u64 n = first; n < depth; n++) {
        struct name *name = &opened[n].name;
        if (name->section == NOWHERE)
            continue;
        if (u->scopes_count == u->scopes_room || !measure(u, name))
            return VARIES;
        if (!name->size)
            continue;
        scopes[u->scopes_count++] = (struct scope){ scope, name->section, name->offset, name->size, 0 };
        scope = u->scopes_count;
    }
    return scope;
}

/* Notes an entry of a function of the name, if it is not yet. 0: there is no room. */
static int note_origin(struct unit *u, u64 offset, u64 scope)
{
    struct origin *free = origin(u, offset);
    if (free->offset)
        return 1;
    if (scope == VARIES || u->origins_count >= u->origins_room / 2)
        return 0;
    *free = (struct origin){ offset, scope };
    u->origins_count++;
    return 1;
}

static int note_copy(struct unit *u, u64 offset, u64 function, u64 scope, const struct values *v)
{
    int begins = (v->has & BIT(LOW)) != 0;
    if (!v->has_entry && !begins && !(v->has & BIT(RANGES)))
        return 1; /* in the description of a function that has no code of its own */
    if (u->copies_count == u->copies_room)
        return 0;
    ((struct copy *)u->copies)[u->copies_count++] = (struct copy){
        offset, function, scope, v->has_entry == 1 || (begins && !v->has_entry),
        v->has_entry ? v->entry : v->low };
    return 1;
}

/* Notes entries of functions of the name, and the copies of those that are noted already. */
static long long walk_copies(struct unit *u)
{
    struct cursor c = { (const u8 *)u->info, u->first, u->end, (int)u->big, 0 };
    struct opened opened[DEEPEST_BLOCK];
    u64 depth = 0;
    u->copies_count = 0;
    while (c.at < c.end) {
        u64 start = c.at;
        const struct shape *shape = next_entry(&c, u);
        if (c.bad)
            return NOT_HERE;
        if (!shape) {
            if (depth <= 1)
                break;
            depth--;
            continue;
        }
        struct opened *around = depth ? &opened[depth - 1] : 0;
        struct opened self = { 0, { NOWHERE, 0, 0 }, around ? around->function : 0 };
        if (shape->tag == SUBPROGRAM || shape->tag == INLINED || is_scope(shape->tag)) {
            struct values v;
            if (!read_values(&c, u, shape, &v))
                return NOT_HERE;
            if (v.is_moved && !is_scope(shape->tag))
                return NOT_HERE;
            struct origin *original = v.original ? origin(u, v.original) : 0;
            if (is_scope(shape->tag)) {
                self.is_scope = 1;
                self.name = v.name;
            } else if (original && original->offset) {
                if (shape->tag == SUBPROGRAM ? !note_origin(u, start, original->scope)
                    : !note_copy(u, start, self.function, original->scope, &v))
                    return NOT_HERE;
            } else if (shape->tag == SUBPROGRAM && !original && is_asked(u, &v.name)
                       && !origin(u, start)->offset) {
                if (!note_origin(u, start, note_scopes(u, opened, depth)))
                    return NOT_HERE;
            }
            if (shape->tag == SUBPROGRAM)
                self.function = start;
        } else if (shape->sibling != VARIES) {
            pass_all(&c, u, start, shape);
            if (c.bad)
                return NOT_HERE;
            continue;
        } else
            pass_entry(&c, u, shape);
        if (c.bad)
            return NOT_HERE;
        if (!shape->children)
            continue;
        if (depth == DEEPEST_BLOCK)
            return NOT_HERE;
        opened[depth++] = self;
    }
    return DONE;
}

/* Finds the inlined copies that a unit has of functions of a name. DONE or NOT_HERE. An entry may
 * refer to one behind it: the unit is read again until no function is new. */
EXPORT long long dwarf_copies(struct unit *u)
{
    if (!is_sound(u) || !u->origins_room)
        return NOT_HERE;
    long long greatest = read_shapes(u, ALL_SHAPES), done;
    u64 before;
    if (greatest < 0)
        return greatest;
    do {
        before = u->origins_count;
        done = walk_copies(u);
    } while (done == DONE && u->origins_count != before);
    forget_shapes(u, greatest);
    return done;
}

/* --- functions and inlined copies around addresses */

/* The name that an entry has, by itself or by the entry that it is a copy or the definition of: it
 * is ELSEWHERE where that is in another unit, or its name is in a form that is not read here.
 */
static struct name name_of(const struct unit *u, u64 offset)
{
    for (int hops = 0;; hops++) {
        struct cursor c = { (const u8 *)u->info, offset, u->end, (int)u->big, 0 };
        struct name elsewhere = { ELSEWHERE, offset, 0 };
        struct values v;
        if (offset < u->first || offset >= u->end)
            return elsewhere;
        const struct shape *shape = next_entry(&c, u);
        if (!shape || !read_values(&c, u, shape, &v) || v.is_moved)
            return elsewhere;
        if (hops == 8 || !(v.has & (BIT(ORIGIN) | BIT(SPECIFICATION))))
            return v.name.section == NOWHERE || measure(u, &v.name) ? v.name : elsewhere;
        if (!v.original) /* not in this section, or not told as an offset */
            return elsewhere;
        offset = v.original;
    }
}

/* Where a function is entered, and its name. 0: it has no code or no name, or it cannot be said
 * here.
 */
static int enter(const struct unit *u, const struct values *v, struct place *place)
{
    struct pieces pieces;
    if (!open_pieces(u, v, &pieces) || !next_piece(u, &pieces))
        return 0;
    place->start = v->has_entry == 1 ? v->entry : pieces.start;
    place->end = pieces.end;
    do {
        if (pieces.start <= place->start && place->start < pieces.end) {
            place->end = pieces.end;
            break;
        }
    } while (next_piece(u, &pieces));
    if (pieces.is_list && pieces.list.bad)
        return 0;
    place->name = name_of(u, place->function);
    return place->name.section == ELSEWHERE || place->name.size;
}

/* An entry whose children are read: which places are in its code, as numbers in `held`; the
 * innermost inlined copy that it is, or is in, 0: none.
 */
struct level { u64 first, count, block; };

/* Notes behind the places that are held those of an entry's code. Returns how many; NOT_HERE. */
static long long hold(struct unit *u, struct place *places, const struct level *around, u64 start,
                      const struct values *v)
{
    u32 *held = (u32 *)u->held;
    u64 first = around->first + around->count, count = 0;
    struct pieces pieces;
    if (!open_pieces(u, v, &pieces))
        return NOT_HERE;
    while (next_piece(u, &pieces)) {
        for (u64 n = 0; n < around->count; n++) {
            struct place *place = &places[held[around->first + n]];
            if (place->address < pieces.start || place->address >= pieces.end
                || place->last == start)
                continue;
            if (first + count == u->held_room)
                return NOT_HERE;
            place->last = start;
            held[first + count++] = held[around->first + n];
        }
    }
    return pieces.is_list && pieces.list.bad ? NOT_HERE : (long long)count;
}

/* Finds what is around places of one function. An address is in the last of the entries beside
 * each other that have it, as Python has it.
 */
static long long walk_places(struct unit *u, struct place *places, u64 count)
{
    struct cursor c = { (const u8 *)u->info, places->function, u->end, (int)u->big, 0 };
    struct level levels[DEEPEST_BLOCK];
    u32 *held = (u32 *)u->held;
    u64 depth = 0;
    struct values v;
    if (places->function < u->first || places->function >= u->end || count > u->held_room)
        return NOT_HERE;
    const struct shape *shape = next_entry(&c, u);
    if (!shape || shape->tag != SUBPROGRAM || !read_values(&c, u, shape, &v)
        || !enter(u, &v, places))
        return NOT_HERE;
    for (u64 n = 0; n < count; n++) {
        held[n] = (u32)n;
        places[n].start = places->start;
        places[n].end = places->end;
        places[n].name = places->name;
        places[n].block = places[n].last = 0;
    }
    levels[0] = (struct level){ 0, count, 0 };
    depth = shape->children != 0;
    while (depth) {
        u64 start = c.at;
        struct level *around = &levels[depth - 1];
        shape = next_entry(&c, u);
        if (c.bad)
            return NOT_HERE;
        if (!shape) {
            depth--;
            continue;
        }
        if (shape->tag != BLOCK && shape->tag != INLINED) {
            if (shape->sibling != VARIES)
                pass_all(&c, u, start, shape);
            else {
                pass_entry(&c, u, shape);
                if (shape->children)
                    pass_children(&c, u);
            }
            if (c.bad)
                return NOT_HERE;
            continue;
        }
        if (!read_values(&c, u, shape, &v))
            return NOT_HERE;
        long long found = hold(u, places, around, start, &v);
        if (found < 0)
            return found;
        struct level self = { around->first + around->count, (u64)found,
                              shape->tag == INLINED ? start : around->block };
        for (u64 n = 0; n < self.count; n++)
            places[held[self.first + n]].block = self.block;
        if (!shape->children)
            continue;
        if (found) {
            if (depth == DEEPEST_BLOCK)
                return NOT_HERE;
            levels[depth++] = self;
            continue;
        }
        if (v.has & BIT(SIBLING))
            go_to(&c, u, start, v.sibling);
        else
            pass_children(&c, u);
        if (c.bad)
            return NOT_HERE;
    }
    for (u64 n = 0; n < count; n++) {
        struct place *place = &places[n];
        if (n && place->block == places[n - 1].block)
            place->inlined = places[n - 1].inlined;
        else if (place->block)
            place->inlined = name_of(u, place->block);
        place->is_known = 1;
    }
    return DONE;
}

/* Finds the functions and inlined copies around addresses of a unit, those of one function beside
 * each other. DONE, and is_known is 0 where it cannot be said here; or NOT_HERE.
 */
EXPORT long long dwarf_places(struct unit *u)
{
    struct place *places = (struct place *)u->places;
    long long greatest = begin_unit(u);
    if (greatest < 0)
        return greatest;
    for (u64 n = 0, next; n < u->places_count; n = next) {
        for (next = n + 1; next < u->places_count; next++)
            if (places[next].function != places[n].function)
                break;
        walk_places(u, places + n, next - n);
    }
    forget_shapes(u, greatest);
    return DONE;
}

/* --- lines */

/* What dwarf_lines() is told: where a program of lines is, and its header's facts; `files`: a set
 * of MOST_FILES bits, of the numbers of files that are wanted, 0: all are; `line`: the line that is
 * wanted, 0: all are. And what it has found: struct line for each row that has code, or begins a
 * statement where the next one does, too; how many fit, how many there are. */
#define PROGRAM_WORDS(X) \
    X(data) X(start) X(end) X(big) X(address) X(least) X(is_stmt) X(line_base) X(line_range) \
    X(opcode_base) X(rows) X(rows_room) X(rows_count) X(files) X(line)
EXPORT const char program_words[] = PROGRAM_WORDS(NAME);
struct program { PROGRAM_WORDS(WORD) };
struct line { u64 start, end, file, line, is_stmt; };
#define MOST_FILES 65536

static int is_wanted(const struct program *p, const struct line *row)
{
    const u64 *files = (const u64 *)p->files;
    if (p->line && row->line != p->line)
        return 0;
    return !files || (row->file < MOST_FILES && files[row->file / 64] >> row->file % 64 & 1);
}

EXPORT long long dwarf_lines(struct program *p)
{
    struct cursor c = { (const u8 *)p->data, p->start, p->end, (int)p->big, 0 };
    struct line *rows = (struct line *)p->rows;
    u64 address = 0, file = 1, line = 1, is_stmt = p->is_stmt, is_stmt_here;
    struct line before = { 0, 0, 0, 0, 0 }; /* of line 0: there is none */
    p->rows_count = 0;
    if (!p->line_range || p->opcode_base > 255 || !p->address || p->address > 8)
        return NOT_HERE;
    u64 further[256], lower[256]; /* by opcode: what it adds to the address, and to the line */
    for (u64 n = p->opcode_base; n < 256; n++) {
        further[n] = p->least * ((n - p->opcode_base) / p->line_range);
        lower[n] = p->line_base + (n - p->opcode_base) % p->line_range;
    }
    while (c.at < c.end) {
        u64 opcode = c.data[c.at++], row = 0, ends = 0;
        if (opcode >= p->opcode_base) {
            address += further[opcode];
            line += lower[opcode];
            row = 1;
        } else if (!opcode) {
            u64 size = unsigned_leb(&c), what = fixed(&c, 1);
            if (c.bad || !size)
                return NOT_HERE;
            if (what == 1)
                row = ends = 1;
            else if (what == 2) {
                if (size != p->address + 1)
                    return NOT_HERE;
                address = fixed(&c, p->address);
            } else if (what == 4)
                unsigned_leb(&c);
            else if (what == 3)
                return NOT_HERE; /* another file, which Python notes */
            else
                pass(&c, size - 1);
        } else {
            switch (opcode) {
            case 1: row = 1; break;
            case 2: address += unsigned_leb(&c) * p->least; break;
            case 3: line += (u64)signed_leb(&c); break;
            case 4: file = unsigned_leb(&c); break;
            case 5: case 12: unsigned_leb(&c); break;
            case 6: is_stmt = !is_stmt; break;
            case 7: case 10: case 11: break;
            case 8: address += (255 - p->opcode_base) / p->line_range * p->least; break;
            case 9: address += fixed(&c, 2); break;
            default: return NOT_HERE;
            }
        }
        if (c.bad || line >> 32)
            return NOT_HERE;
        if (row) {
            u64 here = before.line && before.start == address && !ends;
            u64 again = here && before.file == file && before.line == line;
            /* GCC has rows of an address in a row: statements of which no code is left */
            u64 kept = before.start < address || (here && before.is_stmt && !again);
            if (before.line && kept && is_wanted(p, &before)) {
                if (p->rows_count == p->rows_room)
                    return NOT_HERE;
                rows[p->rows_count] = before;
                rows[p->rows_count++].end = address;
            }
            is_stmt_here = is_stmt || (again && before.is_stmt);
            before = (struct line){ address, 0, file, line, is_stmt_here };
        }
        if (ends) {
            before.line = 0;
            address = 0;
            file = line = 1;
            is_stmt = p->is_stmt;
        }
    }
    return DONE;
}

/* A directory's or file's name in the header of a table of lines, and the number of the directory
 * that it is in.
 */
struct file { struct name name; u64 directory; };

/* What describes a directory or file in DWARF 5: pairs of what is told and its form. */
struct format { u64 count, what[8], form[8]; };

static void read_format(struct cursor *c, struct format *format)
{
    format->count = fixed(c, 1);
    if (format->count > 8)
        c->bad = 1;
    for (u64 n = 0; n < format->count && !c->bad; n++) {
        format->what[n] = unsigned_leb(c);
        format->form[n] = unsigned_leb(c);
    }
}

/* Reads a text that stands in the section of lines. */
static void read_own(struct cursor *c, struct name *name)
{
    u64 start = c->at;
    while (c->at < c->end && c->data[c->at])
        c->at++;
    *name = (struct name){ LINES, start, c->at - start };
    pass(c, 1);
}

static void read_file(struct cursor *c, const struct unit *u, const struct format *format, u64 word,
                      struct file *file)
{
    *file = (struct file){ { NOWHERE, 0, 0 }, 0 };
    for (u64 n = 0; n < format->count && !c->bad; n++) {
        u64 form = format->form[n];
        if (format->what[n] == 1) {
            if (form == 0x08)
                read_own(c, &file->name);
            else if (form == 0x0e || form == 0x1f) {
                if (!text_at(u, form == 0x0e ? STRINGS : LINE_STRINGS, fixed(c, word), &file->name))
                    c->bad = 1;
            } else
                c->bad = 1;
        } else if (format->what[n] == 2 && (form == 0x0b || form == 0x05))
            file->directory = fixed(c, form == 0x0b ? 1 : 2);
        else if (format->what[n] == 2 && form == 0x0f)
            file->directory = unsigned_leb(c);
        else if (format->what[n] == 2)
            c->bad = 1;
        else if (form == 0x0e || form == 0x17 || form == 0x1f)
            pass(c, word); /* which may not be the unit's */
        else
            pass_value(c, u, form);
    }
}

/* Takes `wanted` off the end of a text; 0: the text ends otherwise. `size` is what is left of
 * `wanted`. Of the text is left what `*from` says.
 */
static int ends_in(const struct unit *u, struct name *name, u64 *size, u64 *from)
{
    const u8 *wanted = (const u8 *)u->asked;
    struct bytes in = section_of(u, name->section);
    u64 n;
    if (!measure(u, name))
        return 0;
    for (n = name->size; n && *size; n--, --*size)
        if (in.data[name->offset + n - 1] != wanted[*size - 1])
            return 0;
    *from = n;
    return 1;
}

/* The directory of a number in a header; 0: there is none. */
static int directory_of(const struct unit *u, struct cursor c, const struct format *format, u64 word,
                        u64 number, struct file *found)
{
    for (u64 n = 0; n <= number; n++) {
        if (format)
            read_file(&c, u, format, word, found);
        else
            read_own(&c, &found->name);
        if (c.bad || (!format && !found->name.size))
            return 0;
    }
    return 1;
}

static u8 byte_at(const struct unit *u, const struct name *name, u64 n)
{
    return section_of(u, name->section).data[name->offset + n];
}

/* 1: a file's path ends in the path that is asked for, component by component. `directory` is 0
 * where the file's name is its path.
 */
static int is_at(const struct unit *u, struct file *file, struct file *directory)
{
    u64 size = u->asked_size, left;
    const u8 *asked = (const u8 *)u->asked;
    if (!ends_in(u, &file->name, &size, &left))
        return 0;
    if (left)
        return !size && byte_at(u, &file->name, left - 1) == '/';
    if (!size)
        return 1;
    if (!directory || asked[--size] != '/' || !ends_in(u, &directory->name, &size, &left))
        return 0;
    return !size && (!left || byte_at(u, &directory->name, left - 1) == '/');
}

/* Finds the code of a source file's lines in a unit. DONE or NOT_HERE. Source: DWARF 5, section
 * 6.2.4.
 */
static long long find_lines(struct unit *u)
{
    struct cursor c = { (const u8 *)u->lines, u->table_of_lines, u->lines_size, (int)u->big, 0 };
    u64 files[MOST_FILES / 64];
    for (u64 n = 0; n < MOST_FILES / 64; n++)
        *(volatile u64 *)&files[n] = 0; /* the library has no memset() to call */
    struct program p = { 0 };
    struct format of_directories = { 0 }, of_files = { 0 };
    u64 word = 4, some = 0, directories_count = 0;
    if (c.at >= c.end)
        return NOT_HERE;
    u64 size = fixed(&c, 4);
    if (size == 0xffffffff) {
        word = 8;
        size = fixed(&c, 8);
    }
    if (c.bad || size > c.end - c.at)
        return NOT_HERE;
    p.end = c.end = c.at + size;
    u64 version = fixed(&c, 2);
    if (version < 2 || version > 5)
        return NOT_HERE;
    p.address = version < 5 ? u->address : fixed(&c, 1);
    if (version >= 5)
        fixed(&c, 1);
    u64 header = fixed(&c, word);
    if (c.bad || header > c.end - c.at)
        return NOT_HERE;
    p.start = c.at + header;
    p.least = fixed(&c, 1);
    if (version >= 4 && fixed(&c, 1) != 1)
        return NOT_HERE;
    p.is_stmt = fixed(&c, 1) != 0;
    p.line_base = (u64)(long long)(signed char)fixed(&c, 1);
    p.line_range = fixed(&c, 1);
    p.opcode_base = fixed(&c, 1);
    if (!p.opcode_base)
        return NOT_HERE;
    pass(&c, p.opcode_base - 1);
    struct file file, directory;
    if (version >= 5) {
        read_format(&c, &of_directories);
        directories_count = unsigned_leb(&c);
    }
    struct cursor directories = c;
    if (version < 5) {
        for (directories_count = 0; !c.bad; directories_count++) {
            read_own(&c, &file.name);
            if (!file.name.size)
                break;
        }
    } else
        for (u64 n = 0; n < directories_count && !c.bad; n++)
            read_file(&c, u, &of_directories, word, &file);
    u64 first = version < 5, count = VARIES;
    if (version >= 5) {
        read_format(&c, &of_files);
        count = unsigned_leb(&c);
    }
    for (u64 n = 0; n < count && !c.bad; n++) {
        if (version < 5) {
            read_own(&c, &file.name);
            if (!file.name.size)
                break;
            file.directory = unsigned_leb(&c);
            unsigned_leb(&c);
            unsigned_leb(&c);
        } else
            read_file(&c, u, &of_files, word, &file);
        if (c.bad || n + first >= MOST_FILES || !measure(u, &file.name))
            return NOT_HERE;
        struct name *name = &file.name;
        u64 size = u->asked_size, left;
        struct name tried = *name;
        if (!ends_in(u, &tried, &size, &left))
            continue;
        /* a path of its own; and DWARF 5 calls the compilation's directory 0 */
        int alone = (name->size && byte_at(u, name, 0) == '/') || file.directory < 1
            || file.directory - first >= directories_count;
        if (!alone && !directory_of(u, directories, version < 5 ? 0 : &of_directories, word,
                                    file.directory - first, &directory))
            return NOT_HERE;
        if (is_at(u, &file, alone ? 0 : &directory)) {
            files[(n + first) / 64] |= 1ull << (n + first) % 64;
            some = 1;
        }
    }
    if (c.bad)
        return NOT_HERE;
    if (!some)
        return DONE;
    p.data = u->lines;
    p.big = u->big;
    p.rows = u->rows;
    p.rows_room = u->rows_room;
    p.files = (u64)files;
    p.line = u->line;
    long long done = dwarf_lines(&p);
    u->rows_count = p.rows_count;
    return done;
}

EXPORT long long dwarf_source(struct unit *u)
{
    u->rows_count = 0;
    long long greatest = begin_top(u);
    if (greatest < 0)
        return greatest;
    forget_shapes(u, greatest);
    if (!u->has_top)
        return NOT_HERE;
    return u->table_of_lines == VARIES ? DONE : find_lines(u);
}

/* --- .debug_aranges */

/* What dwarf_ranges() is told: the section; and what it has found: struct range by address, how
 * many fit, how many there are. */
#define LISTING_WORDS(X) X(data) X(data_size) X(big) X(ranges) X(ranges_room) X(ranges_count)
EXPORT const char listing_words[] = LISTING_WORDS(NAME);
struct listing { LISTING_WORDS(WORD) };
struct range { u64 start, end, unit; };

static int is_before(const struct range *a, const struct range *b)
{
    if (a->start != b->start)
        return a->start < b->start;
    return a->end != b->end ? a->end < b->end : a->unit < b->unit;
}

/* Lets a range sink to its place in a heap, in which the greatest is the first. */
static void sink(struct range *all, u64 at, u64 count)
{
    struct range moved = all[at];
    for (u64 next; (next = 2 * at + 1) < count; at = next) {
        if (next + 1 < count && is_before(&all[next], &all[next + 1]))
            next++;
        if (!is_before(&moved, &all[next]))
            break;
        all[at] = all[next];
    }
    all[at] = moved;
}

static void sort(struct range *all, u64 count)
{
    for (u64 n = count / 2; n-- > 0;)
        sink(all, n, count);
    for (u64 n = count; n-- > 1;) {
        struct range last = all[n];
        all[n] = all[0];
        all[0] = last;
        sink(all, 0, n);
    }
}

/* Reads all ranges; tables behind a damaged one are left out. Source: DWARF 5, section 6.1.2. */
EXPORT long long dwarf_ranges(struct listing *l)
{
    struct range *all = (struct range *)l->ranges;
    u64 at = 0;
    while (l->data_size - at >= 12) {
        struct cursor c = { (const u8 *)l->data, at, l->data_size, (int)l->big, 0 };
        u64 length = fixed(&c, 4), word = 4;
        if (length == 0xffffffff) {
            length = fixed(&c, 8);
            word = 8;
        }
        if (length > l->data_size - c.at || length < 4 + word)
            break;
        u64 end = c.at + length;
        c.end = end;
        pass(&c, 2);
        u64 unit = fixed(&c, word), size = fixed(&c, 1), segment = fixed(&c, 1);
        if ((size == 4 || size == 8) && !segment) {
            u64 row = 2 * size;
            pass(&c, (row - (c.at - at) % row) % row);
            while (!c.bad && end - c.at >= row) {
                u64 start = fixed(&c, size), bytes = fixed(&c, size);
                if (!bytes)
                    continue;
                if (start + bytes < start || l->ranges_count == l->ranges_room)
                    return NOT_HERE; /* Python's numbers have more bits */
                all[l->ranges_count++] = (struct range){ start, start + bytes, unit };
            }
        }
        at = end;
    }
    sort(all, l->ranges_count);
    return DONE;
}
