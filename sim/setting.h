/*
 * setting.h: the SIM_GPU_* variables of the environment.
 *
 * A value that cannot be is one warning, when the library is loaded, and counts as not given; so does a relative path
 * of what is run or loaded as code. A variable that nobody knows is a warning, too. Any thread may read any time: a test
 * changes some of them between two calls.
 */
#ifndef GNI_SIM_SETTING_H
#define GNI_SIM_SETTING_H

#include <stdint.h>

/* A number or a size; `standard` if there is none that can be. */
uint64_t sim_setting_number(const char *name, uint64_t standard);

/* The place of the word among the variable's choices; -1 if there is none that can be. */
int sim_setting_choice(const char *name);

/* The text, which may be empty; NULL if there is none that can be. */
const char *sim_setting_text(const char *name);

/* Prints the warnings. */
void sim_settings_check(void);

#endif
