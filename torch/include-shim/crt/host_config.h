/* SPDX-License-Identifier: MIT
 *
 * See host_defines.h: CUDA's check of the host compiler, which nothing here depends on. */
#ifndef UF_SHIM_HOST_CONFIG_H
#define UF_SHIM_HOST_CONFIG_H
#include "host_defines.h"
#endif
