/* SPDX-License-Identifier: MIT
 *
 * The oracle: a deliberately naive model of PyTorch 2.11's caching allocator, written from its
 * behavioural description alone and independent of the real core. Plain arrays and linear scans, so
 * that it is easy to see that it is right. It referees the core and the recordings. */
#ifndef ORACLE_ORACLE_H
#define ORACLE_ORACLE_H

#include "oplog/model.h"

extern const model_vtable oracle_model;

#endif
