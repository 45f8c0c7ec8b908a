# %% [markdown]
# # A PyTorch loop of your own
#
# You have a network, a loader and an optimizer, and want the groups to be treated alike without giving up your loop.
# `APFEx` wraps the optimizer: you hand it a list of losses instead of their sum, and it decides at each step how much
# each of them counts.

# %%
import matplotlib.pyplot as plt
import torch

from apfex import APFEx, CrossEntropy, FairnessLoss, audit, make_biased, make_groups
from apfex.tables import TableEncoder

torch.manual_seed(0)
train, test = make_biased(n=4000, random_state=0), make_biased(n=4000, random_state=1)
encoder = TableEncoder().fit(train.X)
x, x_test = (torch.from_numpy(encoder.transform(part.X)) for part in (train, test))
y = torch.from_numpy(train.y)
groups = make_groups(train.sensitive)
groups.attributes, len(groups)

# %% [markdown]
# ## The loop without it
#
# First the ordinary loop, to compare with.


# %%
def network():
    return torch.nn.Sequential(
        torch.nn.Linear(x.shape[1], 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
    )


plain, task = network(), CrossEntropy()
adam = torch.optim.Adam(plain.parameters(), lr=1e-2)
for _ in range(200):
    adam.zero_grad()
    task(plain(x), y).backward()
    adam.step()


def judge(model):
    with torch.no_grad():
        decided = (model(x_test).squeeze(1) > 0).int().numpy()
    found = audit(test.y, decided, sensitive_features=test.sensitive).gaps
    gaps = found[found.by == "sex x origin"].set_index("criterion").gap
    return {"error": float((decided != test.y).mean()), **gaps.round(3).to_dict()}


judge(plain)

# %% [markdown]
# ## The loop with it
#
# Three losses: the task and two fairness losses. `backward` takes the list, weighs the gradients and fills `.grad`;
# whatever you do between `backward` and `step`, such as clipping, stays where it is.

# %%
model = network()
dp, tpr = FairnessLoss("dp"), FairnessLoss("tpr")
optimizer = APFEx(torch.optim.Adam(model.parameters(), lr=1e-2), window=10)
for _ in range(200):
    scores = model(x)
    optimizer.backward([task(scores, y), dp(scores, y, groups), tpr(scores, y, groups)])
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

judge(model)

# %% [markdown]
# Both gaps are smaller, and the error is a good deal larger. Three losses of equal standing were handed over, two of
# them about fairness, and a strategy seeks a place where none of them can gain without harm to another; it does not know
# what an error is worth to you. If you know what gap you accept, [a bound](#a-bound-instead-of-weights) says it better,
# and if you want to see all trade-offs, train a front.
#
# ## What happened
#
# `history` has a row for each window of ten steps: losses, weights, the strategy in charge, and omega, the distance
# from a place where no step improves all losses.

# %% alt="Two panels over the steps: the three losses, and the weights that the strategies gave them"
history = optimizer.history.to_frame()
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.5))
for k, name in enumerate(("task", "dp", "tpr")):
    left.plot(history.step, history[f"loss{k}"], label=name)
    right.plot(history.step, history[f"weight{k}"], label=name)
left.set(title="losses", xlabel="step")
right.set(title="weights", xlabel="step")
left.legend()
plt.tight_layout()
history.groupby("strategy").size()

# %% [markdown]
# ## Beware of the constant model
#
# A network that decides alike for everybody has no gap at all. All fairness losses lead there if they are given enough
# weight, so look at the share that is selected, and compare with one decision for everybody:

# %%
with torch.no_grad():
    selected = (model(x_test) > 0).float().mean().item()
favorable = float(test.y.mean())
{"selected": round(selected, 3), "error of one decision": round(min(favorable, 1 - favorable), 3)}

# %% [markdown]
# ## A bound instead of weights
#
# If you know the gap that you accept, say so. While the gap of hard decisions exceeds the bound, the direction is
# bent so that the soft gap falls.

# %%
from apfex import Constraint
from apfex.metrics import dp_gap

bounded = network()
optimizer = APFEx(torch.optim.Adam(bounded.parameters(), lr=1e-2), window=10)
for _ in range(200):
    scores = bounded(x)
    decided = (scores.detach().squeeze(1) > 0).int()
    hard = dp_gap(y, decided, sensitive_features=train.sensitive)
    bound = Constraint(dp(scores, y, groups), bound=0.1, value=hard)
    optimizer.backward([task(scores, y)], constraints=[bound])
    optimizer.step()

judge(bounded)

# %% [markdown]
# A bound holds for the rows that it is measured on; on the test rows the gap may be a little larger.
#
# ## Which way for what
#
# | you want | use |
# |---|---|
# | a front, and to choose from it | `APFExClassifier(model=factory)` with your network, or the default |
# | one network, in your own loop | `APFEx` as above |
# | micro-batches, half precision, several GPUs | the same loop; [the method](../method.md#6-the-step) lists what changes, [several workers](../workers.md) the rest |
# | another rule for the weights | `APFEx(..., strategy=ConeProjection())`, or any of [`apfex.strategies`](../api/training.md#strategies) |
