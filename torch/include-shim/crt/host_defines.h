/* SPDX-License-Identifier: MIT
 *
 * CUDA's runtime headers from pip include this file and do not bring it. For a host compiler its
 * words mean nothing, or what GNU attributes say. */
#ifndef UF_SHIM_HOST_DEFINES_H
#define UF_SHIM_HOST_DEFINES_H

#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __managed__
#define __grid_constant__
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __align__(bytes)
#define __location__(name)
#define CUDARTAPI
#define CUDARTAPI_CDECL

#endif
