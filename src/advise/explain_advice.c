/* SPDX-License-Identifier: MIT
 *
 * What to do, by cause, most useful first. Nothing that is already in force, nothing that this
 * release or platform does not have, no folklore. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "advise/explain_parts.h"

static UF_PRINTF(2, 3) void say(uf_explanation *out, const char *format, ...)
{
    if (out->advice_count == UF_EXPLAIN_ADVICE_CAPACITY) {
        return;
    }
    char *text = out->advice[out->advice_count];
    va_list list;
    va_start(list, format);
    vsnprintf(text, UF_EXPLAIN_TEXT, format, list);
    va_end(list);
    for (uint32_t i = 0; i < out->advice_count; i++) {
        if (strcmp(out->advice[i], text) == 0) {
            return;
        }
    }
    out->advice_count++;
}

typedef struct situation {
    const uf_explain_request *request;
    const uf_message *message;
    bool is_windows, is_wsl, is_rocm, is_intel, is_old;    /* old: before PyTorch 2.1 */
    bool is_expandable, has_split, has_fraction, is_async; /* in force */
} situation;

static bool is_named(const uf_explain_request *request, uf_conf_option_id option)
{
    return request->conf != NULL && (request->named & (UINT32_C(1) << option)) != 0;
}

static void survey(const uf_explain_request *request, const uf_explanation *out, situation *now)
{
    uf_message_form form = out->message.form;
    const uf_conf *conf = request->conf;
    *now = (situation){.request = request, .message = &out->message};
    if (request->log != NULL) {
        now->is_windows = request->log->is_windows;
        now->is_wsl = request->log->is_wsl;
    }
    now->is_rocm = form >= UF_MESSAGE_H1 && form <= UF_MESSAGE_H3;
    now->is_intel = form >= UF_MESSAGE_X0 && form <= UF_MESSAGE_X2;
    now->is_old = form <= UF_MESSAGE_T3;
    now->is_expandable = conf != NULL && conf->is_expandable;
    now->is_async = form == UF_MESSAGE_A || (conf != NULL && conf->is_async_backend);
    now->has_split =
        is_named(request, UF_CONF_MAX_SPLIT_SIZE) && conf->max_split_size_bytes != UF_UNLIMITED;
    now->has_fraction = is_named(request, UF_CONF_PER_PROCESS_MEMORY_FRACTION) &&
                        conf->per_process_memory_fraction < 1.0;
}

static void advise_record(uf_explanation *out, const situation *now)
{
    if (now->request->snapshot != NULL) {
        say(out, "Run unfrag tune on this snapshot: it computes the settings that fit, and proves "
                 "them by replay.");
    } else {
        say(out, "Record the program (torch.cuda.memory._record_memory_history, then "
                 "_dump_snapshot) and give it to unfrag tune, which proves settings by replay, or "
                 "to unfrag explain --snapshot, which names what pins the memory.");
    }
}

static void advise_fragments(uf_explanation *out, const situation *now)
{
    if (now->is_async || now->is_intel) {
        say(out, "Allocate what lives long first, and free large buffers before larger ones are "
                 "needed.");
        return;
    }
    if (now->has_split) {
        say(out, "Take max_split_size_mb out again: blocks of that size or more serve only "
                 "requests of nearly their own size, which often costs more than it saves.");
    }
    if (!now->is_expandable && now->is_old) {
        say(out, "Move to PyTorch 2.1 or later and set expandable_segments:True (Linux): its "
                 "segments grow and join, so that pieces no longer get lost between them.");
    } else if (!now->is_expandable && now->is_rocm) {
        say(out, "Expandable segments need ROCm 7 or later and a new PyTorch; try "
                 "PYTORCH_ALLOC_CONF=expandable_segments:True there, before torch is imported.");
    } else if (!now->is_expandable && now->is_windows) {
        say(out, "Expandable segments do not exist on Windows: in WSL or Linux "
                 "expandable_segments:True would take most of this loss away.");
    } else if (!now->is_expandable) {
        say(out, "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before torch is imported "
                 "(Linux): segments then grow and join, so that pieces no longer get lost.");
    }
    advise_record(out, now);
    say(out, "torch.cuda.empty_cache() would not have helped: PyTorch gave back all it could "
             "before it failed.");
}

static void advise_outside(uf_explanation *out, const situation *now)
{
    const uf_reckoning *sums = &out->reckoning;
    bool is_own = sums->own_outside.is_known && sums->foreign.is_known &&
                  sums->own_outside.bytes > sums->foreign.bytes;
    if (now->message->form == UF_MESSAGE_P) {
        say(out, "Close programs that use the GPU (browsers, video, other models): all share one "
                 "memory.");
        return;
    }
    if (now->message->form == UF_MESSAGE_LIBRARY || now->message->form == UF_MESSAGE_DRIVER) {
        say(out, "Leave room beside the allocator: torch.cuda.set_per_process_memory_fraction(0.9) "
                 "or a smaller batch; create the library's handles early, before the card fills.");
    }
    if (is_own) {
        say(out,
            "This process itself holds %s beside the allocator: look for a second framework "
            "in it, graphs, communication buffers, or a library's own workspace.",
            uf__explain_size(sums->own_outside.bytes).text);
    }
    say(out,
        "%s shows which processes hold memory on the card. End those that you started and no "
        "longer need: an earlier run, a notebook's kernel, another model.",
        now->is_rocm    ? "rocm-smi --showpids"
        : now->is_intel ? "xpu-smi ps"
                        : "nvidia-smi");
    say(out, "On a desktop the screen, the browser and video take their share: use another card "
             "for the display, or turn hardware acceleration off in them.");
}

static void advise_refused(uf_explanation *out, const situation *now)
{
    if (now->is_intel || (now->message->signs & UF_SIGN_BLOCK_4GB) != 0) {
        say(out, "Intel's driver refuses single blocks above 4 GB unless told otherwise: set "
                 "UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1, or cut the tensor.");
    }
    if (now->is_wsl) {
        say(out, "In WSL, give it more main memory (memory= in .wslconfig): the GPU's memory is "
                 "backed by it, and pinned memory is limited to a share of it.");
    }
    say(out, "Look for a cap below the card: set_per_process_memory_fraction in the program, a "
             "MIG or vGPU slice, a container's or scheduler's share.");
    say(out, "If several processes share the card, another one may have held the memory at the "
             "moment of the failure: the figure is read afterwards. Watch it while it runs.");
    if (!now->is_rocm && !now->is_intel && now->request->snapshot == NULL) {
        say(out, "On Windows, enlarge the paging file (as large as the card, or leave it to the "
                 "system): the driver commits host memory for every block.");
    }
    if (now->is_rocm) {
        say(out, "On an AMD card with shared memory, raise the share reserved for the GPU (BIOS, "
                 "or the amdgpu.gttsize and ttm page limits).");
    }
}

static void advise_large(uf_explanation *out, const situation *now)
{
    uf_amount asked = uf__explain_amount(now->message, UF_FIGURE_REQUESTED);
    uf_amount total = uf__explain_amount(now->message, UF_FIGURE_TOTAL);
    if (now->message->form == UF_MESSAGE_BAD_SIZE) {
        say(out, "Print the shape of the tensor that was being made: a size is negative, "
                 "overflowed, or not yet set.");
        return;
    }
    if (asked.is_known && total.is_known && total.bytes > 0) {
        say(out,
            "No setting helps: the one tensor needs %.1f times the card. Look at its shape; "
            "attention without a memory-efficient kernel grows with the square of the length.",
            (double)asked.bytes / (double)total.bytes);
    }
    say(out, "Cut the work into pieces: attention slicing or a memory-efficient kernel, tiled "
             "decoding of images, a smaller batch, resolution or sequence.");
}

static void advise_spill(uf_explanation *out)
{
    say(out,
        "Lower what is resident (offload parts of the model, smaller batch): memory beyond the "
        "card lives in main memory and is many times slower.");
    say(out, "In the NVIDIA control panel, set the fallback to system memory to 'prefer no': the "
             "program then fails early instead of crawling.");
}

static void advise_full(uf_explanation *out, const situation *now)
{
    uf_amount missing = out->reckoning.missing;
    if (missing.is_known) {
        say(out,
            "At least %s must go: a smaller batch or resolution, lower precision, or parts of "
            "the model offloaded to main memory.",
            uf__explain_size(missing.bytes).text);
    } else {
        say(out, "Use less at once: a smaller batch or resolution, lower precision, or parts of "
                 "the model offloaded to main memory.");
    }
    say(out, "In training: activation checkpointing, and gradient accumulation over smaller "
             "batches. In generation: decode in tiles or slices, cap the length.");
    if (now->message->form != UF_MESSAGE_P && !now->is_async) {
        say(out, "The allocator's settings cannot help here: there is too little cached to win "
                 "back.");
    }
}

static void advise_limit(uf_explanation *out, const situation *now)
{
    if (now->message->form == UF_MESSAGE_P) {
        say(out, "PYTORCH_MPS_HIGH_WATERMARK_RATIO moves this limit (a share of the recommended "
                 "working set); above it the whole system may swap, so prefer using less.");
        return;
    }
    if (now->message->form == UF_MESSAGE_RMM || now->message->form == UF_MESSAGE_CUPY) {
        say(out, "Raise the pool's maximum, or let the pool spill, if the card has more to give.");
        return;
    }
    if (now->has_fraction) {
        say(out, "per_process_memory_fraction in the settings is this limit: raise it.");
    } else {
        say(out, "Raise or remove torch.cuda.set_per_process_memory_fraction (or "
                 "per_process_memory_fraction in the settings): the card has more.");
    }
}

static void advise_leak(uf_explanation *out)
{
    say(out, "Find what keeps tensors alive from one repetition to the next: losses summed without "
             ".item(), lists of outputs, hooks, a caught exception whose traceback holds the "
             "frames, caches of compiled shapes.");
    say(out, "Compare two snapshots, one repetition apart: blocks that are in the second only, by "
             "their stack, are the leak.");
}

static void advise_host(uf_explanation *out, const situation *now)
{
    uf_message_form form = now->message->form;
    if ((now->message->signs & UF_SIGN_SHARED_MEMORY) != 0) {
        say(out, "Give the container more shared memory (docker run --shm-size, or --ipc=host), or "
                 "use fewer data loader workers.");
    }
    if ((now->message->signs & UF_SIGN_PINNED) != 0 || form == UF_MESSAGE_DRIVER) {
        say(out, "Pin less main memory: pin_memory=False in data loaders and offloading; WSL and "
                 "containers allow only a part of it.");
    }
    if (form == UF_MESSAGE_DRIVER) {
        return;
    }
    say(out, "Need less main memory while loading: safetensors files, low_cpu_mem_usage or loading "
             "straight to the GPU, half precision, one shard at a time.");
    say(out,
        "Look at main memory while it runs (free -h, dmesg | grep -i oom): add swap, raise the "
        "container's or scheduler's limit, use fewer worker processes.");
    if (form == UF_MESSAGE_HANG) {
        say(out, "While it stands: py-spy dump shows where, and vmstat 1 shows whether the host "
                 "swaps or reads from a slow disk.");
    }
}

static void advise_nothing(uf_explanation *out, const situation *now)
{
    switch (now->message->form) {
    case UF_MESSAGE_T8:
        say(out, "Nothing to do if the program went on. Many such warnings mean that it runs at "
                 "the card's limit, and each costs a flush of the cache.");
        break;
    case UF_MESSAGE_ABORT:
        say(out, "Unset PYTORCH_CUDA_ALLOC_CONF and PYTORCH_ALLOC_CONF and start again: if it then "
                 "imports, the string was at fault (commas between options, a colon before each "
                 "value).");
        break;
    case UF_MESSAGE_ERROR:
        say(out, "Run again with CUDA_LAUNCH_BLOCKING=1 to see which call really fails; memory "
                 "settings change nothing here.");
        break;
    case UF_MESSAGE_BUDGET:
        say(out, "Look further down for an error; this line is none.");
        break;
    default:
        if (now->request->log == NULL) {
            say(out, "Record until the failure happens: torch.cuda.memory._record_memory_history() "
                     "early, and _dump_snapshot() in an except clause around the failing part.");
            break;
        }
        say(out, "Give the whole output, from the first line of the traceback to the last line.");
        break;
    }
}

static void advise_missing(uf_explanation *out, const situation *now)
{
    const uf_message *message = now->message;
    if (message->form == UF_MESSAGE_X0 || message->form == UF_MESSAGE_X1) {
        say(out, "Newer PyTorch prints what the driver has free; xpu-smi shows it meanwhile.");
        return;
    }
    if (message->form == UF_MESSAGE_T0) {
        say(out, "PyTorch 1.0 and later print figures with this error: update, or watch nvidia-smi "
                 "while it runs.");
        return;
    }
    if ((message->signs & UF_SIGN_CUT) != 0) {
        say(out, "Give the whole message: it ends with what is reserved but unallocated.");
    } else {
        say(out, "Watch nvidia-smi while it runs, and print torch.cuda.memory_summary() before the "
                 "failing line.");
    }
}

void uf__explain_advise(const uf_explain_request *request, uf_explanation *out)
{
    situation now;
    survey(request, out, &now);
    for (uint32_t i = 0; i < out->cause_count; i++) {
        switch (out->causes[i]) {
        case UF_CAUSE_FRAGMENTATION:
            advise_fragments(out, &now);
            break;
        case UF_CAUSE_OUTSIDE_MEMORY:
            advise_outside(out, &now);
            break;
        case UF_CAUSE_TOO_LARGE_FOR_CARD:
            advise_large(out, &now);
            break;
        case UF_CAUSE_REFUSED_WITH_FREE_MEMORY:
            advise_refused(out, &now);
            break;
        case UF_CAUSE_HOST_SPILL:
            advise_spill(out);
            break;
        case UF_CAUSE_SIMPLY_FULL:
            advise_full(out, &now);
            break;
        case UF_CAUSE_LIMIT:
            advise_limit(out, &now);
            break;
        case UF_CAUSE_LEAK:
            advise_leak(out);
            break;
        case UF_CAUSE_HOST_MEMORY:
            advise_host(out, &now);
            break;
        case UF_CAUSE_NOT_AN_OOM:
            advise_nothing(out, &now);
            break;
        case UF_CAUSE_INCOMPLETE_MESSAGE:
        case UF_CAUSE_COUNT:
            advise_missing(out, &now);
            break;
        }
    }
}
