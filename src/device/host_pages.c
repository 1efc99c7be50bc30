/* SPDX-License-Identifier: MIT
 *
 * Pages of the host device: pieces of one memory file, and reserved address space into which they
 * are mapped. Enforces what a GPU's driver enforces. Guarded by uf_host.mutex. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device/host.h"

typedef unsigned long long number; /* for messages */

/* Part of a range, in slots. */
typedef struct stretch {
    uf_host_range *range;
    uint64_t first, end;
} stretch;

static uf_status off_granularity(uf_host *host, const char *call, uint64_t addr,
                                 uint64_t size_bytes)
{
    return uf__host_fault_locked(
        host, "%s: 0x%llx, %llu bytes: not a multiple of the granularity, %llu bytes", call,
        (number)addr, (number)size_bytes, (number)host->granularity_bytes);
}

static bool is_granular(const uf_host *host, uint64_t addr, uint64_t size_bytes)
{
    return size_bytes != 0 && (addr | size_bytes) % host->granularity_bytes == 0;
}

/* The range that contains all of it; NULL if none does. */
static uf_host_range *range_find(const uf_host *host, uint64_t addr, uint64_t size_bytes)
{
    for (uint32_t i = 0; i < host->range_count; i++) {
        uf_host_range *range = &host->ranges[i];
        if (addr >= range->addr && addr - range->addr < range->size_bytes) {
            return size_bytes <= range->size_bytes - (addr - range->addr) ? range : NULL;
        }
    }
    return NULL;
}

/* A whole number of granules in one range. */
static uf_status stretch_find(uf_host *host, const char *call, uint64_t addr, uint64_t size_bytes,
                              stretch *found)
{
    if (!is_granular(host, addr, size_bytes)) {
        return off_granularity(host, call, addr, size_bytes);
    }
    uf_host_range *range = range_find(host, addr, size_bytes);
    if (range == NULL) {
        return uf__host_fault_locked(host, "%s: 0x%llx, %llu bytes: not in one reserved range",
                                     call, (number)addr, (number)size_bytes);
    }
    found->range = range;
    found->first = (addr - range->addr) / host->granularity_bytes;
    found->end = found->first + size_bytes / host->granularity_bytes;
    return UF_OK;
}

/* Whole handles are mapped all over it, `count` of them. */
static uf_status stretch_is_whole(uf_host *host, const char *call, const stretch *part,
                                  uint64_t count)
{
    const uf_host_slot *slots = part->range->slots;
    uint64_t slot_count = part->range->size_bytes / host->granularity_bytes, found_count = 0;
    for (uint64_t i = part->first; i < part->end; i++) {
        if (slots[i].piece == 0) {
            return uf__host_fault_locked(host, "%s: nothing is mapped at 0x%llx", call,
                                         (number)(part->range->addr + i * host->granularity_bytes));
        }
        found_count += slots[i].is_first;
    }
    bool is_cut =
        !slots[part->first].is_first ||
        (part->end < slot_count && slots[part->end].piece != 0 && !slots[part->end].is_first);
    if (is_cut) {
        return uf__host_fault_locked(
            host, "%s: 0x%llx to 0x%llx cuts a handle", call,
            (number)(part->range->addr + part->first * host->granularity_bytes),
            (number)(part->range->addr + part->end * host->granularity_bytes));
    }
    if (found_count != count) {
        return uf__host_fault_locked(host, "%s: %llu handles are mapped there, not %llu", call,
                                     (number)found_count, (number)count);
    }
    return UF_OK;
}

uint64_t uf__host_mapped_count_locked(const uf_host *host, uint64_t addr, uint64_t size_bytes)
{
    const uf_host_range *range = range_find(host, addr, size_bytes);
    uint64_t granule = host->granularity_bytes, count = 0;
    if (range == NULL || !is_granular(host, addr, size_bytes)) {
        return UINT64_MAX;
    }
    uint64_t first = (addr - range->addr) / granule, end = first + size_bytes / granule;
    bool is_cut = !range->slots[first].is_first ||
                  (end < range->size_bytes / granule && range->slots[end].piece != 0 &&
                   !range->slots[end].is_first);
    for (uint64_t i = first; i < end; i++) {
        is_cut = is_cut || range->slots[i].piece == 0;
        count += range->slots[i].is_first;
    }
    return is_cut ? UINT64_MAX : count;
}

static void piece_give_if_unreachable(uf_host *host, uf_host_piece *piece)
{
    if (piece->is_named || piece->mapping_count != 0) {
        return;
    }
    (void)fallocate(host->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    (off_t)piece->offset_bytes, (off_t)piece->size_bytes);
    piece->is_there = false;
    host->counts.in_use_bytes -= piece->size_bytes;
}

/* A vacant entry whose hole in the file has that size, or a fresh one at the end. */
static bool piece_take_entry(uf_host *host, uint64_t size_bytes, uint32_t *index)
{
    for (uint32_t i = 0; i < host->piece_count; i++) {
        if (!host->pieces[i].is_there && host->pieces[i].size_bytes == size_bytes) {
            *index = i;
            return true;
        }
    }
    if (!uf__host_list_reserve((void **)&host->pieces, &host->piece_capacity, sizeof *host->pieces,
                               host->piece_count + 1)) {
        return false;
    }
    *index = host->piece_count++;
    host->pieces[*index] =
        (uf_host_piece){.offset_bytes = host->file_bytes, .size_bytes = size_bytes};
    host->file_bytes += size_bytes;
    return true;
}

/* size_bytes is a multiple of the granularity. */
static uf_status piece_create(uf_host *host, uint64_t size_bytes, uint32_t *index)
{
    if (!uf__host_has_room_locked(host, size_bytes) || !piece_take_entry(host, size_bytes, index)) {
        return UF_ERROR_DEVICE_MEMORY;
    }
    uf_host_piece *piece = &host->pieces[*index];
    int code;
    do {
        code = fallocate(host->file, 0, (off_t)piece->offset_bytes, (off_t)size_bytes);
    } while (code != 0 && errno == EINTR);
    if (code != 0) {
        return UF_ERROR_DEVICE_MEMORY; /* the entry stays vacant */
    }
    piece->generation++;
    piece->is_there = piece->is_named = true;
    piece->mapping_count = 0;
    host->counts.in_use_bytes += size_bytes;
    return UF_OK;
}

static uf_host_piece *piece_find(const uf_host *host, uint64_t handle, uint32_t *index)
{
    *index = (uint32_t)handle - 1;
    bool is_there = *index < host->piece_count && host->pieces[*index].is_named &&
                    host->pieces[*index].is_there &&
                    host->pieces[*index].generation == handle >> 32;
    return is_there ? &host->pieces[*index] : NULL;
}

uf_status uf__host_handle_create_locked(uf_host *host, uint64_t size_bytes, uint64_t *handle)
{
    uint32_t index;
    if (!is_granular(host, 0, size_bytes)) {
        return off_granularity(host, "handle_create", 0, size_bytes);
    }
    uf_status status = piece_create(host, size_bytes, &index);
    if (status == UF_OK) {
        host->counts.handle_count++;
        *handle = (uint64_t)host->pieces[index].generation << 32 | (index + 1);
    }
    return status;
}

uf_status uf__host_handle_release_locked(uf_host *host, uint64_t handle, uint64_t size_bytes)
{
    uint32_t index;
    uf_host_piece *piece = piece_find(host, handle, &index);
    if (piece == NULL || piece->size_bytes != size_bytes) {
        return uf__host_fault_locked(host, "handle_release: no handle 0x%llx of %llu bytes",
                                     (number)handle, (number)size_bytes);
    }
    piece->is_named = false;
    host->counts.handle_count--;
    piece_give_if_unreachable(host, piece);
    return UF_OK;
}

/* Maps a piece over granules of a range that have nothing. */
static uf_status piece_map(uf_host *host, const stretch *part, uint32_t index, bool has_access)
{
    uf_host_piece *piece = &host->pieces[index];
    uint64_t addr = part->range->addr + part->first * host->granularity_bytes;
    void *mapped = mmap((void *)(uintptr_t)addr, piece->size_bytes,
                        has_access ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_SHARED | MAP_FIXED,
                        host->file, (off_t)piece->offset_bytes);
    if (mapped == MAP_FAILED) {
        return uf__host_fault_locked(host, "the system maps no more at 0x%llx: %s", (number)addr,
                                     strerror(errno));
    }
    for (uint64_t i = part->first; i < part->end; i++) {
        part->range->slots[i] = (uf_host_slot){
            .piece = index + 1, .is_first = i == part->first, .has_access = has_access};
    }
    piece->mapping_count++;
    host->counts.mapping_count++;
    return UF_OK;
}

static uf_status stretch_is_vacant(uf_host *host, const char *call, const stretch *part)
{
    for (uint64_t i = part->first; i < part->end; i++) {
        if (part->range->slots[i].piece != 0) {
            return uf__host_fault_locked(host, "%s: something is mapped at 0x%llx", call,
                                         (number)(part->range->addr + i * host->granularity_bytes));
        }
    }
    return UF_OK;
}

uf_status uf__host_handle_map_locked(uf_host *host, uint64_t addr, uint64_t handle,
                                     uint64_t size_bytes)
{
    uint32_t index;
    stretch part;
    const uf_host_piece *piece = piece_find(host, handle, &index);
    if (piece == NULL || piece->size_bytes != size_bytes) {
        return uf__host_fault_locked(host, "handle_map: no handle 0x%llx of %llu bytes",
                                     (number)handle, (number)size_bytes);
    }
    uf_status status = stretch_find(host, "handle_map", addr, size_bytes, &part);
    if (status == UF_OK) {
        status = stretch_is_vacant(host, "handle_map", &part);
    }
    return status == UF_OK ? piece_map(host, &part, index, false) : status;
}

uf_status uf__host_range_access_locked(uf_host *host, uint64_t addr, uint64_t size_bytes,
                                       uint64_t handle_count)
{
    stretch part;
    uf_status status = stretch_find(host, "range_access", addr, size_bytes, &part);
    if (status == UF_OK) {
        status = stretch_is_whole(host, "range_access", &part, handle_count);
    }
    if (status != UF_OK) {
        return status;
    }
    if (mprotect((void *)(uintptr_t)addr, size_bytes, PROT_READ | PROT_WRITE) != 0) {
        return uf__host_fault_locked(host, "the system gives no access at 0x%llx: %s", (number)addr,
                                     strerror(errno));
    }
    for (uint64_t i = part.first; i < part.end; i++) {
        part.range->slots[i].has_access = true;
    }
    return UF_OK;
}

/* Takes out what is mapped there: whole pieces. */
static uf_status stretch_unmap(uf_host *host, const stretch *part)
{
    uint64_t granularity = host->granularity_bytes;
    uint64_t addr = part->range->addr + part->first * granularity;
    void *cleared = mmap((void *)(uintptr_t)addr, (part->end - part->first) * granularity,
                         PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (cleared == MAP_FAILED) {
        return uf__host_fault_locked(host, "the system unmaps nothing at 0x%llx: %s", (number)addr,
                                     strerror(errno));
    }
    for (uint64_t i = part->first; i < part->end; i++) {
        uf_host_slot slot = part->range->slots[i];
        part->range->slots[i] = (uf_host_slot){0};
        if (slot.is_first) {
            uf_host_piece *piece = &host->pieces[slot.piece - 1];
            piece->mapping_count--;
            host->counts.mapping_count--;
            piece_give_if_unreachable(host, piece);
        }
    }
    return UF_OK;
}

static uf_status check_idle(uf_host *host, const char *call, uint64_t addr, uint64_t size_bytes)
{
    uint64_t stream;
    if (!uf__host_is_in_flight_locked(host, addr, size_bytes, &stream)) {
        return UF_OK;
    }
    return uf__host_fault_locked(
        host, "%s: 0x%llx, %llu bytes: a kernel in the queue of stream 0x%llx will touch them",
        call, (number)addr, (number)size_bytes, (number)stream);
}

uf_status uf__host_range_unmap_locked(uf_host *host, uint64_t addr, uint64_t size_bytes,
                                      uint64_t handle_count)
{
    stretch part;
    uf_status status = stretch_find(host, "range_unmap", addr, size_bytes, &part);
    if (status == UF_OK) {
        status = stretch_is_whole(host, "range_unmap", &part, handle_count);
    }
    if (status == UF_OK) {
        status = check_idle(host, "range_unmap", addr, size_bytes);
    }
    return status == UF_OK ? stretch_unmap(host, &part) : status;
}

/* One page that nobody has a handle for: it is given back when it is unmapped. */
static uf_status page_map(uf_host *host, const stretch *part)
{
    uint32_t index;
    uf_status status =
        piece_create(host, (part->end - part->first) * host->granularity_bytes, &index);
    if (status != UF_OK) {
        return status;
    }
    host->pieces[index].is_named = false;
    status = piece_map(host, part, index, true);
    piece_give_if_unreachable(host, &host->pieces[index]); /* if it was not mapped */
    return status;
}

uf_status uf__host_pages_map_locked(uf_host *host, uint64_t addr, uint64_t size_bytes,
                                    uint64_t page_bytes)
{
    stretch part;
    if (!is_granular(host, 0, page_bytes) || size_bytes % page_bytes != 0) {
        return off_granularity(host, "pages_map", addr, page_bytes);
    }
    uf_status status = stretch_find(host, "pages_map", addr, size_bytes, &part);
    if (status == UF_OK) {
        status = stretch_is_vacant(host, "pages_map", &part);
    }
    if (status == UF_OK && !uf__host_has_room_locked(host, size_bytes)) {
        status = UF_ERROR_DEVICE_MEMORY;
    }
    uint64_t step = page_bytes / host->granularity_bytes, at = part.first;
    while (status == UF_OK && at < part.end) {
        status = page_map(host, &(stretch){part.range, at, at + step});
        at += status == UF_OK ? step : 0;
    }
    if (status != UF_OK && at > part.first) {
        (void)stretch_unmap(host, &(stretch){part.range, part.first, at});
    }
    return status;
}

uf_status uf__host_pages_unmap_locked(uf_host *host, uint64_t addr, uint64_t size_bytes,
                                      uint64_t page_bytes)
{
    stretch part = {0};
    if (!is_granular(host, 0, page_bytes) || size_bytes % page_bytes != 0) {
        return off_granularity(host, "pages_unmap", addr, page_bytes);
    }
    uf_status status = stretch_find(host, "pages_unmap", addr, size_bytes, &part);
    if (status == UF_OK) {
        status = stretch_is_whole(host, "pages_unmap", &part, size_bytes / page_bytes);
    }
    for (uint64_t i = part.first; status == UF_OK && i < part.end; i++) {
        const uf_host_piece *piece = &host->pieces[part.range->slots[i].piece - 1];
        if (piece->is_named || piece->size_bytes != page_bytes) {
            status = uf__host_fault_locked(
                host, "pages_unmap: at 0x%llx is no page of %llu bytes that pages_map put there",
                (number)(part.range->addr + i * host->granularity_bytes), (number)page_bytes);
        }
    }
    if (status == UF_OK) {
        status = check_idle(host, "pages_unmap", addr, size_bytes);
    }
    return status == UF_OK ? stretch_unmap(host, &part) : status;
}

uf_status uf__host_range_reserve_locked(uf_host *host, uint64_t size_bytes, uint64_t *addr)
{
    if (!is_granular(host, 0, size_bytes)) {
        return off_granularity(host, "range_reserve", 0, size_bytes);
    }
    uint32_t index = 0;
    while (index < host->range_count && host->ranges[index].size_bytes != 0) {
        index++;
    }
    uf_host_slot *slots = calloc(size_bytes / host->granularity_bytes, sizeof *slots);
    if (slots == NULL || !uf__host_list_reserve((void **)&host->ranges, &host->range_capacity,
                                                sizeof *host->ranges, index + 1)) {
        free(slots);
        return UF_ERROR_DEVICE_MEMORY;
    }
    uint64_t start = uf__host_space_take(size_bytes, host->granularity_bytes, PROT_NONE);
    if (start == 0) {
        free(slots);
        return UF_ERROR_DEVICE_MEMORY;
    }
    host->ranges[index] = (uf_host_range){.addr = start, .size_bytes = size_bytes, .slots = slots};
    host->range_count = host->range_count > index + 1 ? host->range_count : index + 1;
    host->counts.range_count++;
    *addr = start;
    return UF_OK;
}

uf_status uf__host_range_release_locked(uf_host *host, uint64_t addr, uint64_t size_bytes)
{
    uf_host_range *range = range_find(host, addr, size_bytes);
    if (range == NULL || range->addr != addr || range->size_bytes != size_bytes) {
        return uf__host_fault_locked(host, "range_release: no range of %llu bytes at 0x%llx",
                                     (number)size_bytes, (number)addr);
    }
    stretch all = {range, 0, size_bytes / host->granularity_bytes};
    uf_status status = stretch_is_vacant(host, "range_release", &all);
    if (status != UF_OK) {
        return status;
    }
    (void)munmap((void *)(uintptr_t)addr, size_bytes);
    free(range->slots);
    *range = (uf_host_range){0};
    host->counts.range_count--;
    return UF_OK;
}

bool uf__host_range_is_accessible_locked(const uf_host *host, uint64_t addr, uint64_t size_bytes)
{
    const uf_host_range *range = range_find(host, addr, size_bytes);
    if (range == NULL) {
        return false;
    }
    uint64_t last = (addr + size_bytes - 1 - range->addr) / host->granularity_bytes;
    for (uint64_t i = (addr - range->addr) / host->granularity_bytes; i <= last; i++) {
        if (!range->slots[i].has_access) {
            return false;
        }
    }
    return true;
}

void uf__host_pages_fini(uf_host *host)
{
    for (uint32_t i = 0; i < host->range_count; i++) {
        if (host->ranges[i].size_bytes != 0) {
            (void)munmap((void *)(uintptr_t)host->ranges[i].addr, host->ranges[i].size_bytes);
            free(host->ranges[i].slots);
        }
    }
    free(host->ranges);
    free(host->pieces);
}
