# %% [markdown]
# # Any scikit-learn model
#
# `APFExClassifier` is a scikit-learn estimator, and it takes scikit-learn's classifiers in two ways: an unfitted one as
# the kind of model to use, and a fitted one as the model to start from.

# %%
from sklearn.ensemble import RandomForestClassifier

from apfex import APFExClassifier, make_biased

train, test = make_biased(2000, random_state=0), make_biased(2000, random_state=1)
forest = RandomForestClassifier(50, min_samples_leaf=5, random_state=0)

# %% [markdown]
# ## A kind of model
#
# Clones of the forest learn the label, boosted trees the group, and the front consists of rules on top. Text and missing
# values are fine; the table is turned into numbers where the model needs it.

# %%
clf = APFExClassifier(model=forest, criteria="dp", max_gap=0.1, random_state=0)
clf.fit(train.X, train.y, sensitive_features=train.sensitive)
clf.front_.to_frame()[["error", "dp_gap", "gain_share"]].round(3)

# %% [markdown]
# ## The model that you run already
#
# A fitted model is not fitted again. Its probabilities are used as they are, and one point of the front decides exactly
# as it does, so that everything can be compared with what you have. Give `fit` rows that the model has not seen.

# %%
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

encode = make_column_transformer(
    (OneHotEncoder(), make_column_selector(dtype_exclude="number")), remainder="passthrough"
)
production = make_pipeline(encode, forest).fit(train.X, train.y)
later = make_biased(2000, random_state=2)
front = APFExClassifier(init=production, criteria="dp", max_gap=0.1, random_state=0)
front.fit(later.X, later.y, sensitive_features=later.sensitive)
own = [point.epoch for point in front.front_].index(0)
(front.at(own).predict(test.X) == production.predict(test.X)).all()

# %% alt="Error against the dp gap of the points around the production model, which is marked"
ax = front.front_.plot("dp")
ax.plot(front.front_[own].gaps["dp"].gap, front.front_[own].error, "*", ms=16, color="C1")
_ = ax.set_title("The front around the model in production (star)")

# %% [markdown]
# ## Cross-validation, searches and pipelines
#
# They work as with every estimator. In a search over pipelines it is simplest to name the sensitive columns of the table:
# `sensitive=["sex", "origin"]`. They are used in training, kept out of the inputs, and not needed at `predict`.

# %%
from sklearn.model_selection import GridSearchCV

table = train.X.assign(**train.sensitive)
search = GridSearchCV(
    APFExClassifier(
        model="linear", sensitive=["sex", "origin"], criteria="dp", max_gap=0.1, random_state=0
    ),
    {"include_sensitive": [False, True]},
    cv=3,
)
search.fit(table, train.y)
search.cv_results_["mean_test_score"].round(3)

# %% [markdown]
# With `sensitive_features` given to `fit` instead, scikit-learn's metadata routing passes them on; they are requested by
# default. A search ranks by accuracy unless told otherwise, and accuracy knows nothing of groups: bound the gap
# (`max_gap`), as here, so that what is compared keeps it. Both score alike then.
#
# [Models](../models.md) lists which classifier gets the table in which form, and how each is stored.
