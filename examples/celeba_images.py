"""A convolutional network on CelebA's images, fair at the crossing of two attributes.

    python examples/celeba_images.py FOLDER --epochs 5

FOLDER holds img_align_celeba, list_attr_celeba.txt and list_eval_partition.txt, which you download
yourself as the licence demands; it also needs Pillow.
"""

import argparse
import copy

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from apfex import APFEx, CrossEntropy, FairnessLoss, ParetoFront, audit
from apfex.datasets import load_images
from apfex.metrics import accuracy, dp_gap, tpr_gap

OBJECTIVES = {
    "cross-entropy": CrossEntropy(),
    "dp": FairnessLoss("dp"),
    "tpr": FairnessLoss("tpr"),
}


def make_network(width: int = 32) -> nn.Module:
    """Three steps down to an eighth of the side, then one score for each image."""
    layers: list[nn.Module] = []
    for before, after in ((3, width), (width, 2 * width), (2 * width, 4 * width)):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.GroupNorm(4, after)]
        layers += [nn.ReLU()]
    pooled = [nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(4 * width * 16, 1), nn.Flatten(0)]
    return nn.Sequential(*layers, *pooled)


def train_epoch(model: nn.Module, optimizer: APFEx, loader: DataLoader, device: str) -> None:
    """One pass over the images; the losses are compared at the scores, which is nearly free."""
    model.train()
    for pixels, labels, groups in loader:
        y, codes = labels.to(device), groups.to(device)
        scores = model(pixels.to(device, non_blocking=True))
        losses = [objective(scores, y, codes) for objective in OBJECTIVES.values()]
        optimizer.backward(losses, outputs=scores)
        optimizer.step()


@torch.no_grad()
def decide(model: nn.Module, loader: DataLoader, device: str) -> Tensor:
    """Decisions for all images, in their order."""
    model.eval()
    return torch.cat([(model(pixels.to(device)) > 0).int().cpu() for pixels, _, _ in loader])


def judge(y: np.ndarray, chosen: Tensor, sensitive: pd.DataFrame) -> tuple[float, float, float]:
    """Error, and the gaps at the crossing, of hard decisions."""
    gaps = [gap(y, chosen, sensitive_features=sensitive) for gap in (dp_gap, tpr_gap)]
    return 1 - accuracy(y, chosen), gaps[0], gaps[1]


def read_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """What was typed."""
    gpu = "cuda" if torch.cuda.is_available() else "cpu"
    parser = argparse.ArgumentParser(description="Train a fair network on CelebA's images.")
    parser.add_argument("folder", help="with img_align_celeba and the two lists")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=256, help="images in a step (256)")
    parser.add_argument("--size", type=int, default=64, help="side of the images (64)")
    parser.add_argument("--limit", type=int, help="use only so many images of each part")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--give-up", type=float, default=0.02, help="error for fairness (0.02)")
    parser.add_argument("--workers", type=int, default=2, help="processes that read images (2)")
    parser.add_argument("--device", default=gpu, help=f"cpu, cuda, ... ({gpu})")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Train, keep the epochs that nothing dominates, choose one, audit it on the test part."""
    options = read_arguments(arguments)
    torch.manual_seed(options.seed)
    parts, loaders = {}, {}
    for part in ("train", "validation", "test"):
        try:
            images = load_images(options.folder, part=part, size=options.size, limit=options.limit)
        except (FileNotFoundError, ImportError, ValueError) as error:
            raise SystemExit(str(error)) from None
        parts[part] = images
        loaders[part] = DataLoader(
            images,
            options.batch,
            shuffle=part == "train",
            num_workers=options.workers,
            persistent_workers=options.workers > 0,
            pin_memory=options.device != "cpu",
        )
        print(f"{part}: {images}")
    model = make_network().to(options.device)
    adam = torch.optim.Adam(model.parameters(), lr=options.learning_rate)
    # Fixed scales: gaps are nearly 0 at the start, and dividing by those would make them count for
    # so much that a network which decides alike for everybody is the best it finds.
    scales = [objective.typical_scale(n_classes=2) for objective in OBJECTIVES.values()]
    optimizer = APFEx(adam, window=len(loaders["train"]), scales=scales)
    front = ParetoFront()
    for epoch in range(1, options.epochs + 1):
        train_epoch(model, optimizer, loaders["train"], options.device)
        held, chosen = parts["validation"], decide(model, loaders["validation"], options.device)
        error, dp, tpr = judge(held.y, chosen, held.sensitive)
        front.insert([error, dp, tpr], (epoch, copy.deepcopy(model.state_dict())))
        print(f"epoch {epoch}: validation error {error:.4f}, dp gap {dp:.4f}, tpr gap {tpr:.4f}")
    point = front.best(1, {0: front.values[:, 0].min() + options.give_up})
    epoch, state = point.payload
    print(f"epoch {epoch} has the smallest dp gap among those of nearly the least error")
    model.load_state_dict(state)
    chosen = decide(model, loaders["test"], options.device)
    print(audit(parts["test"].y, chosen, sensitive_features=parts["test"].sensitive))


if __name__ == "__main__":
    main()
