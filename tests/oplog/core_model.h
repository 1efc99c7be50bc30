/* SPDX-License-Identifier: MIT
 *
 * The real core behind the table of functions that the oracle fills too. */
#ifndef OPLOG_CORE_MODEL_H
#define OPLOG_CORE_MODEL_H

#include "oplog/model.h"

extern const model_vtable core_model;

#endif
