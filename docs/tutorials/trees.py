# %% [markdown]
# # Trees
#
# On tables, boosted trees are usually the best single kind of model, and the default of this library. They take
# categories and missing values as they are. This page shows the front on trees, how to keep scores rising with a column,
# and the two ways in which trees can reach a trade-off.

# %%
import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from apfex import APFExClassifier, load_dataset

data = load_dataset("adult")
X, X_test, y, y_test, A, A_test = train_test_split(
    data.X, data.y, data.sensitive, train_size=12_000, random_state=0
)
X.dtypes.astype(str).value_counts()

# %% [markdown]
# ## Rules on trees, and trees of their own
#
# With `search="postprocess"`, the default, a few ensembles learn label and group, and every point is a rule on top of
# them. With `search="inprocess"` every point is an ensemble of its own: a common base model, and then 20 rounds that move
# its scores towards an aim. The first is more accurate; the second has no guess of the group.

# %%
fronts = {}
for search in ("postprocess", "inprocess"):
    clf = APFExClassifier(
        model="boosting", search=search, criteria="dp", max_gap=0.1, random_state=0
    )
    fronts[search] = clf.fit(X, y, sensitive_features=A)

# %% alt="Error against the dp gap on test rows: rules on trees lie below the trees trained towards each point where gaps are small"
fig, ax = plt.subplots(figsize=(7, 4))
for search, clf in fronts.items():
    measured = []
    for decided in clf.decide_all(X_test):
        rates = A_test.assign(decided=decided).groupby(["sex", "race"]).decided.mean()
        measured.append((rates.max() - rates.min(), (decided != y_test).mean()))
    ax.scatter(*zip(*sorted(measured), strict=True), label=search)
ax.set(xlabel="dp gap on test rows", ylabel="error on test rows", title="Two ways with trees")
ax.legend()
plt.tight_layout()

# %% [markdown]
# ## Scores that only rise with a column
#
# In credit and insurance it may be required that, all else equal, more years of education never count against a person.
# `monotone_constraints` says so; every point is then trained on its own, as a rule could undo it.

# %%
rising = APFExClassifier(
    model="boosting",
    monotone_constraints={"education-num": 1},
    criteria="dp",
    max_gap=0.1,
    random_state=0,
)
_ = rising.fit(X.drop(columns="education"), y, sensitive_features=A)

# %% alt="Mean score against the years of education from 1 to 16: it never falls"
rows = X_test.drop(columns="education").head(300)
years = range(1, 17)
scores = [rising.decision_function(rows.assign(**{"education-num": k})).mean() for k in years]
fig, ax = plt.subplots(figsize=(6, 3))
ax.step(years, scores, where="mid")
ax.set(xlabel="years of education", ylabel="mean score", title="All else equal")
plt.tight_layout()

# %% [markdown]
# ## Settings of the trees
#
# `n_estimators`, `max_depth` and `learning_rate` mean what they mean in XGBoost; growing stops where the loss of rows
# that do not learn stops falling. A booster that you have already is the start of a front by `init=booster`
# ([how](../models.md)). A loop of your own around trees is shown [here](../method.md#8-boosted-trees).
