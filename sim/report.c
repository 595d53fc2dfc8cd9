/*
 * report.c: what went wrong in a launch. See engine_inside.h.
 */
#include "engine_inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void sim_fault_set(enum sim_fault fault, CUresult result, struct raw_place place,
                   struct raw_place other, const char *format, ...)
{
    if (sim_run.fault != SIM_FAULT_NONE)
        return;
    sim_run.fault = fault;
    sim_run.result = result;
    sim_run.place = place;
    sim_run.other = other;
    memcpy(sim_run.fault_block, sim_run.block_index, sizeof sim_run.fault_block);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sim_run.text, sizeof sim_run.text, format, arguments);
    va_end(arguments);
}

static void place_fill(const struct raw_place *raw, struct sim_place *place)
{
    if (raw->file == NULL && raw->site == NULL)
        return;
    if (raw->file != NULL) {
        snprintf(place->file, sizeof place->file, "%s", raw->file);
        place->line = raw->line;
    } else {
        sim_site_describe(raw->site, place->file, sizeof place->file, &place->line);
    }
    if (raw->is_elsewhere)
        sim_block_locate(raw->block_number, place->block);
    else
        memcpy(place->block, sim_run.fault_block, sizeof place->block);
    const struct gn_sim_index *index = &sim_run.indices[raw->thread];
    place->thread[0] = index->x;
    place->thread[1] = index->y;
    place->thread[2] = index->z;
    place->is_write = raw->is_write;
}

static int place_print(char *text, size_t capacity, const struct sim_place *place,
                       const char *before)
{
    return snprintf(text, capacity, "%s%s:%d, block (%u, %u, %u), thread (%u, %u, %u)", before,
                    place->file, place->line, place->block[0], place->block[1], place->block[2],
                    place->thread[0], place->thread[1], place->thread[2]);
}

void sim_report_fill(struct sim_report *report)
{
    memset(report, 0, sizeof *report);
    report->result = sim_run.result;
    report->fault = sim_run.fault;
    snprintf(report->kernel, sizeof report->kernel, "%s", sim_run.launch->kernel->expression);
    if (sim_run.fault == SIM_FAULT_NONE)
        return;
    report->address = sim_run.address;
    report->nbytes = sim_run.nbytes;
    place_fill(&sim_run.place, &report->place);
    place_fill(&sim_run.other, &report->other);
    char *text = report->text;
    size_t capacity = sizeof report->text;
    int used = snprintf(text, capacity, "kernel %s: %s", report->kernel, sim_run.text);
    if (sim_run.address != 0)
        used += snprintf(text + used, capacity - (size_t)used, "; %s of %zu bytes at 0x%lx",
                         sim_run.place.is_write ? "write" : "read", sim_run.nbytes,
                         (unsigned long)sim_run.address);
    if (report->place.file[0] != '\0')
        used += place_print(text + used, capacity - (size_t)used, &report->place, "; at ");
    if (report->other.file[0] != '\0')
        place_print(text + used, capacity - (size_t)used, &report->other,
                    sim_run.fault != SIM_FAULT_SHARED_RACE && sim_run.fault != SIM_FAULT_GLOBAL_RACE
                        ? "; the other at "
                    : report->other.is_write ? "; an earlier write at "
                                             : "; an earlier read at ");
}
