#!/usr/bin/env python3
"""Makes tests/golden/media: encoded pictures, and what Pillow makes of them.

Needs pillow==12.3.0 and numpy==2.2.6. Run it from the project's root; the tests read its output and
need no Python. `decode/NAME.EXT` goes with `decode/NAME.ppm`, the expected RGB picture (`exif_N.EXT`: one for all);
`resize/SOURCE.ppm` goes with `resize/SOURCE_HEIGHTxWIDTH.ppm`.
"""

import io
import pathlib
import shutil
import struct
import sys
import zlib

import numpy as np
import PIL
from PIL import Image, ImageOps

PILLOW = "12.3.0"
ROOT = pathlib.Path("tests/golden/media")
RNG = np.random.default_rng(20250101)


def write_ppm(path, pixels):
    height, width, _ = pixels.shape
    path.write_bytes(b"P6\n%d %d\n255\n" % (width, height) + pixels.astype(np.uint8).tobytes())


def expected(data):
    """What the library promises: Pillow's picture, upright, transparency on white."""
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    if image.mode in ("RGBA", "LA") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        white = Image.new("RGB", rgba.size, (255, 255, 255))
        white.paste(rgba, mask=rgba.getchannel("A"))
        return np.asarray(white)
    return np.asarray(image.convert("RGB"))


def save(name, extension, data, pixels=None):
    (ROOT / "decode" / f"{name}.{extension}").write_bytes(data)
    write_ppm(ROOT / "decode" / f"{name}.ppm", expected(data) if pixels is None else pixels)


def encode(image, **options):
    out = io.BytesIO()
    image.save(out, **options)
    return out.getvalue()


def smooth(height, width):
    """A picture with gradients and some noise, friendly to lossy codecs."""
    y, x = np.mgrid[0:height, 0:width]
    red = 255 * x / max(width - 1, 1)
    green = 255 * y / max(height - 1, 1)
    blue = 128 + 100 * np.sin(x / 3 + y / 5)
    noise = RNG.integers(-8, 9, (height, width, 3))
    return np.clip(np.stack([red, green, blue], -1) + noise, 0, 255).astype(np.uint8)


# ---- PNG by hand: what Pillow can't write


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def packed_rows(samples, depth):
    """Rows with filter byte 0; samples [height, width, channels] of `depth` bits."""
    rows = []
    for row in samples.reshape(samples.shape[0], -1):
        if depth == 16:
            body = row.astype(">u2").tobytes()
        else:
            bits = "".join(f"{int(value):0{depth}b}" for value in row)
            bits += "0" * (-len(bits) % 8)
            body = int(bits, 2).to_bytes(len(bits) // 8, "big") if bits else b""
        rows.append(b"\0" + body)
    return b"".join(rows)


ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def png(samples, depth, colour, before=b"", after=b"", interlace=False):
    height, width, _ = samples.shape
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    passes = ADAM7 if interlace else [(0, 0, 1, 1)]
    parts = [samples[top::down, left::right] for top, left, down, right in passes]
    data = b"".join(packed_rows(part, depth) for part in parts if part.size)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + before
        + chunk(b"IDAT", zlib.compress(data, 9))
        + after
        + chunk(b"IEND", b"")
    )


GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6


def on_white(colour, alpha):
    return (colour.astype(int) * alpha + 255 * (255 - alpha.astype(int)) + 127) // 255


def to_8_bits(samples):
    return (samples.astype(np.int64) * 255 + 32767) // 65535


def make_png():
    picture = smooth(20, 30)
    alpha = np.tile(np.linspace(0, 255, 30).astype(np.uint8), (20, 1))
    rgba = np.dstack([picture, alpha])
    grey = picture[:, :, 1]
    save("png_rgb", "png", encode(Image.fromarray(picture), format="PNG"))
    save("png_rgba", "png", encode(Image.fromarray(rgba), format="PNG"))
    save("png_grey", "png", encode(Image.fromarray(grey), format="PNG"))
    grey_alpha = np.dstack([grey, alpha])
    save("png_grey_alpha", "png", encode(Image.fromarray(grey_alpha, "LA"), format="PNG"))
    for depth in (1, 2, 4):
        low = RNG.integers(0, 2**depth, (13, 11, 1))
        save(f"png_grey_{depth}_bit", "png", png(low, depth, GREY))
    palette = Image.fromarray(picture).quantize(16)
    save("png_palette", "png", encode(palette, format="PNG"))
    save("png_palette_transparency", "png", encode(palette, format="PNG", transparency=bytes(range(0, 256, 17))))
    key = struct.pack(">HHH", *map(int, picture[3, 4]))
    save("png_rgb_key", "png", png(picture.astype(int), 8, RGB, before=chunk(b"tRNS", key)))
    save("png_interlaced", "png", png(picture.astype(int), 8, RGB, interlace=True))
    small = picture[:3, :2].astype(int)
    save("png_interlaced_small", "png", png(small, 8, RGB, interlace=True))
    make_png_16_bit()


def make_png_16_bit():
    """Pillow keeps the high byte or clips; the library rounds value * 255 / 65535."""
    wide = RNG.integers(0, 65536, (9, 7, 4))
    wide[0, :6, 0] = [0, 127, 128, 129, 257 * 100 + 128, 65535]
    rgb, alpha = wide[:, :, :3], wide[:, :, 3:]
    save("png_16_bit_rgb", "png", png(rgb, 16, RGB), to_8_bits(rgb))
    shown = on_white(to_8_bits(rgb), to_8_bits(alpha))
    save("png_16_bit_rgba", "png", png(wide, 16, RGBA), shown)
    grey = np.repeat(to_8_bits(wide[:, :, :1]), 3, axis=2)
    save("png_16_bit_grey", "png", png(wide[:, :, :1], 16, GREY), grey)
    shown = np.repeat(on_white(to_8_bits(wide[:, :, :1]), to_8_bits(alpha)), 3, axis=2)
    save("png_16_bit_grey_alpha", "png", png(wide[:, :, [0, 3]], 16, GREY_ALPHA), shown)


# ---- JPEG


def make_jpeg():
    picture = Image.fromarray(smooth(37, 45))
    for name, subsampling in (("444", 0), ("422", 1), ("420", 2)):
        save(f"jpeg_{name}", "jpg", encode(picture, format="JPEG", quality=85, subsampling=subsampling))
    save("jpeg_progressive", "jpg", encode(picture, format="JPEG", quality=80, progressive=True))
    save("jpeg_restarts", "jpg", encode(picture, format="JPEG", quality=80, restart_marker_blocks=2))
    save("jpeg_grey", "jpg", encode(picture.convert("L"), format="JPEG", quality=85))
    cmyk = Image.fromarray(RNG.integers(0, 256, (3, 4, 4), dtype=np.uint8), "CMYK")
    cmyk = encode(cmyk.resize((40, 30), Image.Resampling.BILINEAR), format="JPEG", quality=95)
    save("jpeg_cmyk", "jpg", cmyk)
    # The same data declared as YCCK: other colours, and the other path.
    adobe = cmyk.index(b"Adobe") + 11
    assert cmyk[adobe] == 0
    save("jpeg_ycck", "jpg", cmyk[:adobe] + b"\2" + cmyk[adobe + 1 :])


# ---- EXIF orientation


def exif_block(orientation):
    """A TIFF block in either byte order; odd orientations have another tag ahead."""
    order = "<" if orientation % 2 else ">"
    entries = [struct.pack(order + "HHIHH", 0x0112, 3, 1, orientation, 0)]
    if orientation % 2:
        entries.insert(0, struct.pack(order + "HHII", 0x0100, 4, 1, 7))
    head = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 8)
    return head + struct.pack(order + "H", len(entries)) + b"".join(entries) + bytes(4)


INVERSE = {2: 2, 3: 3, 4: 4, 5: 5, 6: 8, 7: 7, 8: 6}
TURN = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def make_orientations():
    """One picture of flat 8 x 8 blocks, which JPEG keeps whichever way they are stored."""
    blocks = RNG.integers(0, 256, (2, 3, 3), dtype=np.uint8)
    upright = Image.fromarray(blocks.repeat(8, axis=0).repeat(8, axis=1))
    for orientation in range(1, 9):
        stored = upright
        if orientation > 1:
            stored = upright.transpose(TURN[INVERSE[orientation]])
        exif = exif_block(orientation)
        options = {"exif": b"Exif\0\0" + exif}
        where = {"after" if orientation % 2 else "before": chunk(b"eXIf", exif)}
        for extension, data in (
            ("jpg", encode(stored, format="JPEG", quality=100, subsampling=0, **options)),
            ("webp", encode(stored, format="WEBP", lossless=True, **options)),
            ("png", png(np.asarray(stored).astype(int), 8, RGB, **where)),
        ):
            (ROOT / "decode" / f"exif_{orientation}.{extension}").write_bytes(data)
            distance = np.abs(expected(data).astype(int) - np.asarray(upright))
            assert distance.max() <= (extension == "jpg"), (orientation, extension)
    write_ppm(ROOT / "decode" / "exif.ppm", np.asarray(upright))


# ---- WebP


def webp_chunk(name, data):
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def webp_frame(image, top, left):
    """An ANMF chunk with a lossless picture."""
    payload = encode(image, format="WEBP", lossless=True)[12:]
    sides = b"".join(struct.pack("<I", n)[:3] for n in (left // 2, top // 2, image.width - 1, image.height - 1))
    return webp_chunk(b"ANMF", sides + struct.pack("<I", 100)[:3] + b"\0" + payload)


def make_webp():
    picture = smooth(33, 26)
    alpha = np.tile(np.linspace(0, 255, 33).astype(np.uint8)[:, None], (1, 26))
    rgba = Image.fromarray(np.dstack([picture, alpha]))
    picture = Image.fromarray(picture)
    save("webp_lossy", "webp", encode(picture, format="WEBP", quality=80))
    save("webp_lossless", "webp", encode(picture, format="WEBP", lossless=True))
    save("webp_lossy_alpha", "webp", encode(rgba, format="WEBP", quality=80))
    save("webp_lossless_alpha", "webp", encode(rgba, format="WEBP", lossless=True))
    first, second = picture.crop((0, 0, 10, 12)), picture.crop((5, 5, 15, 17))
    animation = (
        webp_chunk(b"VP8X", b"\x32\0\0\0" + struct.pack("<I", 19)[:3] + struct.pack("<I", 23)[:3])
        + webp_chunk(b"ICCP", b"odd")
        + webp_chunk(b"ANIM", b"\xff\0\0\xff\0\0")
        + webp_frame(first, 6, 4)
        + webp_frame(second, 0, 0)
    )
    save("webp_animated_offset", "webp", b"RIFF" + struct.pack("<I", len(animation) + 4) + b"WEBP" + animation)


# ---- GIF by hand: full control over frames


def gif_codes(indices, bits):
    """LZW data that clears its table before the codes grow: simple, and valid."""
    clear, stream = 1 << bits, []
    for i, index in enumerate(indices):
        if i % ((1 << bits) - 2) == 0:
            stream.append(clear)
        stream.append(int(index))
    stream.append(clear + 1)
    number = sum(code << (i * (bits + 1)) for i, code in enumerate(stream))
    data = number.to_bytes((len(stream) * (bits + 1) + 7) // 8, "little")
    blocks = [data[i : i + 255] for i in range(0, len(data), 255)]
    return bytes([bits]) + b"".join(bytes([len(b)]) + b for b in blocks) + b"\0"


def gif_frame(indices, top=0, left=0, transparent=None, palette=None, interlace=False, bits=3):
    height, width = indices.shape
    control = b""
    if transparent is not None:
        control = b"!\xf9\x04" + struct.pack("<BHB", 1, 10, transparent) + b"\0"
    flags = (0x80 | (bits - 1) if palette is not None else 0) | (0x40 if interlace else 0)
    if interlace:
        order = [*range(0, height, 8), *range(4, height, 8), *range(2, height, 4), *range(1, height, 2)]
        indices = indices[order]
    descriptor = b"," + struct.pack("<HHHHB", left, top, width, height, flags)
    colours = palette.tobytes() if palette is not None else b""
    return control + descriptor + colours + gif_codes(indices.ravel(), bits)


def gif(height, width, frames, palette=None, bits=3):
    flags = 0x80 | (bits - 1) if palette is not None else 0
    colours = palette.tobytes() if palette is not None else b""
    return b"GIF89a" + struct.pack("<HHBBB", width, height, flags, 0, 0) + colours + b"".join(frames) + b";"


def make_gif():
    palette = RNG.integers(0, 256, (8, 3), dtype=np.uint8)
    other = RNG.integers(0, 256, (8, 3), dtype=np.uint8)
    big, small = RNG.integers(0, 8, (18, 21)), RNG.integers(0, 8, (9, 10))
    comment = b"!\xfe\x05hello\0"
    save("gif_plain", "gif", encode(Image.fromarray(smooth(20, 24)).quantize(32), format="GIF"))
    save("gif_animated", "gif", gif(18, 21, [comment, gif_frame(big), gif_frame(small)], palette))
    save("gif_local_palette", "gif", gif(18, 21, [gif_frame(big, palette=other)], palette))
    save("gif_interlaced", "gif", gif(18, 21, [gif_frame(big, interlace=True)], palette))
    save("gif_transparent", "gif", gif(18, 21, [gif_frame(big, transparent=5)], palette))
    offset = gif_frame(small, top=4, left=7, transparent=2)
    save("gif_offset_transparent", "gif", gif(18, 21, [offset, gif_frame(big)], palette))
    save("gif_beyond_canvas", "gif", gif(12, 12, [gif_frame(big, transparent=2)], palette))
    save("gif_no_palette", "gif", gif(18, 21, [gif_frame(big)]))
    # Pillow paints what a frame leaves uncovered in colour 0 unless a colour is transparent.
    shown = np.full((18, 21, 3), 255, np.uint8)
    shown[4:13, 7:17] = palette[small]
    save("gif_offset", "gif", gif(18, 21, [gif_frame(small, top=4, left=7)], palette), shown)


# ---- resize


RESIZES = {
    # source: sizes (height, width)
    "noise_37x53": [(28, 28), (56, 84), (37, 20), (37, 111), (11, 53), (90, 53), (1, 1), (37, 53), (3, 140), (120, 2)],
    "smooth_64x48": [(28, 28), (128, 96), (63, 49), (5, 7), (64, 96), (100, 48)],
    "noise_1x1": [(1, 1), (28, 28), (2, 3)],
    "noise_3x7": [(56, 112), (2, 2), (7, 3)],
    "noise_1x150": [(28, 700), (1, 9), (20, 30)],
    "noise_250x2": [(68, 28), (68, 2), (300, 28)],
    "checker_100x60": [(28, 28), (50, 30), (99, 59)],
}


def make_resizes():
    y, x = np.mgrid[0:100, 0:60]
    sources = {
        "noise_37x53": RNG.integers(0, 256, (37, 53, 3)),
        "smooth_64x48": smooth(64, 48),
        "noise_1x1": np.array([[[7, 130, 251]]]),
        "noise_3x7": RNG.integers(0, 256, (3, 7, 3)),
        "noise_1x150": RNG.integers(0, 256, (1, 150, 3)),
        "noise_250x2": RNG.integers(0, 256, (250, 2, 3)),
        "checker_100x60": np.repeat(((x + y) % 2 * 255)[:, :, None], 3, axis=2),
    }
    for name, sizes in RESIZES.items():
        source = sources[name].astype(np.uint8)
        write_ppm(ROOT / "resize" / f"{name}.ppm", source)
        for height, width in sizes:
            out = Image.fromarray(source).resize((width, height), Image.Resampling.BICUBIC)
            write_ppm(ROOT / "resize" / f"{name}_{height}x{width}.ppm", np.asarray(out))


def main():
    if PIL.__version__ != PILLOW:
        sys.exit(f"got Pillow {PIL.__version__}, expected {PILLOW}")
    for folder in ("decode", "resize"):
        shutil.rmtree(ROOT / folder, ignore_errors=True)
        (ROOT / folder).mkdir(parents=True)
    make_png()
    make_jpeg()
    make_orientations()
    make_webp()
    make_gif()
    make_resizes()


if __name__ == "__main__":
    main()
