# %% [markdown]
# # Five minutes to a first front
#
# You need Python 3.11 or newer. From a copy of the repository, `pip install -e ".[plot]"` installs the package with
# its pictures. The rest of this page takes a minute to run.
#
# The question: who earned more than 50,000 dollars in the US census of 1994 (the data set *Adult*)? A bank, a landlord
# or an advertiser may ask it, and whoever is predicted wrongly has a disadvantage. We want a model that is accurate,
# and that treats men and women, white people and others alike, in all four combinations.

# %%
from sklearn.model_selection import train_test_split

from apfex import APFExClassifier, load_dataset

data = load_dataset("adult")
X, X_test, y, y_test, A, A_test = train_test_split(
    data.X, data.y, data.sensitive, test_size=0.3, random_state=0
)
A.value_counts()

# %% [markdown]
# `data.X` has the inputs, `data.y` the label and `data.sensitive` the sensitive attributes, which are kept out of the
# inputs. One call trains the whole front of trade-offs:

# %%
clf = APFExClassifier(criteria="dp", max_gap=0.05, random_state=0)
clf.fit(X, y, sensitive_features=A)
clf.front_.to_frame()[["error", "dp_gap", "dp_lower", "dp_upper", "gain_share"]].round(3)

# %% [markdown]
# Each row is one model that you could use. `error` is its share of wrong decisions, and `dp_gap` how far apart the
# selection rates of the four groups are: the share of a group that is predicted to earn more. `dp_lower` and
# `dp_upper` bound the true gap. `gain_share` says how much of the best model's advantage over one decision for everybody
# is left. The same as a picture:

# %% alt="Error against the dp gap for every point of the front on Adult, with intervals: the gap falls from 0.2 to 0.02 while the error rises by a few points"
ax = clf.front_.plot("dp")
_ = ax.set_title("Adult: what does a smaller gap cost?")

# %% [markdown]
# The most accurate models lie at the right. Going left the gap closes, at first at almost no cost. The dotted line is
# the gap that chance alone would show in groups of these sizes. The cross is the constant decision, which has no gap
# and is of no use.
#
# ## Choose, and measure on fresh rows
#
# `max_gap=0.05` says which gap you accept. `predict` uses the most accurate model within it. The front was measured on
# validation rows, which also picked the model, so we audit it on rows that it has not seen:

# %%
clf.audit(X_test, y_test, sensitive_features=A_test, tolerance=0.05)

# %% [markdown]
# **The sentence on top** is the worst finding, in words. Below it, each line of *Gaps* compares the groups of one *grouping*:
# by sex, by race, and by both together, which is called the crossing.
#
# | in the table | what it is |
# |---|---|
# | criterion | which rate is compared; dp (demographic parity) is the selection rate |
# | by | the grouping, and *groups compared* says how many of its groups had rows enough |
# | gap | the highest rate less the lowest: 0.057 by sex x race is 5.7 points |
# | interval | where the true gap lies, with 95% confidence; these rows are only a sample |
# | noise floor | the gap that groups of these sizes show on average if all are treated alike; a gap near it says nothing |
# | p adjusted | how probable differences like these are where all groups have one rate, corrected for looking at several groupings |
# | verdict | where the interval lies: *within tolerance* below the limit, *violation* above it, *inconclusive* on both sides |
#
# *Worst-off groups* has a line for each group that is selected less often than all rows are. *Favored* is the share of its
# people who get the favorable label, and *to overall* how many points that is below the share of all rows. *Clearly below* says
# yes where chance does not explain it, and *driven by* which attribute sets the group apart, with the share of people who differ
# in that attribute alone: of non-white women 13.3% are selected, of non-white men (the others) 16.8%.
#
# So the gap of the crossing is 5.7 points here, a little above the limit, and the truth may lie on either side: too few
# rows to say. The model was the best within the limit on the validation rows, and such a choice flatters. Where being sure
# matters more, ask that the *interval* keeps the limit; within five points these rows are too few for that, within ten they
# are not:

# %%
sure = clf.select(max_gap=0.1, confidence=0.9)
result = sure.audit(X_test, y_test, sensitive_features=A_test, tolerance=0.1)
result.gaps[["by", "gap", "lower", "upper", "verdict"]].round(3)

# %% [markdown]
# It is the same model as before: its interval keeps within ten points, not five.
#
# Any other point is a classifier of its own. Their accuracies on the fresh rows, from the most accurate point on:

# %%
careful = clf.select(max_gap=0.1)
accurate = clf.at(0)
[round(model.score(X_test, y_test), 3) for model in (accurate, careful, clf, sure)]

# %% [markdown]
# ## From a file, without Python
#
# ```console
# apfex explore people.csv --label income --positive ">50K" --sensitive sex,race
# ```
#
# does the same for a table on disk and writes a report that works offline. [Your own CSV](own_csv.ipynb) shows it.
#
# ## Where to go from here
#
# - [Which criterion, which tolerance, and why](../criteria.md): the decision that no library can take for you.
# - [Adult from start to finish](adult.ipynb): two criteria at once, and what closing one gap does to the other.
# - [What this cannot tell](../limits.md): read it before you use a model on people.
