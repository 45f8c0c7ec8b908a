# %% [markdown]
# # Marginally fair, unfair at the crossing
#
# `make_biased` makes tables whose unfairness is known exactly, so that one can see whether a method finds it. In this
# one, women and men fare alike, north and south fare alike, and two of the four groups are treated far worse.

# %%
import matplotlib.pyplot as plt

from apfex import APFExClassifier, audit, make_biased

data = make_biased(6000, kind="crossing", strength=0.3, random_state=0)
data.true_rates

# %% [markdown]
# ## One attribute at a time sees nothing
#
# An audit of the labels, attribute by attribute and for the crossing:

# %%
found = audit(None, data.y, sensitive_features=data.sensitive, tolerance=0.05)
found

# %% alt="Share of favorable labels: by sex and by origin all bars are at one half; by their crossing two are at 35 and two at 65 per cent"
fig, axes = plt.subplots(1, 3, figsize=(10, 3), sharey=True)
for ax, by in zip(axes, ("sex", "origin", "sex x origin"), strict=True):
    part = found.groups[found.groups.by == by]
    names = part.group.str.replace(r"\w+=", "", regex=True).str.replace(", ", "\n")
    ax.bar(names, part.rate, yerr=[part.rate - part.lower, part.upper - part.rate], capsize=3)
    ax.set_title(by)
axes[0].set_ylabel("favorable labels")
plt.tight_layout()

# %% [markdown]
# ## Training for the attributes does not help the intersections
#
# With `grouping="attributes"` the gaps of sex and of origin lead the search, with `"intersectional"`, the default, those
# of the four cells.

# %%
test = make_biased(6000, kind="crossing", strength=0.3, random_state=1)
gaps = {}
for grouping in ("attributes", "intersectional"):
    clf = APFExClassifier(criteria="dp", grouping=grouping, max_gap=0.05, random_state=0)
    clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    result = clf.audit(test.X, test.y, sensitive_features=test.sensitive)
    gaps[grouping] = result.gaps[result.gaps.criterion == "dp"].set_index("by").gap.round(3)
    gaps[grouping]["error"] = round(1 - clf.score(test.X, test.y), 3)

# %%
import pandas as pd

pd.DataFrame(gaps)

# %% [markdown]
# The first model satisfies its limit from the start, for both attributes, and leaves the groups of the crossing as far apart as
# the labels are. The second brings them together, and pays for it in errors, because in this table the labels of the groups do
# differ. Whether it should is a question of [the criterion](../criteria.md): with `"tpr"` the difference in labels is taken as given.
#
# ## The other two kinds
#
# `kind="marginal"` puts the bias into one attribute, and `kind="none"` nowhere; the latter is a test of honesty. Here is what an
# audit says of a table without any bias, in samples of growing size:

# %% alt="The measured gap of an unbiased table against the number of rows: it falls from 21 points at 200 rows to 1 at 20,000, along with its noise floor"
sizes = [200, 500, 1000, 2000, 5000, 20_000]
rows = []
for n in sizes:
    fair = make_biased(n, kind="none", random_state=3)
    gap = audit(None, fair.y, sensitive_features=fair.sensitive).gaps
    rows.append(gap[gap.by == "sex x origin"].iloc[0])
measured = pd.DataFrame(rows, index=sizes)
fig, ax = plt.subplots(figsize=(6, 3.5))
ax.fill_between(sizes, measured.lower.astype(float), measured.upper.astype(float), alpha=0.2)
ax.plot(sizes, measured.gap, "o-", label="measured gap")
ax.plot(sizes, measured.noise_floor, "k:", label="noise floor")
ax.axhline(0, color="C3", lw=1, label="true gap")
ax.set(xscale="log", xlabel="rows", ylabel="gap", title="No bias at all")
ax.legend()
plt.tight_layout()

# %% [markdown]
# A gap of twenty points means nothing in two hundred rows. The interval says so, and the noise floor says it in one number.
