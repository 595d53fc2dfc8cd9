#include "jit/trim.h"

#include "base/hash.h"
#include "base/host.h"
#include "jit/text_conditions.h"

#include <ctype.h>
#include <string.h>

/* An identifier of the text. */
struct word {
    struct gni_slice text;
    bool is_named;  /* a part that is kept names it */
    bool is_type;   /* a typedef or a struct without arguments defines it */
    int part_count; /* that define it */
};

enum part_kind {
    PART_DEFINITION,
    PART_CONDITION, /* "#if", which the compiler decides */
    PART_ELSE,      /* or "#elif" */
    PART_CONDITION_END,
};

/* Ranges of words: all that the part has, those that it defines, and the types that its overload or specialization is for. */
struct range {
    int begin, end;
};

struct part {
    struct gni_slice text;
    enum part_kind kind;
    struct range words, names, types;
    bool is_special; /* a specialization of a template */
    bool is_kernel;
    bool is_kept;
};

struct trimmer {
    const char *at;     /* what is read next */
    struct word *words; /* a hash table of `capacity`, a power of two; unused: length 0 */
    size_t capacity;
    int *ranges; /* places in `words` */
    int range_count, range_most;
    struct part *parts;
    int part_count, part_most;
    bool has_failed;
};

/* ---- words ------------------------------------------------------------------------------------------ */

/* The place of a word; it is added if it is new. There are twice as many places as words. */
static int word_place(struct trimmer *trimmer, struct gni_slice text)
{
    size_t mask = trimmer->capacity - 1;
    size_t place = (size_t)gni_hash_bytes(text.at, text.length, 0) & mask;
    for (;; place = (place + 1) & mask) {
        struct word *word = &trimmer->words[place];
        if (word->text.length == 0)
            word->text = text;
        if (word->text.length == text.length && memcmp(word->text.at, text.at, text.length) == 0)
            return (int)place;
    }
}

/* Adds a word to the list that is last in `ranges`. */
static void range_add(struct trimmer *trimmer, struct range *range, struct gni_slice text)
{
    if (trimmer->range_count == trimmer->range_most) {
        trimmer->has_failed = true;
        return;
    }
    trimmer->ranges[trimmer->range_count++] = word_place(trimmer, text);
    range->end = trimmer->range_count;
}

static struct range range_begin(const struct trimmer *trimmer)
{
    return (struct range){trimmer->range_count, trimmer->range_count};
}

/* ---- tokens ----------------------------------------------------------------------------------------- */

/* An identifier, a number, a string, a character or one letter of anything else; empty at the end. */
static struct gni_slice token_at(const char *at)
{
    at += strspn(at, " \t\n\\");
    struct gni_slice token = {at, 1};
    if (*at == '\0') {
        token.length = 0;
    } else if (isalnum((unsigned char)*at) || *at == '_') {
        while (isalnum((unsigned char)at[token.length]) || at[token.length] == '_')
            token.length++;
    } else if (*at == '"' || *at == '\'') {
        while (at[token.length] != *at && at[token.length] != '\0')
            token.length += at[token.length] == '\\' && at[token.length + 1] != '\0' ? 2 : 1;
        token.length += at[token.length] != '\0';
    }
    return token;
}

static struct gni_slice token_after(struct gni_slice token)
{
    return token_at(token.at + token.length);
}

static bool is_identifier(struct gni_slice token)
{
    return token.length > 0 && (isalpha((unsigned char)*token.at) || *token.at == '_');
}

static bool is_letter(struct gni_slice token, char letter)
{
    return token.length == 1 && *token.at == letter;
}

/* The token that closes what a bracket opens, in which brackets of its kind are in pairs; the end if none does. Angles
 * within parentheses are comparisons. */
static struct gni_slice closing(struct gni_slice token)
{
    const char open = *token.at;
    const char close = open == '(' ? ')' : open == '{' ? '}' : open == '[' ? ']' : '>';
    int depth = 0, inside = 0;
    for (; token.length > 0; token = token_after(token)) {
        if (open == '<')
            inside += is_letter(token, '(') - is_letter(token, ')');
        if (inside > 0)
            continue;
        depth += is_letter(token, open) - is_letter(token, close);
        if (depth == 0)
            return token;
    }
    return token;
}

/* ---- parts ------------------------------------------------------------------------------------------- */

/* Where a part that begins with this token ends: behind ";" or behind a body. */
static const char *part_end(struct gni_slice token)
{
    bool is_typedef = gni_slice_is(token, "typedef");
    while (token.length > 0 && !is_letter(token, ';')) {
        bool is_body = is_letter(token, '{');
        if (is_body || is_letter(token, '(') || is_letter(token, '['))
            token = closing(token);
        struct gni_slice next = token_after(token);
        if (is_body && !is_typedef && !is_letter(next, ';'))
            return token.at + token.length;
        token = next;
    }
    return token.at + token.length;
}

/* All identifiers between two places. */
static struct range words_read(struct trimmer *trimmer, struct gni_slice text)
{
    struct range range = range_begin(trimmer);
    struct gni_slice token = token_at(text.at);
    for (; token.length > 0 && token.at < text.at + text.length; token = token_after(token))
        if (is_identifier(token))
            range_add(trimmer, &range, token);
    return range;
}

/* The names of an enum: its own, and those behind "{" and ",". */
static void enum_read(struct trimmer *trimmer, struct part *part, struct gni_slice token)
{
    const char *end = part->text.at + part->text.length;
    bool is_name = true;
    for (; token.length > 0 && token.at < end; token = token_after(token)) {
        if (is_name && is_identifier(token))
            range_add(trimmer, &part->names, token);
        is_name = is_letter(token, '{') || is_letter(token, ',');
    }
}

/* The name of a type that is defined: what stands last before ";". */
static void typedef_read(struct trimmer *trimmer, struct part *part, struct gni_slice token)
{
    struct gni_slice name = token;
    const char *end = part->text.at + part->text.length;
    for (; token.length > 0 && token.at < end; token = token_after(token)) {
        if (is_letter(token, '[') || is_letter(token, '{'))
            token = closing(token);
        else if (is_identifier(token))
            name = token;
    }
    range_add(trimmer, &part->names, name);
    trimmer->words[word_place(trimmer, name)].is_type = true;
}

/* The types in brackets, for which an overload or a specialization is. */
static void types_read(struct trimmer *trimmer, struct part *part, struct gni_slice open)
{
    struct gni_slice close = closing(open);
    for (struct gni_slice token = open; token.length > 0 && token.at < close.at;
         token = token_after(token))
        if (is_identifier(token))
            range_add(trimmer, &part->types, token);
}

/* A struct, a function or a variable: the name is an identifier before "{", ":", "(", "[", "=" or ";", or before the
 * arguments of a template that is specialized. */
static void declaration_read(struct trimmer *trimmer, struct part *part, struct gni_slice token,
                             bool is_template)
{
    bool is_struct = false, has_arguments = false;
    struct gni_slice name = {token.at, 0}, arguments = name;
    for (; token.length > 0 && !is_letter(token, ';'); token = token_after(token)) {
        if (is_letter(token, '(') && name.length > 2 && memcmp(name.at, "__", 2) == 0) {
            token = closing(token); /* of an attribute */
            continue;
        }
        if (is_letter(token, '{') || is_letter(token, '(') || is_letter(token, '[') ||
            is_letter(token, '=') || is_letter(token, ':'))
            break;
        if (is_letter(token, '<')) {
            arguments = token;
            token = closing(token);
            has_arguments = true;
            if (is_letter(token_after(token), ':') && !is_struct)
                token = token_after(token_after(token)); /* a type that is in another */
            continue;
        }
        is_struct |= gni_slice_is(token, "struct") || gni_slice_is(token, "union");
        if (is_identifier(token)) {
            name = token;
            has_arguments = false;
        }
    }
    if (name.length == 0)
        return;
    range_add(trimmer, &part->names, name);
    if (is_struct && !is_template)
        trimmer->words[word_place(trimmer, name)].is_type = true;
    part->types = range_begin(trimmer);
    if (has_arguments)
        types_read(trimmer, part, arguments);
    if (is_letter(token, '(') && !is_struct)
        types_read(trimmer, part, token);
}

static void names_read(struct trimmer *trimmer, struct part *part)
{
    struct gni_slice token = token_at(part->text.at);
    part->names = part->types = range_begin(trimmer);
    if (is_letter(token, '#')) {
        token = token_after(token);
        if (gni_slice_is(token, "define"))
            range_add(trimmer, &part->names, token_after(token));
    } else if (gni_slice_is(token, "enum")) {
        enum_read(trimmer, part, token_after(token));
    } else if (gni_slice_is(token, "typedef")) {
        typedef_read(trimmer, part, token);
    } else {
        bool is_template = gni_slice_is(token, "template");
        if (is_template) {
            struct gni_slice open = token_after(token);
            token = closing(open);
            part->is_special = is_letter(token_after(open), '>');
            token = token_after(token);
        }
        declaration_read(trimmer, part, token, is_template);
    }
    for (int i = part->names.begin; i < part->names.end; i++)
        trimmer->words[trimmer->ranges[i]].part_count++;
}

static enum part_kind kind_of(struct gni_slice line)
{
    struct gni_slice word = token_after(token_at(line.at));
    if (gni_slice_is(word, "if") || gni_slice_is(word, "ifdef") || gni_slice_is(word, "ifndef"))
        return PART_CONDITION;
    if (gni_slice_is(word, "else") || gni_slice_is(word, "elif"))
        return PART_ELSE;
    return gni_slice_is(word, "endif") ? PART_CONDITION_END : PART_DEFINITION;
}

/* The next part, with the end of its line; false at the end of the text. */
static bool part_read(struct trimmer *trimmer)
{
    struct gni_slice first = token_at(trimmer->at);
    if (first.length == 0 || trimmer->has_failed)
        return false;
    if (trimmer->part_count == trimmer->part_most) {
        trimmer->has_failed = true;
        return false;
    }
    struct part *part = &trimmer->parts[trimmer->part_count++];
    const char *end;
    if (is_letter(first, '#'))
        for (end = first.at + strcspn(first.at, "\n"); *end == '\n' && end[-1] == '\\';)
            end += 1 + strcspn(end + 1, "\n");
    else
        end = part_end(first);
    part->text = (struct gni_slice){first.at, (size_t)(end - first.at)};
    part->kind = is_letter(first, '#') ? kind_of(part->text) : PART_DEFINITION;
    trimmer->at = end;
    if (part->kind == PART_DEFINITION)
        names_read(trimmer, part);
    part->words = words_read(trimmer, part->text);
    for (int i = part->words.begin; i < part->words.end; i++)
        part->is_kernel |= gni_slice_is(trimmer->words[trimmer->ranges[i]].text, "__global__") &&
                           !is_letter(first, '#');
    return true;
}

/* ---- what is kept -------------------------------------------------------------------------------------- */

static bool is_wanted(const struct trimmer *trimmer, const struct part *part)
{
    bool is_named = part->names.begin == part->names.end, is_one_of_several = part->is_special;
    for (int i = part->names.begin; i < part->names.end; i++) {
        const struct word *word = &trimmer->words[trimmer->ranges[i]];
        is_named |= word->is_named;
        is_one_of_several |= word->part_count > 1;
    }
    if (!is_named || !is_one_of_several)
        return is_named;
    for (int i = part->types.begin; i < part->types.end; i++) {
        const struct word *word = &trimmer->words[trimmer->ranges[i]];
        if (word->is_type && !word->is_named)
            return false;
    }
    return true;
}

static void part_keep(struct trimmer *trimmer, struct part *part)
{
    part->is_kept = true;
    for (int i = part->words.begin; i < part->words.end; i++)
        trimmer->words[trimmer->ranges[i]].is_named = true;
}

static void parts_keep(struct trimmer *trimmer)
{
    for (bool has_changed = true; has_changed;) {
        has_changed = false;
        for (int i = 0; i < trimmer->part_count; i++) {
            struct part *part = &trimmer->parts[i];
            if (part->is_kept || part->kind != PART_DEFINITION ||
                !(part->is_kernel || is_wanted(trimmer, part)))
                continue;
            part_keep(trimmer, part);
            has_changed = true;
        }
    }
}

/* Conditions stay around what is kept. `first` is the number of one; returns that of its end. */
static int condition_keep(struct trimmer *trimmer, int first)
{
    bool is_any = false;
    int i = first + 1;
    for (; i < trimmer->part_count && trimmer->parts[i].kind != PART_CONDITION_END; i++) {
        int begin = i;
        if (trimmer->parts[i].kind == PART_CONDITION)
            i = condition_keep(trimmer, i);
        is_any |= trimmer->parts[begin].is_kept;
    }
    trimmer->parts[first].is_kept = is_any;
    for (int depth = 0, j = first + 1; j <= i && j < trimmer->part_count && is_any; j++) {
        depth += trimmer->parts[j].kind == PART_CONDITION;
        if (depth == 0 && trimmer->parts[j].kind != PART_DEFINITION)
            trimmer->parts[j].is_kept = true;
        depth -= trimmer->parts[j].kind == PART_CONDITION_END && j < i;
    }
    return i;
}

static void parts_add(struct trimmer *trimmer, struct gni_builder *out)
{
    for (int i = 0; i < trimmer->part_count; i++)
        if (trimmer->parts[i].kind == PART_CONDITION)
            i = condition_keep(trimmer, i);
    for (int i = 0; i < trimmer->part_count; i++) {
        const struct part *part = &trimmer->parts[i];
        if (!part->is_kept)
            continue;
        gni_builder_add(out, part->text.at, part->text.length);
        gni_builder_add(out, "\n", 1);
    }
}

/* ---- all of it ------------------------------------------------------------------------------------------- */

/* Tables that are large enough for a text of so many bytes. */
static bool tables_make(struct trimmer *trimmer, size_t length)
{
    trimmer->capacity = 1024;
    while (trimmer->capacity < length)
        trimmer->capacity *= 2;
    trimmer->range_most = (int)(2 * length + 16);
    trimmer->part_most = (int)(length / 4 + 16);
    trimmer->words = gni_host_alloc(trimmer->capacity * sizeof *trimmer->words);
    trimmer->ranges = gni_host_alloc((size_t)trimmer->range_most * sizeof *trimmer->ranges);
    trimmer->parts = gni_host_alloc((size_t)trimmer->part_most * sizeof *trimmer->parts);
    return trimmer->words != NULL && trimmer->ranges != NULL && trimmer->parts != NULL;
}

void gni_text_trim(const char *text, struct gni_builder *out)
{
    struct gni_builder decided = {.text = NULL};
    struct trimmer trimmer = {.at = ""};
    gni_text_decide(text, &decided);
    trimmer.has_failed = decided.has_failed || !tables_make(&trimmer, decided.length);
    if (decided.text != NULL)
        trimmer.at = decided.text;
    while (part_read(&trimmer))
        ;
    if (!trimmer.has_failed) {
        parts_keep(&trimmer);
        parts_add(&trimmer, out);
    }
    out->has_failed |= trimmer.has_failed;
    gni_host_free(trimmer.words);
    gni_host_free(trimmer.ranges);
    gni_host_free(trimmer.parts);
    gni_builder_deinit(&decided);
}
