# %% [markdown]
# # Three attributes and small cells
#
# Every attribute that is crossed with the others multiplies the groups and divides their sizes. Somewhere on this way the data stop
# knowing. This page shows where, and what to do about it.

# %%
import matplotlib.pyplot as plt
import pandas as pd

from apfex import APFExClassifier, audit, load_dataset

data = load_dataset("german", foreign_worker=True)
sizes = data.sensitive.value_counts().rename("people")
sizes

# %% [markdown]
# Eight cells, of which some hold a handful of people. What can be said about each?

# %% alt="Share with good credit for each of the eight groups with 95 per cent intervals: wide ones for the small groups, down to one person"
labels = audit(None, data.y, sensitive_features=data.sensitive)
cells = labels.groups[labels.groups.by == "age x sex x foreign_worker"].sort_values("count")
fig, ax = plt.subplots(figsize=(8, 3.5))
names = cells.group.str.replace(r"\w+=", "", regex=True) + " (" + cells["count"].astype(str) + ")"
ax.errorbar(
    cells.rate, names, xerr=[cells.rate - cells.lower, cells.upper - cells.rate], fmt="o", capsize=3
)
ax.plot(cells.shrunken, names, "x", color="C1", label="shrunken towards the attributes")
ax.set(xlabel="share with good credit", title="Eight groups (people)")
ax.legend()
plt.tight_layout()

# %% [markdown]
# The interval of the smallest group covers nearly everything. The crosses are *shrunken* estimates, which pull a small group to what
# its attributes suggest: better for looking, and never used for a verdict.
#
# ## What an audit does with them
#
# A group with fewer than 10 rows that count is shown but leaves the gap, and the notes say so. It is not counted as fair, and not as
# a gap of 0 or 1 either:

# %%
labels

# %% [markdown]
# ## What training does with them
#
# The front counts in training whatever there is, and takes the rates of small cells from the model rather than from their few
# labels. Its figures are out of fold: with a thousand people each is decided once by models that have not seen them.

# %%
import warnings

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    clf = APFExClassifier(criteria="dp", max_gap=0.1, random_state=0)
    clf.fit(data.X, data.y, sensitive_features=data.sensitive)
for one in told:
    print(one.message)
clf.front_.to_frame()[["error", "dp_gap", "dp_lower", "dp_upper", "dp_noise_floor"]].round(3).head(
    8
)

# %% [markdown]
# Compare the gap with its noise floor: most of what looks like unfairness between eight groups of this table could be chance. That is no
# reason to do nothing. Four things help.
#
# 1. **Ask how many people would settle it.** `plan` names the groups that lack rows. (We audit the rows of `fit` here, for want of
#    others; on fresh rows gaps would be larger.)

# %%
decided = audit(data.y, clf.predict(data.X), sensitive_features=data.sensitive, tolerance=0.1)
decided.plan()[["criterion", "by", "group", "more_rows"]].sort_values("more_rows").head(6)

# %% [markdown]
# 2. **Look at coarser groupings at the same time.** All attributes and all pairs are in every audit; `worse_off` lists groups of any
#    grouping that are clearly below. None is, in this table.

# %%
decided.worse_off

# %% [markdown]
# 3. **Merge levels, openly.** Three age bands tell more than ten. Say who was merged with whom, and why; merging the group that fares
#    badly into a larger one makes it invisible ([limits](../limits.md#ways-to-be-fair-on-paper)).
# 4. **Train for what can be known.** `grouping="attributes"` leads the search by each attribute on its own, where there are enough rows;
#    the audit looks at the intersections all the same.
#
# ## How the number of cells grows
#
# What parity itself would show, with a thousand people in groups of equal size:

# %% alt="The noise floor of a thousand people against the number of groups: from 3 points with two groups to 75 with a hundred"
import numpy as np

rng = np.random.default_rng(0)
counts, floors = [2, 4, 8, 16, 32, 64, 100], []
for k in counts:
    groups = pd.Series(np.arange(1000) % k, name="group").astype(str)
    outcome = rng.random(1000) < 0.5
    floors.append(audit(None, outcome.astype(int), sensitive_features=groups).gaps.noise_floor[0])
fig, ax = plt.subplots(figsize=(6, 3))
ax.plot(counts, floors, "o-")
ax.set(xscale="log", xlabel="groups", ylabel="noise floor", title="1,000 people, all treated alike")
plt.tight_layout()

# %% [markdown]
# With a hundred groups of ten people, a gap of three quarters of the scale is what perfect equality looks like. Beyond that an intersectional
# gap in one table is no longer a question for statistics; it is one for case review, or for more data.
