# %% [markdown]
# # Reading a front with a review board
#
# A model that decides about people should be chosen by those who answer for it, not by whoever ran `fit`. This page is a script
# for that meeting: what to show, in which order, and which questions each picture answers. It takes an hour with six people.

# %%
from sklearn.model_selection import train_test_split

from apfex import APFExClassifier, load_dataset
from apfex.report import describe_front, write_front_page

data = load_dataset("german")
X, X_test, y, y_test, A, A_test = train_test_split(
    data.X, data.y, data.sensitive, test_size=0.4, random_state=0, stratify=data.y
)
clf = APFExClassifier(criteria=("dp", "tpr"), max_gap=0.15, random_state=0)
clf.fit(X, y, sensitive_features=A)
described = describe_front(clf, X_test, y_test, sensitive_features=A_test, tolerance=0.15)
_ = write_front_page(described, "report.html")

# %% [markdown]
# ## 1. Before any figure: the question
#
# Put four sentences on the table ([these](../criteria.md#begin-with-the-decision-not-with-the-metric)): what is decided, which
# outcome a person wants, which error hurts whom, and how far the label is to be trusted. Here: a bank decides about loans; people
# want one; a good customer who is turned away is harmed, and so is a bad one who falls into debt; the label, *good
# credit*, says whether a loan of the past was repaid, so that those who got none are not in the data.
#
# Agree on a criterion and on a tolerance **now**, and write both down.
#
# ## 2. Who is in the data

# %%
A.value_counts().rename("people")

# %% [markdown]
# The board should see how few some groups are. Ask: whom do these rows not contain?
#
# ## 3. What chance alone would show
#
# Before anybody looks at a gap, show the noise floor: the gap that these groups would show if all were treated alike.

# %%
result = clf.audit(X_test, y_test, sensitive_features=A_test, tolerance=0.15)
result.gaps[["criterion", "by", "gap", "lower", "upper", "noise_floor", "verdict"]].round(3)

# %% [markdown]
# If the noise floor is near the tolerance, the honest answer of today is *we cannot know*, and the board should hear that first. `plan`
# says what knowing would take:

# %%
result.plan()[["criterion", "by", "group", "more_rows", "expected"]].head(5)

# %% [markdown]
# ## 4. The front
#
# Now the picture. Explain three things only: a dot is a model that can be used; left is more alike; up is more wrong. Then ask which
# part of it is worth discussing. Usually the answer is a range of two or three dots.

# %% alt="Error against the tpr gap on German Credit: wide intervals, and a noise floor of 0.08 that most of the points lie around"
_ = clf.front_.plot("tpr").set_title("German Credit: the choices")

# %% [markdown]
# Questions that the board will ask, and where the answer is in `report.html`:
#
# | question | where |
# |---|---|
# | Why not the most accurate one? | it is a dot like the others; the table of gaps says what it does |
# | Is the fairest one any good? | *gain* against the constant decision; *near constant* is a warning |
# | Who loses if we take this one? | gains and losses of each group, with an exact test |
# | Are these differences real? | the intervals, and the verdict in words |
# | Does it know people's sex? | the first screen says whether the group, a guess of it or neither enters the decision |
# | What does it say about a person? | the margin, and the probability, which is the same at every point |
#
# ## 5. Who would be decided otherwise

# %%
points = clf.front_.to_frame()
fairest = points[~points.near_constant].tpr_gap.idxmin()
clf.compare(0, fairest, X_test, sensitive_features=A_test)

# %% [markdown]
# Read this table aloud, as people: two women up to 25 who were granted a loan would not be (*lost*), and two men over 25 who
# were not would be (*gained*). Only six of 400 decisions change: on this table the fairest usable point is nearly the most
# accurate one. If the board is uneasy all the same, that is a result, too.
#
# ## 6. Decide, and sign
#
# In the report tick *This one*, write name, date and reason, and save `decision.json`. On the command line the decision is kept with
# the run, and shown on its page. `--point` decides by the point that was signed, here as an example point 3; where another one
# would decide, `apfex predict` warns:
#
# ```console
# apfex report apfex-german --decision decision.json
# apfex predict apfex-german new.csv --point 3
# ```
#
# ## 7. Agree on when to meet again
#
# A date, and a gate: the same audit on next quarter's decisions, [compared with today's](../audit.md#what-changed-since-last-quarter),
# and [a build that stops](../gate.md) if a gap surely exceeds what was agreed.
