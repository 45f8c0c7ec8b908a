# %% [markdown]
# # Adult from start to finish
#
# From a table to a model that somebody can answer for: look at the labels, choose a criterion, train the front, see
# what closing one gap does to another, choose with certainty, audit on fresh rows, and hand on what was decided. If
# you have not seen a front yet, begin with [five minutes](start.ipynb).

# %%
import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from apfex import APFExClassifier, audit, load_dataset

data = load_dataset("adult")
X, X_test, y, y_test, A, A_test = train_test_split(
    data.X, data.y, data.sensitive, test_size=0.3, random_state=0
)
data

# %% [markdown]
# ## Look at the labels before you train
#
# How often does each group have the favorable label in the data themselves? An audit of the *labels* says it, with
# intervals:

# %% alt="Bars of the share with an income above 50,000 dollars: white men 32 per cent, other men 22, white women 12, other women 8"
labels = audit(None, y, sensitive_features=A)
cells = labels.groups[labels.groups.by == "sex x race"].sort_values("rate")
ax = cells.plot.barh(x="group", y="rate", legend=False, color="C0")
ax.errorbar(
    cells.rate,
    range(len(cells)),
    xerr=[cells.rate - cells.lower, cells.upper - cells.rate],
    fmt="none",
    color="black",
)
ax.set(xlabel="share with an income above 50,000 dollars", ylabel="")
plt.tight_layout()

# %% [markdown]
# Groups differ by more than twenty points. So no useful model can have equal selection rates *and* equal error rates
# ([why](../criteria.md#they-contradict-each-other)). Which one should hold? If the model decides who is shown an
# advertisement for a good job, we may want equal selection rates, because past incomes are partly a result of
# discrimination. If it decides who can repay a rent, errors matter. We train for both and look.

# %%
clf = APFExClassifier(criteria=("dp", "tpr"), max_gap={"dp": 0.05}, random_state=0)
clf.fit(X, y, sensitive_features=A)
clf.mixture_  # which kinds of models predict the label and the group

# %% [markdown]
# ## Two criteria at once
#
# A point has an error and two gaps. Colour shows the second:

# %% alt="Error against the dp gap, coloured by the tpr gap: points with a small dp gap at little error have a large tpr gap; those where both gaps are small have a higher error"
points = clf.front_.to_frame()
fig, ax = plt.subplots(figsize=(7, 4))
dots = ax.scatter(points.dp_gap, points.error, c=points.tpr_gap, cmap="viridis", s=60)
fig.colorbar(dots, label="tpr gap")
ax.set(
    xlabel="dp gap",
    ylabel="error",
    title="Adult: the cheapest way to close one gap opens the other",
)
plt.tight_layout()

# %% [markdown]
# The cheapest models with a small dp gap are bright: they have a large gap in true positive rates. To select as many
# women as men although fewer of them have the label, such a model takes nearly all women who have it and leaves out many
# men who have it. Models with both gaps small exist, at a higher error. This is the choice that the table puts before
# you; it is not a matter of technique.

# %%
columns = ["error", "dp_gap", "tpr_gap", "gain_share"]
chosen = {
    "most accurate": clf.at(0),
    "dp within 0.05": clf.select(max_gap={"dp": 0.05}),
    "both within 0.07": clf.select(max_gap={"dp": 0.07, "tpr": 0.07}),
}
points.loc[[model.point_ for model in chosen.values()], columns].round(3).set_axis(list(chosen))

# %% [markdown]
# ## Measure on fresh rows
#
# These figures are of validation rows, which also chose. The truth is on the test rows:

# %%
both = chosen["both within 0.07"]
result = both.audit(X_test, y_test, sensitive_features=A_test, tolerance=0.07)
result

# %% [markdown]
# Where a verdict is *inconclusive*, how many more people would settle it?

# %%
result.plan()[["criterion", "by", "group", "more_rows", "expected"]].head(6)

# %% [markdown]
# ## Who is decided otherwise?
#
# Against the most accurate model, whose decision changes? A gap can be closed by giving to some or by taking from
# others, and the people concerned will ask which it was.

# %%
flips = clf.compare(0, both.point_, X_test, sensitive_features=A_test)
flips

# %% [markdown]
# ## Choose, and be sure
#
# `confidence` asks that the *interval* lies within the limit, and `max_error_increase` bounds the price. If nothing
# meets both, `select` refuses and names the nearest point instead of giving you something else in silence:

# %%
try:
    clf.select(max_gap=0.03, confidence=0.95)
except ValueError as error:
    print(error)

# %% [markdown]
# ## Hand it on
#
# The folder holds the whole front as plain numbers, without pickle. Whoever loads it gets the same decisions.

# %%
from apfex import load

both.save("adult-model")
again = load("adult-model")
(again.predict(X_test) == both.predict(X_test)).all()

# %% [markdown]
# What to read next: [reading a front with a review board](board.ipynb), [a gate for the next build](../gate.md), and
# [what none of this can tell](../limits.md).
