/*
 * autocast.h: what autocast.c needs of the list of policies.
 */
#ifndef GNI_AUTOGRAD_AUTOCAST_H
#define GNI_AUTOGRAD_AUTOCAST_H

#include "genesis/autocast.h"

/* The policies of a function's bare name, without a namespace. */
gn_autocast_rule gni_autocast_policy_find(const char *name);

#endif
