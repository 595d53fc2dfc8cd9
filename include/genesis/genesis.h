/*
 * genesis/genesis.h: everything. Link with -lgenesis.
 */
#ifndef GENESIS_GENESIS_H
#define GENESIS_GENESIS_H

#include "genesis/adapter.h"
#include "genesis/autocast.h"
#include "genesis/autograd.h"
#include "genesis/base.h"
#include "genesis/device.h"
#include "genesis/explain.h"
#include "genesis/function.h"
#include "genesis/graph.h"
#include "genesis/history.h"
#include "genesis/interop.h"
#include "genesis/kernel.h"
#include "genesis/index.h"
#include "genesis/list.h"
#include "genesis/memory.h"
#include "genesis/ops.h"
#include "genesis/optim.h"
#include "genesis/profile.h"
#include "genesis/tensor.h"
#include "genesis/tune.h"

#endif
