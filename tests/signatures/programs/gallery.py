"""Pictures with Pillow: gallery.py thumbnails|panorama."""

import io
import sys
import time

from PIL import Image, ImageFilter

SHOWN = []


def load(number):
    picture = Image.new("RGB", (400, 300), (number % 256, 90, 20))
    return picture.filter(ImageFilter.GaussianBlur(1))


def show(number):
    picture = load(number)
    SHOWN.append(picture.copy())


def save(picture):
    """The bystander."""
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    return len(stream.getvalue())


def browse():
    number = 0
    while True:
        number += 1
        show(number)
        save(load(number))
        time.sleep(0.005)


def stitch():
    for width in (100, 200, 300, 200, 100, 300, 40_000):
        time.sleep(0.35)
        Image.new("RGBA", (width, 800))


{"thumbnails": browse, "panorama": stitch}[sys.argv[1]]()
