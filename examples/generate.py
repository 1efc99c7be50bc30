#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes images in a row with Z-Image-Turbo or SDXL on the diffusers library, and says after each
what memory it took.

The switches are those of `unfrag plan`, so that what was planned, what runs and what is measured
can be laid side by side:

    unfrag plan sdxl --size 1024x1024 --offload --card 8GiB
    unfrag run -- python3 examples/generate.py sdxl --weights FILE.safetensors --size 1024x1024 \\
        --offload --images 20

Without weights at hand, --random-weights builds the true architecture with seeded random numbers:
the pictures are noise, the memory behaves as the real model's does, and nothing is downloaded.

Exit code: 0 every image was made, 1 some were not (out of memory), 2 usage, 3 the weights cannot
be read, 4 PyTorch, diffusers or a GPU is missing.
"""

import argparse
import gc
import json
import os
import random
import re
import sys
import time
from types import SimpleNamespace

UNITS = {"": 1, "B": 1, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "K": 2**10, "M": 2**20, "G": 2**30}
# --mixed draws width, height and batch from these: sizes that both models were trained for.
MIXED_SIZES = [(1024, 1024), (1216, 832), (832, 1216), (768, 768), (1152, 896), (1536, 640),
               (896, 1152), (704, 704), (832, 832), (512, 512)]
MIXED_BATCHES = [1, 1, 1, 2]


class Trouble(Exception):
    """Ends the program: an exit code and a text that says what to do."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def size_bytes(text):
    """Bytes from '9.5GiB', '512MiB' or a plain number."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text.strip())
    unit = UNITS.get(match[2].upper()) if match else None
    if unit is None:
        raise argparse.ArgumentTypeError(f"'{text}' is no size: write 9.5GiB, 512MiB or bytes")
    return int(float(match[1]) * unit)


def image_size(text):
    """(width, height) in pixels from '1024x768'."""
    match = re.fullmatch(r"(\d+)x(\d+)", text.strip())
    if not match or not 64 <= int(match[1]) <= 8192 or not 64 <= int(match[2]) <= 8192:
        raise argparse.ArgumentTypeError(f"'{text}' is no size: write WxH in pixels, 64 to 8192")
    if int(match[1]) % 16 or int(match[2]) % 16:
        raise argparse.ArgumentTypeError(f"'{text}': width and height must be multiples of 16")
    return int(match[1]), int(match[2])


def count(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no count: write 1 or more")
    return int(text)


def arguments():
    parser = argparse.ArgumentParser(
        description="Makes images in a row and says what memory each took.",
        epilog="No weights? --random-weights shows how the memory behaves without a download.")
    parser.add_argument("model", choices=["z-image-turbo", "sdxl"], metavar="MODEL",
                        help="z-image-turbo, or sdxl (and its fine-tunes)")
    what = parser.add_argument_group("what is made")
    what.add_argument("--weights", metavar="PATH",
                      help="a diffusers folder, or one .safetensors file of an SDXL fine-tune")
    what.add_argument("--config", metavar="FOLDER",
                      help="with one file: a diffusers folder with the tokenizers and "
                           "configurations (default: the library's cache)")
    what.add_argument("--random-weights", action="store_true",
                      help="the true architecture with seeded random weights, no download")
    what.add_argument("--size", type=image_size, action="append", metavar="WxH",
                      help="width and height; several are taken in turn (default 1024x1024)")
    what.add_argument("--mixed", action="store_true",
                      help="draw size and batch of each image at random (--seed)")
    what.add_argument("--batch", type=count, default=1, metavar="N", help="images at once")
    what.add_argument("--images", type=count, default=1, metavar="N", help="rounds in a row")
    what.add_argument("--steps", type=count, metavar="N",
                      help="denoising steps (default 9 for z-image-turbo, 28 for sdxl)")
    what.add_argument("--guidance", type=float, metavar="X",
                      help="guidance scale (default 0 for z-image-turbo, 7 for sdxl)")
    what.add_argument("--prompt", default="a lighthouse on a cliff at dawn, oil painting")
    what.add_argument("--negative", default="blurry, low quality", help="for sdxl")
    what.add_argument("--seed", type=int, default=0)
    what.add_argument("--dtype", choices=["bf16", "fp16", "fp32"],
                      help="default bf16 for z-image-turbo, fp16 for sdxl")
    saving = parser.add_argument_group("what saves memory")
    saving.add_argument("--offload", action="store_true", help="enable_model_cpu_offload()")
    saving.add_argument("--attention-slicing", action="store_true")
    saving.add_argument("--vae-slicing", action="store_true")
    saving.add_argument("--vae-tiling", action="store_true")
    saving.add_argument("--limit", type=size_bytes, metavar="SIZE",
                        help="use no more than SIZE of the card (a smaller card's stand-in)")
    saving.add_argument("--reserve", type=size_bytes, metavar="SIZE",
                        help="take SIZE from the driver before the model is loaded")
    saving.add_argument("--clean-up", choices=["none", "collect", "empty"], default="none",
                        help="between images: nothing, Python's garbage collection, or that and "
                             "empty_cache()")
    output = parser.add_argument_group("output")
    output.add_argument("-o", "--output", metavar="FOLDER",
                        help="save the images there (default: they are not kept)")
    output.add_argument("--force", action="store_true", help="overwrite images that are there")
    output.add_argument("--json", metavar="FILE", help="write the figures to FILE ('-' = stdout)")
    options = parser.parse_args()
    if bool(options.weights) == options.random_weights:
        parser.error("give either --weights PATH or --random-weights")
    if options.mixed and (options.size or options.batch != 1):
        parser.error("--mixed draws size and batch itself: leave --size and --batch out")
    is_sdxl = options.model == "sdxl"
    options.steps = options.steps or (28 if is_sdxl else 9)
    options.dtype = options.dtype or ("fp16" if is_sdxl else "bf16")
    if options.guidance is None:
        options.guidance = 7.0 if is_sdxl else 0.0
    return options


# --- random weights: the true shapes, filled fast and reproducibly -------------------------------

def fill(module, dtype, generator_seed):
    """Gives every meta parameter of a module memory and seeded values: matrices and kernels normal
    with variance 1 / fan-in, so that activations stay finite; other weights 1, biases 0. One block
    of random numbers is repeated from another start for each tensor: filling costs a copy."""
    import torch
    block = torch.randn(2**22, generator=torch.Generator().manual_seed(generator_seed))
    block = block.to(dtype)
    start = 0
    for owner in module.modules():
        for name, parameter in list(owner._parameters.items()):
            if parameter is None or not parameter.is_meta:
                continue
            value = torch.empty(parameter.shape, dtype=dtype)
            if name.endswith("bias"):
                value.zero_()
            elif parameter.dim() < 2:
                value.fill_(1.0)
            else:
                fan_in = parameter[0].numel()
                scale = 0.02 if isinstance(owner, torch.nn.Embedding) else fan_in**-0.5
                flat, at = value.view(-1), 0
                start = (start + 1048583) % block.numel()
                while at < flat.numel():
                    piece = min(flat.numel() - at, block.numel() - start)
                    torch.mul(block[start:start + piece], scale, out=flat[at:at + piece])
                    at, start = at + piece, (start + piece) % block.numel()
            owner._parameters[name] = torch.nn.Parameter(value, requires_grad=False)
        for name, buffer in list(owner._buffers.items()):
            if buffer is not None and buffer.is_meta:
                kind = dtype if buffer.is_floating_point() else buffer.dtype
                owner._buffers[name] = torch.zeros(buffer.shape, dtype=kind)
    return module.eval()


class Words:
    """Stands in for a tokenizer: always the same few tokens, then the end."""

    model_max_length = 77
    added_tokens_encoder = {}

    def __init__(self, end, length):
        self.end, self.length = end, length

    def __call__(self, text, max_length=None, **_):
        import torch
        rows = len(text) if isinstance(text, (list, tuple)) else 1
        columns = max_length or self.model_max_length
        end_at = min(self.length, columns - 1)
        ids = torch.zeros(rows, columns, dtype=torch.long)
        ids[:, :end_at] = torch.arange(5, 5 + end_at)
        ids[:, end_at] = self.end
        mask = torch.zeros(rows, columns, dtype=torch.long)
        mask[:, :end_at + 1] = 1
        return SimpleNamespace(input_ids=ids, attention_mask=mask)

    def batch_decode(self, *_, **__):
        return [""]

    def tokenize(self, text):
        return text.split()

    def apply_chat_template(self, *_, **__):
        return "text"


def autoencoder(latent_channels, scaling_factor, **more):
    """The decoder both models use, in their own number of channels."""
    from diffusers import AutoencoderKL
    return AutoencoderKL(
        in_channels=3, out_channels=3, latent_channels=latent_channels, norm_num_groups=32,
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
        block_out_channels=(128, 256, 512, 512), layers_per_block=2, sample_size=1024,
        scaling_factor=scaling_factor, force_upcast=True, **more)


def random_z_image(dtype, seed):
    from accelerate import init_empty_weights
    from diffusers import (FlowMatchEulerDiscreteScheduler, ZImagePipeline,
                           ZImageTransformer2DModel)
    from transformers import Qwen3Config, Qwen3Model
    with init_empty_weights(include_buffers=False):
        transformer = ZImageTransformer2DModel()
        text_encoder = Qwen3Model(Qwen3Config(
            hidden_size=2560, intermediate_size=9728, num_hidden_layers=36,
            num_attention_heads=32, num_key_value_heads=8, head_dim=128, vocab_size=151936,
            max_position_embeddings=40960, tie_word_embeddings=True))
        vae = autoencoder(16, 0.3611, shift_factor=0.1159, use_quant_conv=False,
                          use_post_quant_conv=False, mid_block_add_attention=True)
    return ZImagePipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(shift=3.0), vae=fill(vae, dtype, seed),
        text_encoder=fill(text_encoder, dtype, seed + 1), tokenizer=Words(151645, 30),
        transformer=fill(transformer, dtype, seed + 2))


def random_sdxl(dtype, seed):
    from accelerate import init_empty_weights
    from diffusers import StableDiffusionXLPipeline, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection
    with init_empty_weights(include_buffers=False):
        unet = UNet2DConditionModel(
            sample_size=128, in_channels=4, out_channels=4,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
            block_out_channels=(320, 640, 1280), layers_per_block=2, cross_attention_dim=2048,
            transformer_layers_per_block=(1, 2, 10), attention_head_dim=(5, 10, 20),
            use_linear_projection=True, addition_embed_type="text_time",
            addition_time_embed_dim=256, projection_class_embeddings_input_dim=2816)
        vae = autoencoder(4, 0.13025)
        small = CLIPTextModel(CLIPTextConfig(
            hidden_size=768, intermediate_size=3072, num_hidden_layers=12,
            num_attention_heads=12, projection_dim=768, vocab_size=49408,
            max_position_embeddings=77))
        large = CLIPTextModelWithProjection(CLIPTextConfig(
            hidden_size=1280, intermediate_size=5120, num_hidden_layers=32,
            num_attention_heads=20, projection_dim=1280, vocab_size=49408,
            max_position_embeddings=77, hidden_act="gelu"))
    return StableDiffusionXLPipeline(
        vae=fill(vae, dtype, seed), text_encoder=fill(small, dtype, seed + 1),
        text_encoder_2=fill(large, dtype, seed + 2), tokenizer=Words(49407, 20),
        tokenizer_2=Words(49407, 20), unet=fill(unet, dtype, seed + 3), scheduler=euler())


def euler():
    from diffusers import EulerAncestralDiscreteScheduler
    return EulerAncestralDiscreteScheduler(beta_schedule="scaled_linear", beta_start=0.00085,
                                           beta_end=0.012)


# --- the program ---------------------------------------------------------------------------------

def pipeline(options, dtype):
    """The model in host memory."""
    if options.random_weights:
        build = random_sdxl if options.model == "sdxl" else random_z_image
        return build(dtype, options.seed)
    from diffusers import DiffusionPipeline, StableDiffusionXLPipeline
    if not os.path.exists(options.weights):
        raise Trouble(3, f"{options.weights}: there is no such file or folder")
    try:
        if os.path.isdir(options.weights):
            pipe = DiffusionPipeline.from_pretrained(options.weights, torch_dtype=dtype,
                                                     local_files_only=True)
        elif options.model == "sdxl":
            more = {"config": options.config, "local_files_only": True} if options.config else {}
            pipe = StableDiffusionXLPipeline.from_single_file(options.weights, torch_dtype=dtype,
                                                              **more)
        else:
            raise Trouble(2, "--weights: z-image-turbo is read from a diffusers folder, and "
                             f"{options.weights} is a file")
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise Trouble(3, f"{options.weights}: {error}") from error
    if options.model == "sdxl":
        pipe.scheduler = euler_like(pipe.scheduler)
    return pipe


def euler_like(scheduler):
    from diffusers import EulerAncestralDiscreteScheduler
    return EulerAncestralDiscreteScheduler.from_config(scheduler.config)


def rounds(options):
    """(width, height, batch) of each round."""
    draw = random.Random(options.seed)
    if options.mixed:
        return [(*draw.choice(MIXED_SIZES), draw.choice(MIXED_BATCHES))
                for _ in range(options.images)]
    sizes = options.size or [(1024, 1024)]
    return [(*sizes[i % len(sizes)], options.batch) for i in range(options.images)]


def place(pipe, options):
    """Moves the model to the card and switches the savings on."""
    if options.offload:
        pipe.enable_model_cpu_offload()
    else:
        pipe.to("cuda")
    if options.attention_slicing:
        pipe.enable_attention_slicing()
    if options.vae_slicing:
        pipe.vae.enable_slicing()
    if options.vae_tiling:
        pipe.vae.enable_tiling()
    pipe.set_progress_bar_config(disable=True)


def reserve(size):
    """Takes memory from the driver before anything else does: under unfrag by its own call, else
    by the usual trick, one tensor that is dropped at once."""
    import torch
    unfrag = sys.modules.get("unfrag")
    if unfrag is not None and unfrag.is_enabled():
        unfrag.reserve(size)
    else:
        torch.empty(size, dtype=torch.uint8, device="cuda")


def make(pipe, options, width, height, batch):
    """One round; the pictures as a tensor of batch x 3 x height x width in host memory."""
    import torch
    more = {"negative_prompt": [options.negative] * batch} if options.model == "sdxl" else {}
    generator = torch.Generator("cuda").manual_seed(options.seed + 42)
    result = pipe(prompt=[options.prompt] * batch, width=width, height=height,
                  num_inference_steps=options.steps, guidance_scale=options.guidance,
                  output_type="pt", generator=generator, **more).images
    torch.cuda.synchronize()
    return result.float().cpu()


def recover(pipe, options):
    """After a failure the decoder may have been left in fp32, and an offloaded part on the card: back
    to where each image begins."""
    import torch
    gc.collect()
    if options.offload:
        pipe.maybe_free_model_hooks()
    pipe.vae.to(getattr(torch, TORCH_TYPES[options.dtype]))


TORCH_TYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


def memory():
    import torch
    stats = torch.cuda.memory_stats()
    return {"peak_live_bytes": stats.get("requested_bytes.all.peak"),
            "peak_reserved_bytes": stats.get("reserved_bytes.all.peak"),
            "reserved_bytes": stats.get("reserved_bytes.all.current"),
            "num_alloc_retries": stats.get("num_alloc_retries")}


def gib(number):
    return "-" if number is None else f"{number / 2**30:.2f} GiB"


def picture_path(options, index, number):
    return os.path.join(options.output, f"{options.model}-{index + 1:03d}-{number + 1}.png")


def save(images, options, index):
    """One PNG for each picture, under a temporary name first."""
    from PIL import Image
    for number, image in enumerate(images):
        path = picture_path(options, index, number)
        if os.path.exists(path) and not options.force:
            raise Trouble(2, f"{path} is there already: choose another --output, or --force")
        pixels = (image.clamp(0, 1) * 255).round().byte().permute(1, 2, 0).numpy()
        Image.fromarray(pixels).save(path + ".part", format="PNG")
        os.replace(path + ".part", path)


def fingerprint(images):
    """Whether the pictures are numbers at all and not one colour, and their checksum: two runs with
    the same seed on the same card must agree to the bit."""
    import hashlib
    is_finite = bool(images.isfinite().all())
    return {"is_finite": is_finite, "is_constant": bool(images.min() == images.max()),
            "sha256": hashlib.sha256(images.contiguous().numpy().tobytes()).hexdigest()}


def run(options, say):
    try:
        import torch
        import diffusers  # noqa: F401  (its absence is reported here)
        import transformers  # noqa: F401
    except ImportError as error:
        raise Trouble(4, f"{error}: install torch, diffusers, transformers and accelerate") from error
    if not torch.cuda.is_available():
        raise Trouble(4, "no GPU that PyTorch can use: `unfrag doctor` says why")
    if options.output:
        os.makedirs(options.output, exist_ok=True)
    figures = {"model": options.model, "torch": torch.__version__, "card":
               torch.cuda.get_device_name(), "limit_bytes": options.limit, "images": []}
    if options.limit:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, options.limit / total))
    if options.reserve:
        reserve(options.reserve)
    pipe = pipeline(options, getattr(torch, TORCH_TYPES[options.dtype]))
    started = time.monotonic()
    try:
        place(pipe, options)
    except torch.OutOfMemoryError as error:
        figures["load_error"] = str(error)
        say(f"the model does not fit: {error}")
        return figures
    figures["load_seconds"] = time.monotonic() - started
    todo = rounds(options)
    for index, (width, height, batch) in enumerate(todo):
        started = time.monotonic()
        entry = {"width": width, "height": height, "batch": batch, "is_made": True}
        try:
            images = make(pipe, options, width, height, batch)
            entry.update(seconds=time.monotonic() - started, **fingerprint(images))
            if options.output:
                save(images, options, index)
        except torch.OutOfMemoryError as error:
            entry.update(is_made=False, seconds=time.monotonic() - started, error=str(error))
        if not entry["is_made"]:  # outside the handler: its frames hold tensors
            recover(pipe, options)
        entry.update(memory())
        figures["images"].append(entry)
        say(f"image {index + 1}/{len(todo)} {width}x{height} batch {batch}: "
            + (f"{entry['seconds']:.2f} s" if entry["is_made"] else "OUT OF MEMORY")
            + f", peak live {gib(entry['peak_live_bytes'])}, peak reserved "
            + f"{gib(entry['peak_reserved_bytes'])}, reserved {gib(entry['reserved_bytes'])}, "
            + f"retries {entry['num_alloc_retries']}")
        if options.clean_up != "none":
            gc.collect()
        if options.clean_up == "empty":
            torch.cuda.empty_cache()
    return figures


def write_json(figures, path):
    text = json.dumps(figures, indent=1) + "\n"
    if path == "-":
        sys.stdout.write(text)
        return
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".part", path)


def main():
    options = arguments()
    out = sys.stderr if options.json == "-" else sys.stdout
    try:
        figures = run(options, lambda text: print(text, file=out, flush=True))
        if options.json:
            write_json(figures, options.json)
    except Trouble as trouble:
        print(f"generate: {trouble}", file=sys.stderr)
        return trouble.code
    except KeyboardInterrupt:
        print("generate: interrupted", file=sys.stderr)
        return 130
    made = sum(entry["is_made"] for entry in figures["images"])
    print(f"{made} of {options.images} made", file=out)
    return 0 if made == options.images else 1


if __name__ == "__main__":
    sys.exit(main())
