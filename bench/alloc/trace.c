/*
 * trace.c: the two readers; see trace.h. A file is read whole. The JSON reader walks the text once and
 * keeps nothing but the entry it is in.
 */
#include "trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STREAMS_MOST = 4096,
    DEPTH_MOST = 512,
    WORD = 32, /* characters of an action or key that count */
};

/* ---- entries, by address ---- */

/* One place of the open hash table; address 0 is an empty place, so addresses are kept plus 1. */
struct place {
    uint64_t address;
    uint64_t nbytes;
    uint32_t slot;
    bool is_live;
    bool is_requested; /* a free was requested, and comes into force when it is completed */
};

struct recorder {
    struct trace *trace;
    const struct trace_options *options;
    size_t entry_capacity;
    struct place *places;
    size_t place_capacity; /* a power of two */
    size_t place_count;
    uint32_t *free_slots;
    size_t free_count, free_capacity;
    uint64_t streams[STREAMS_MOST];
    uint64_t live_bytes;
};

static bool grow(void **memory, size_t *capacity, size_t wanted, size_t item_bytes)
{
    if (wanted <= *capacity)
        return true;
    size_t more = *capacity ? *capacity * 2 : 1024;
    void *larger = realloc(*memory, more * item_bytes);
    if (!larger) {
        fprintf(stderr, "trace: out of memory\n");
        return false;
    }
    *memory = larger;
    *capacity = more;
    return true;
}

static struct place *place_probe(struct place *places, size_t capacity, uint64_t address)
{
    size_t at = (size_t)((address + 1) * 0x9e3779b97f4a7c15u >> 20) & (capacity - 1);
    while (places[at].address && places[at].address != address + 1)
        at = (at + 1) & (capacity - 1);
    return &places[at];
}

/* The place of an address, new if it was not seen; NULL if the host's memory is exhausted. */
static struct place *place_get(struct recorder *recorder, uint64_t address)
{
    if (2 * recorder->place_count >= recorder->place_capacity) {
        size_t more = recorder->place_capacity ? 2 * recorder->place_capacity : 4096;
        struct place *places = calloc(more, sizeof *places);
        if (!places) {
            fprintf(stderr, "trace: out of memory\n");
            return NULL;
        }
        for (size_t i = 0; i < recorder->place_capacity; i++) {
            const struct place *old = &recorder->places[i];
            if (old->address)
                *place_probe(places, more, old->address - 1) = *old;
        }
        free(recorder->places);
        recorder->places = places;
        recorder->place_capacity = more;
    }
    struct place *place = place_probe(recorder->places, recorder->place_capacity, address);
    if (!place->address) {
        place->address = address + 1;
        recorder->place_count++;
    }
    return place;
}

static bool entry_add(struct recorder *recorder, struct trace_entry entry)
{
    struct trace *trace = recorder->trace;
    void *entries = trace->entries;
    if (!grow(&entries, &recorder->entry_capacity, trace->entry_count + 1, sizeof entry))
        return false;
    trace->entries = entries;
    trace->entries[trace->entry_count++] = entry;
    return true;
}

static bool record_free(struct recorder *recorder, struct place *place)
{
    struct trace *trace = recorder->trace;
    if (!place->is_live) {
        trace->unknown_count++;
        return true;
    }
    void *slots = recorder->free_slots;
    if (!grow(&slots, &recorder->free_capacity, recorder->free_count + 1, sizeof(uint32_t)))
        return false;
    recorder->free_slots = slots;
    recorder->free_slots[recorder->free_count++] = place->slot;
    place->is_live = false;
    recorder->live_bytes -= place->nbytes;
    trace->free_count++;
    return entry_add(recorder, (struct trace_entry){.slot = place->slot});
}

static bool record_alloc(struct recorder *recorder, struct place *place, uint64_t nbytes,
                         uint64_t stream)
{
    struct trace *trace = recorder->trace;
    size_t number = 0;
    if (place->is_live && !record_free(recorder, place)) /* its free was not recorded */
        return false;
    while (number < trace->stream_count && recorder->streams[number] != stream)
        number++;
    if (number == STREAMS_MOST) {
        fprintf(stderr, "trace: more than %d streams\n", STREAMS_MOST);
        return false;
    }
    if (number == trace->stream_count)
        recorder->streams[trace->stream_count++] = stream;
    place->slot = recorder->free_count ? recorder->free_slots[--recorder->free_count]
                                       : (uint32_t)trace->slot_count++;
    place->nbytes = nbytes;
    place->is_live = true;
    place->is_requested = false;
    recorder->live_bytes += nbytes;
    if (recorder->live_bytes > trace->peak_bytes)
        trace->peak_bytes = recorder->live_bytes;
    trace->alloc_count++;
    return entry_add(recorder, (struct trace_entry){.nbytes = nbytes,
                                                    .slot = place->slot,
                                                    .stream = (uint32_t)number & 0x7fffffffu,
                                                    .is_alloc = 1});
}

/* One line of either file. */
static bool record(struct recorder *recorder, const char *action, uint64_t address, uint64_t nbytes,
                   uint64_t stream)
{
    struct place *place = place_get(recorder, address);
    if (!place)
        return false;
    if (strcmp(action, "alloc") == 0 || strcmp(action, "allocate") == 0)
        return record_alloc(recorder, place, nbytes, stream);
    if (strcmp(action, "free") == 0)
        return record_free(recorder, place);
    if (strcmp(action, "free_requested") == 0) {
        place->is_requested = true;
        return recorder->options->is_free_completed ? true : record_free(recorder, place);
    }
    if (strcmp(action, "free_completed") == 0) {
        bool is_second = place->is_requested && !recorder->options->is_free_completed;
        place->is_requested = false;
        return is_second ? true : record_free(recorder, place);
    }
    recorder->trace->skipped_count++;
    return true;
}

/* ---- JSON ---- */

struct reader {
    const char *start, *at; /* the text ends with a NUL */
    const char *problem;
    int depth;
};

static bool json_fail(struct reader *reader, const char *problem)
{
    if (!reader->problem)
        reader->problem = problem;
    return false;
}

static char json_peek(struct reader *reader)
{
    while (*reader->at == ' ' || *reader->at == '\n' || *reader->at == '\t' || *reader->at == '\r')
        reader->at++;
    return *reader->at;
}

static bool json_expect(struct reader *reader, char wanted)
{
    if (json_peek(reader) != wanted)
        return json_fail(reader, "unexpected character");
    reader->at++;
    return true;
}

/* Reads a string; keeps its first WORD - 1 characters, escapes as they stand. */
static bool json_string(struct reader *reader, char word[WORD])
{
    size_t length = 0;
    if (!json_expect(reader, '"'))
        return false;
    while (*reader->at != '"') {
        if (*reader->at == '\\' && reader->at[1])
            reader->at++;
        if (*reader->at == '\0')
            return json_fail(reader, "a string does not end");
        if (length < WORD - 1)
            word[length++] = *reader->at;
        reader->at++;
    }
    reader->at++;
    word[length] = '\0';
    return true;
}

static bool json_integer(struct reader *reader, uint64_t *value)
{
    char *end;
    (void)json_peek(reader);
    errno = 0;
    *value = *reader->at == '-' ? (uint64_t)strtoll(reader->at, &end, 10)
                                : strtoull(reader->at, &end, 10);
    if (end == reader->at || errno)
        return json_fail(reader, "not an integer that fits");
    reader->at = end;
    return true;
}

/* Is there another element in this list or object? `first` is set before the first question. */
static bool json_more(struct reader *reader, char close, bool *first)
{
    char next = json_peek(reader);
    if (next == close) {
        reader->at++;
        return false;
    }
    if (!*first && !json_expect(reader, ','))
        return false;
    *first = false;
    return true;
}

static bool json_skip(struct reader *reader)
{
    char word[WORD], next = json_peek(reader);
    bool first = true, is_ok = true;
    if (next == '"')
        return json_string(reader, word);
    if (next != '{' && next != '[') { /* a number, true, false or null */
        size_t length = strcspn(reader->at, ",]} \n\t\r");
        reader->at += length;
        return length > 0 || json_fail(reader, "a value is missing");
    }
    if (++reader->depth > DEPTH_MOST)
        return json_fail(reader, "too deep");
    reader->at++;
    while (is_ok && json_more(reader, next == '{' ? '}' : ']', &first)) {
        if (next == '{')
            is_ok = json_string(reader, word) && json_expect(reader, ':');
        is_ok = is_ok && json_skip(reader);
    }
    reader->depth--;
    return is_ok && !reader->problem;
}

/* One entry of a device's trace: an object with the keys in any order. */
static bool json_entry(struct reader *reader, struct recorder *recorder)
{
    char key[WORD], action[WORD] = "";
    uint64_t address = 0, nbytes = 0, stream = 0;
    bool first = true, is_ok = json_expect(reader, '{');
    while (is_ok && json_more(reader, '}', &first)) {
        is_ok = json_string(reader, key) && json_expect(reader, ':');
        if (is_ok && strcmp(key, "action") == 0)
            is_ok = json_string(reader, action);
        else if (is_ok && strcmp(key, "addr") == 0)
            is_ok = json_integer(reader, &address);
        else if (is_ok && strcmp(key, "size") == 0)
            is_ok = json_integer(reader, &nbytes);
        else if (is_ok && strcmp(key, "stream") == 0)
            is_ok = json_integer(reader, &stream);
        else
            is_ok = is_ok && json_skip(reader);
    }
    return is_ok && !reader->problem && record(recorder, action, address, nbytes, stream);
}

static bool json_traces(struct reader *reader, struct recorder *recorder)
{
    bool first = true, is_ok = json_expect(reader, '[');
    for (size_t device = 0; is_ok && json_more(reader, ']', &first); device++) {
        if (device != recorder->options->device) {
            is_ok = json_skip(reader);
            continue;
        }
        bool first_entry = true;
        is_ok = json_expect(reader, '[');
        while (is_ok && json_more(reader, ']', &first_entry))
            is_ok = json_entry(reader, recorder);
    }
    return is_ok && !reader->problem;
}

static bool json_read(const char *path, const char *text, struct recorder *recorder)
{
    struct reader reader = {.start = text, .at = text};
    char key[WORD];
    bool first = true, has_traces = false, is_ok = json_expect(&reader, '{');
    while (is_ok && json_more(&reader, '}', &first)) {
        is_ok = json_string(&reader, key) && json_expect(&reader, ':');
        if (is_ok && strcmp(key, "device_traces") == 0)
            is_ok = has_traces = json_traces(&reader, recorder);
        else
            is_ok = is_ok && json_skip(&reader);
    }
    if (reader.problem)
        fprintf(stderr, "%s: byte %zu: %s\n", path, (size_t)(reader.at - reader.start),
                reader.problem);
    else if (is_ok && !has_traces)
        fprintf(stderr, "%s: no device_traces\n", path);
    return is_ok && has_traces && !reader.problem;
}

/* ---- CSV ---- */

/* Cuts a line at its commas, in place; returns how many fields there are, up to `most`. */
static size_t csv_fields(char *line, char *fields[], size_t most)
{
    size_t count = 0;
    while (line && count < most) {
        fields[count++] = line;
        line = strchr(line, ',');
        if (line)
            *line++ = '\0';
    }
    return count;
}

static bool csv_number(const char *text, int base, uint64_t *value)
{
    char *end;
    if (strcmp(text, "(nil)") == 0) {
        *value = 0;
        return true;
    }
    errno = 0;
    *value = strtoull(text, &end, base);
    return end != text && (*end == '\0' || *end == '\r') && !errno;
}

static bool csv_read(const char *path, char *text, struct recorder *recorder)
{
    enum {
        FIELDS = 6,
    };
    char *save = NULL, *fields[FIELDS];
    size_t number = 0;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        uint64_t address, nbytes, stream;
        if (number++ == 0) {
            if (strncmp(line, "Thread,Time,Action,Pointer,Size,Stream", 38) == 0)
                continue;
            fprintf(stderr, "%s: the first line is neither JSON nor the head of RMM's log\n", path);
            return false;
        }
        if (csv_fields(line, fields, FIELDS) != FIELDS || !csv_number(fields[3], 16, &address) ||
            !csv_number(fields[4], 10, &nbytes) || !csv_number(fields[5], 0, &stream)) {
            fprintf(stderr, "%s: line %zu cannot be read\n", path, number);
            return false;
        }
        if (!record(recorder, fields[2], address, nbytes, stream))
            return false;
    }
    return true;
}

/* ---- files ---- */

static char *file_read(const char *path)
{
    char *text = NULL;
    long length = -1;
    FILE *file = fopen(path, "rb");
    if (file && fseek(file, 0, SEEK_END) == 0)
        length = ftell(file);
    if (length >= 0 && fseek(file, 0, SEEK_SET) == 0)
        text = malloc((size_t)length + 1);
    if (text && fread(text, 1, (size_t)length, file) != (size_t)length) {
        free(text);
        text = NULL;
    }
    if (text)
        text[length] = '\0';
    else
        fprintf(stderr, "%s: %s\n", path, strerror(errno ? errno : EIO));
    if (file)
        fclose(file);
    return text;
}

bool trace_read(const char *path, const struct trace_options *options, struct trace *trace)
{
    *trace = (struct trace){0};
    char *text = file_read(path);
    if (!text)
        return false;
    struct recorder *recorder = calloc(1, sizeof *recorder);
    if (!recorder) {
        free(text);
        return false;
    }
    recorder->trace = trace;
    recorder->options = options;
    bool is_ok = text[strspn(text, " \t\r\n")] == '{' ? json_read(path, text, recorder)
                                                      : csv_read(path, text, recorder);
    free(recorder->places);
    free(recorder->free_slots);
    free(recorder);
    free(text);
    if (!is_ok)
        trace_free(trace);
    return is_ok;
}

void trace_free(struct trace *trace)
{
    free(trace->entries);
    *trace = (struct trace){0};
}
