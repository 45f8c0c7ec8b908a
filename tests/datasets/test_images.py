"""Images in CelebA's layout: what was written is read, and a network can learn from it."""

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from examples.celeba_images import OBJECTIVES, main, make_network
from PIL import Image
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from apfex.datasets import load_dataset, load_images
from apfex.optimizer import APFEx

NAMES = ["Bald", "Black_Hair", "Blond_Hair", "Brown_Hair", "Gray_Hair", "Male", "Smiling"]


def attribute_file(table, names=NAMES):
    """Rows of yes and no in the published layout, also its line ends."""
    lines = [str(len(table)), " ".join(names) + " "]
    for i, row in enumerate(table):
        lines.append(f"{i + 1:06d}.jpg " + " ".join(f"{1 if yes else -1:2d}" for yes in row))
    return "\r\n".join(lines) + "\r\n"


def write_folder(folder, pictures, table, parts=None):
    (folder / "img_align_celeba").mkdir()
    for i, picture in enumerate(pictures):
        picture.save(folder / "img_align_celeba" / f"{i + 1:06d}.jpg", quality=95)
    (folder / "list_attr_celeba.txt").write_bytes(attribute_file(table).encode())
    if parts is not None:
        rows = [f"{i + 1:06d}.jpg {part}" for i, part in enumerate(parts)]
        (folder / "list_eval_partition.txt").write_text("\n".join(rows) + "\n")
    return folder


COLOURS = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255), (0, 0, 0), (30, 120, 200)]
TABLE = np.array(
    [  # bald, black, blond, brown, gray, male, smiling
        [0, 1, 0, 0, 0, 1, 1],
        [1, 0, 0, 0, 1, 0, 0],
        [0, 1, 1, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 1],
        [0, 0, 0, 1, 0, 1, 1],
        [0, 1, 0, 0, 0, 0, 1],
    ]
)


@pytest.fixture
def folder(tmp_path):
    pictures = [Image.new("RGB", (18, 22), colour) for colour in COLOURS]
    return write_folder(tmp_path, pictures, TABLE, parts=[0, 0, 0, 1, 2, 0])


def test_pixels_labels_and_groups_are_those_written(folder):
    images = load_images(folder, size=8)
    assert isinstance(images, TorchDataset)
    assert len(images) == 6
    for i in range(6):
        pixels, label, group = images[i]
        assert pixels.shape == (3, 8, 8)
        assert pixels.dtype == torch.float32
        expected = torch.tensor(COLOURS[i]).view(3, 1, 1).expand(3, 8, 8) / 255
        torch.testing.assert_close(pixels, expected, atol=0.01, rtol=0)
        assert label == TABLE[i, -1]
        male, black = ("Not male", "Male")[TABLE[i, 5]], ("Other hair", "Black hair")[TABLE[i, 1]]
        assert images.groups.names[group] == f"Male={male}, Black_Hair={black}"
    np.testing.assert_array_equal(images.y, TABLE[:, -1])
    assert images.y.dtype == np.int64


def test_the_groups_are_those_of_the_attribute_table(folder, monkeypatch):
    file = folder / "list_attr_celeba.txt"
    monkeypatch.setattr("apfex.datasets._load.locate", lambda *_, **__: [file])
    table = load_dataset("celeba")
    images = load_images(folder)
    assert images.sensitive.equals(table.sensitive)
    np.testing.assert_array_equal(images.y, table.y)


def test_the_middle_square_is_kept(tmp_path):
    picture = Image.new("RGB", (180, 220), (255, 0, 0))
    picture.paste((128, 128, 128), (0, 16, 180, 204))
    picture.paste((0, 0, 255), (0, 16, 90, 204))
    write_folder(tmp_path, [picture], [[0, 1, 0, 0, 0, 1, 1]])
    pixels, _, _ = load_images(tmp_path, size=60)[0]
    assert pixels[0, :, :28].max() < 0.1  # no red from above or below
    assert pixels[2, :, :28].min() > 0.9  # blue on the left
    torch.testing.assert_close(pixels[:, :, 32:], torch.full((3, 60, 28), 0.5), atol=0.06, rtol=0)


@pytest.mark.parametrize("mode", ["L", "RGBA", "P"])
def test_any_kind_of_picture_becomes_red_green_blue(tmp_path, mode):
    folder = write_folder(tmp_path, [], [[0, 1, 0, 0, 0, 1, 1]])
    picture = Image.new("RGB", (20, 20), "white").convert(mode)
    picture.save(folder / "img_align_celeba" / "000001.jpg", format="PNG")
    torch.testing.assert_close(load_images(folder, size=4)[0][0], torch.ones(3, 4, 4))


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # fork beside threads
def test_workers_read_the_same(folder):
    images = load_images(folder, size=8)
    alone, helped = (
        list(DataLoader(images, batch_size=4, num_workers=workers)) for workers in (0, 2)
    )
    assert [len(batch[0]) for batch in alone] == [4, 2]
    for ours, theirs in zip(alone, helped, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert torch.equal(a, b)
    assert alone[0][1].dtype == alone[0][2].dtype == torch.int64


def test_a_copy_is_small_and_the_same(folder):
    images = load_images(folder, size=8)
    copy = pickle.loads(pickle.dumps(images))
    assert all(torch.equal(copy[i][0], images[i][0]) for i in range(len(images)))


def test_parts_are_the_official_ones_with_the_same_codes(folder):
    whole = load_images(folder, size=8)
    places: dict[Any, list[int]] = {"train": [0, 1, 2, 5], "validation": [3], "test": [4]}
    for part, rows in places.items():
        images = load_images(folder, size=8, part=part)
        assert images.names.tolist() == whole.names[rows].tolist()
        np.testing.assert_array_equal(images.y, whole.y[rows])
        np.testing.assert_array_equal(images.groups.codes, whole.groups.codes[rows])
        assert images.groups.names == whole.groups.names
        assert images.sensitive.index.tolist() == list(range(len(rows)))


def test_limit_keeps_the_first(folder):
    assert load_images(folder, limit=2).names.tolist() == ["000001.jpg", "000002.jpg"]
    assert load_images(folder, part="train", limit=9).names.tolist()[-1] == "000006.jpg"
    with pytest.raises(IndexError):
        load_images(folder, limit=2)[2]


def test_other_attributes_can_be_chosen(folder):
    images = load_images(folder, label="Bald", sensitive="Gray_Hair")
    np.testing.assert_array_equal(images.y, TABLE[:, 0])
    assert (
        images.sensitive["Gray_Hair"].tolist() == ["Other hair", "Gray hair"] + ["Other hair"] * 4
    )
    expected = "<ImageDataset: 6 images of 64 x 64, label: Bald, sensitive: Gray_Hair>"
    assert repr(images) == expected


def test_the_layout_of_the_site_is_found(folder):
    """As unpacked from the site, with a picture that is none of the images beside."""
    Image.new("RGB", (4, 4)).save(folder / "overview.png")
    for place, name in (
        ("Img", "img_align_celeba"),
        ("Anno", "list_attr_celeba.txt"),
        ("Eval", "list_eval_partition.txt"),
    ):
        (folder / place).mkdir()
        (folder / name).rename(folder / place / name)
    inner = folder / "Img" / "img_align_celeba"
    for start in (folder, inner):
        assert len(load_images(start, part="train")) == 4
    elsewhere = (folder / "Anno" / "list_attr_celeba.txt").rename(folder / "mine.txt")
    assert len(load_images(inner, attributes=elsewhere)) == 6


def test_what_is_missing_is_named(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"folder must be there, got .*nowhere.*mmlab"):
        load_images(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"attributes must be a file, got .*no\.txt"):
        load_images(folder, attributes=folder / "no.txt")
    (folder / "list_eval_partition.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"list_eval_partition\.txt"):
        load_images(folder, part="train")
    (folder / "img_align_celeba" / "000004.jpg").unlink()
    assert len(load_images(folder, limit=3)) == 3
    with pytest.raises(FileNotFoundError, match=r"all 6 images .* none for 1, the first is 000004"):
        load_images(folder)
    (folder / "list_attr_celeba.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"folder must hold list_attr_celeba\.txt"):
        load_images(folder)
    for image in (folder / "img_align_celeba").iterdir():
        image.unlink()
    with pytest.raises(FileNotFoundError, match=r"folder must hold images \(\.jpg"):
        load_images(folder)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "Smilling"}, "label must be .* got 'Smilling'; did you mean 'Smiling'"),
        ({"sensitive": ["Male", "black_hair"]}, "sensitive .*; did you mean 'Black_Hair'"),
        ({"label": "xyz"}, "it has Bald, Black_Hair"),
        ({"sensitive": ()}, r"distinct attributes .* got \[\]"),
        ({"sensitive": ["Male", "Male"]}, "distinct attributes"),
        ({"sensitive": "Smiling"}, "other than the label 'Smiling'"),
        ({"size": 0}, "size must be a whole number of at least 1, got 0"),
        ({"limit": 1.5}, "limit must be a whole number of at least 1, got 1.5"),
        ({"part": "valid"}, "part must be one of train, validation, test, got 'valid'"),
    ],
)
def test_bad_arguments_are_named(folder, options, message):
    with pytest.raises(ValueError, match=message):
        load_images(folder, **options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("image_id,Smiling\n000001.jpg,1\n", "must begin with its number of rows.*'image_id,Smi"),
        (attribute_file(TABLE).replace("6\r\n", "202599\r\n", 1), "the 202,599 rows .* got 6"),
        (attribute_file(TABLE)[:-6], "-1 or 1 throughout"),
        (attribute_file(TABLE).replace("  1\r", "  7\r", 1), "got other numbers"),
        (attribute_file(TABLE).replace(" -1\r", "  ?\r", 1), "-1 or 1 throughout"),
    ],
)
def test_a_damaged_attribute_file_is_refused(folder, content, message):
    (folder / "list_attr_celeba.txt").write_bytes(content.encode())
    with pytest.raises(ValueError, match=message):
        load_images(folder)


@pytest.mark.parametrize(
    ("rows", "message"),
    [("000001.jpg 0\n", "none for 000002.jpg"), (None, "has images of, got 'test'")],
)
def test_a_partition_must_fit(folder, rows, message):
    rows = rows or "".join(f"{i + 1:06d}.jpg 0\n" for i in range(6))
    (folder / "list_eval_partition.txt").write_text(rows)
    with pytest.raises(ValueError, match=message):
        load_images(folder, part="test")


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("workers", [0, 1])
def test_a_damaged_image_is_named(folder, workers):
    broken = folder / "img_align_celeba" / "000003.jpg"
    broken.write_bytes(broken.read_bytes()[:200])
    batches = iter(DataLoader(load_images(folder), num_workers=workers))
    for _ in range(2):
        next(batches)
    with pytest.raises(OSError, match=r"000003\.jpg cannot be read as an image"):
        next(batches)
    if workers:  # which goes on, and ends its worker when all is read
        assert len(list(batches)) == 3


def test_a_missing_library_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r'pillow: pip install "apfex\[images\]"'):
        load_images(folder)


def test_the_room_stays_light():
    code = (
        "import sys, apfex.datasets; "
        "print([m for m in ('PIL', 'pandas', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def faces(n, rng):
    """Noise with a bright mouth where there is a smile, and dark hair above where it is black."""
    table = np.zeros((n, len(NAMES)), dtype=int)
    table[:, 1], table[:, 5] = rng.random(n) < 0.4, rng.random(n) < 0.5
    table[:, 6] = rng.random(n) < np.where(table[:, 5] == 1, 0.3, 0.7)
    pictures = []
    for row in table:
        pixels = rng.normal(110, 15, (20, 16, 3))
        pixels[13:17, 4:12] += 60 * row[6]
        pixels[2:5] -= 50 * row[1]
        pixels[8:11, 6:10] += 40 * row[5]
        pictures.append(Image.fromarray(pixels.clip(0, 255).astype(np.uint8)))
    return pictures, table


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("celeba")
    return write_folder(folder, *faces(160, rng), parts=[0] * 80 + [1] * 40 + [2] * 40)


def test_a_convolutional_network_lowers_all_its_losses(people):
    images = load_images(people, size=16, part="train")
    pixels, y, groups = next(iter(DataLoader(images, batch_size=len(images))))
    torch.manual_seed(0)
    model = make_network(width=4)

    def losses():
        scores = model(pixels)
        return torch.stack([loss(scores, y, groups) for loss in OBJECTIVES.values()])

    plain = torch.optim.Adam(model.parameters(), lr=0.01)
    male = torch.tensor((images.sensitive["Male"] == "Male").tolist()).long()
    for _ in range(6):  # a start as unfair as can be: it favours women
        plain.zero_grad()
        OBJECTIVES["cross-entropy"](model(pixels), 1 - male).backward()
        plain.step()
    before = losses().detach()
    optimizer = APFEx(torch.optim.Adam(model.parameters(), lr=0.01), window=5)
    for _ in range(15):
        scores = model(pixels)
        optimizer.backward([loss(scores, y, groups) for loss in OBJECTIVES.values()], scores)
        optimizer.step()
    assert before[1] > 0.5
    assert (losses() < 0.7 * before).all()


def test_the_example_runs(people, capsys):
    options = {"epochs": 2, "batch": 40, "size": 16, "workers": 0, "device": "cpu"}
    main([str(people), *(f"--{name}={value}" for name, value in options.items())])
    printed = capsys.readouterr().out
    assert "train: <ImageDataset: 80 images of 16 x 16" in printed
    assert "epoch 2: validation error" in printed
    assert "has the smallest dp gap" in printed
    assert "Audit of 40 decisions" in printed
    with pytest.raises(SystemExit, match="folder must be there"):
        main([str(people / "nowhere")])


def test_an_image_of_a_few_bytes_that_says_it_has_billions_of_pixels_is_refused(folder):
    """It is told before room is made; so is another form under the name of an image."""
    path = folder / "img_align_celeba" / "000001.jpg"
    Image.new("1", (8_000, 8_000)).save(path, format="PNG")
    assert path.stat().st_size < 2**16
    with pytest.raises(OSError, match="it has 8,000 x 8,000 pixels"):
        load_images(folder, size=8)[0]
    Image.new("RGB", (18, 22)).save(path, format="EPS")  # Pillow would have Ghostscript read it
    with pytest.raises(OSError, match="cannot be read as an image"):
        load_images(folder, size=8)[0]
