# %% [markdown]
# # COMPAS: is the opening story true?
#
# The paper behind this library opens with a story: the risk score COMPAS "appeared marginally fair" when race or gender
# were examined separately, while Black women were misclassified as high-risk. It is a good story about why intersections
# matter. Is it true? ProPublica published the scores and the outcomes of defendants in Broward County, Florida, so that we
# can look.
#
# ## The data
#
# `load_dataset("compas")` fetches ProPublica's file, checks it, and leaves the scores out, since a model must not learn from
# another model's output. Here it is the scores that we want, so we read the same file ourselves, and take the
# same rows as ProPublica did.

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from platformdirs import user_cache_dir

from apfex import APFExClassifier, audit, load_dataset

load_dataset("compas")  # fetches the file if it is not at hand
name = "compas/compas-scores-two-years.csv"
places = [os.environ.get("APFEX_DATA", "."), user_cache_dir("apfex", appauthor=False)]
file = next(Path(place, name) for place in places if Path(place, name).is_file())
rows = pd.read_csv(file)
rows = rows[
    rows.days_b_screening_arrest.between(-30, 30)
    & (rows.is_recid != -1)
    & (rows.c_charge_degree != "O")
    & (rows.score_text != "N/A")
]
race = rows.race.where(rows.race.isin(["African-American", "Caucasian"]), "Other")
people = pd.DataFrame({"race": race, "sex": rows.sex})
people.value_counts().rename("defendants")

# %% [markdown]
# A person wants to be called *low risk*: the favorable decision is a score below 5, and the favorable label no new
# charge within two years. ProPublica's finding was about those who were *not* charged again and yet called high-risk. So we
# compare true positive rates: of the people without a new charge, how many were called low risk?

# %%
low_risk = (rows.decile_score < 5).astype(int)
no_new_charge = 1 - rows.two_year_recid
result = audit(no_new_charge, low_risk, sensitive_features=people, criteria="tpr", tolerance=0.05)
result

# %% [markdown]
# ## What it says
#
# - **Sex alone looks fair.** Of the women and the men without a new charge the same share was called low risk, to a
#   tenth of a point. The interval lies within five points.
# - **Race alone does not.** The gap between Black and other defendants is far beyond chance. So *marginally fair by race* is not true; it
#   was the very point of ProPublica's article.
# - **The crossing shows where.** Look at the six groups:

# %% alt="Share called low risk among people without a new charge, by race and sex: white men 80 per cent, white women 71, Black women 62, Black men 56, other women 91, other men 81"
cells = result.groups[(result.groups.by == "race x sex") & (result.groups.of == "tpr")]
fig, ax = plt.subplots(figsize=(7, 3.5))
for sex, offset in (("Female", -0.12), ("Male", 0.12)):
    part = cells[cells.sex == sex].set_index("race")
    place = [k + offset for k in range(len(part))]
    error = [part.rate - part.lower, part.upper - part.rate]
    ax.errorbar(place, part.rate, yerr=error, fmt="o", capsize=3, label=sex)
ax.set_xticks(range(len(part)), part.index)
ax.set(ylabel="called low risk", title="Of the people without a new charge")
ax.legend()
plt.tight_layout()

# %% [markdown]
# Among white defendants *women* were called high-risk more often than men, among Black and other defendants *men* more often
# than women. These effects are large, and they cancel: that is why sex alone looks perfectly fair. The attribute that shows
# no gap hides two gaps in opposite directions.
#
# And the worst-off group is that of Black *men*, not of Black women:

# %%
cells[["group", "denominator", "rate", "lower", "upper"]].sort_values("rate").round(3)

# %% [markdown]
# ## The verdict on the story
#
# | claim | holds? |
# |---|---|
# | each attribute alone looks fair | for sex yes, to the point of perfection; for race no |
# | Black women are misclassified as high-risk more than others | more often than white men and white women, less often than Black men |
# | one has to look at the intersection | yes: it shows that white women are treated worse than white men, and Black men worst, which neither attribute shows |
#
# So the moral is right and the story is not. With other criteria or cut-offs the numbers change; run this page with yours.
#
# ## What a model of our own would do
#
# A model that learns the label from age, priors and the charge, without race, sex or the score, has the gaps in it, too.
# The front shows what closing them costs. The noise floor matters here: the smallest of the groups has a hundred people.

# %% alt="Error against the tpr gap of a front on COMPAS with six groups: intervals are wide, and the noise floor lies at fourteen points"
data = load_dataset("compas", race="three")
clf = APFExClassifier(criteria="tpr", favorable_label=0, max_gap=0.15, random_state=0)
clf.fit(data.X, data.y, sensitive_features=data.sensitive)
_ = clf.front_.plot("tpr").set_title("COMPAS, six groups")

# %% [markdown]
# Whether such a prediction should have a part in anybody's liberty is a question that no front answers. Read
# [when not to use this](../limits.md#when-not-to-use-this).
#
# *Sources: J. Angwin, J. Larson, S. Mattu and L. Kirchner (2016), [Machine
# Bias](https://www.propublica.org/article/machine-bias-risk-assessments-in-criminal-sentencing), ProPublica, and
# [their data](https://github.com/propublica/compas-analysis); the story is in the introduction of
# [arXiv 2509.13908](https://arxiv.org/abs/2509.13908).*
