# %% [markdown]
# # Your own CSV
#
# You have a file with a row for each person: what became of them, what was known before, and the attributes by which
# nobody should be worse off. This page makes such a file, explores it, and reads what comes back. Replace it by yours.

# %%
import pandas as pd

from apfex import explore, make_biased

made = make_biased(n=3000, strength=0.25, random_state=0)
people = pd.concat([made.X, made.sensitive], axis=1)
people["age"] = 20 + (people.index * 7) % 45
people["number"] = range(10_000, 13_000)  # names a row, and says nothing
people["hired"] = ["yes" if label else "no" for label in made.y]
people.to_csv("people.csv", index=False)
people.head()

# %% [markdown]
# ## One call
#
# Say which column is the label, which value of it a person would want, and which columns are sensitive. Nothing is
# guessed in silence: a column that is a number and called sensitive needs ranges (`bins`), and a name that does not
# occur is an error that suggests the nearest one.

# %%
run = explore(
    "people.csv",
    label="hired",
    positive="yes",
    sensitive=["sex", "origin"],
    criteria="dp",
    max_gap=0.1,
)
print(run.conclusion.text)

# %% [markdown]
# The same on the command line is
#
# ```console
# apfex explore people.csv --label hired --positive yes --sensitive sex,origin \
#     --criteria dp --max-gap 0.1
# ```
#
# ## What was found in the data
#
# Before training, the table is searched for columns that give the label away, columns that reproduce a sensitive
# attribute, and columns that only name rows. Look at them first; a model that knows the answer is not a good model.

# %%
for caveat in run.caveats:
    print(f"[{caveat.level}] {caveat.code}: {caveat.text}\n")

# %% [markdown]
# The column `number` only names rows, so we leave it out and explore again:

# %%
run = explore(
    "people.csv",
    label="hired",
    positive="yes",
    sensitive=["sex", "origin"],
    drop=["number"],
    criteria="dp",
    max_gap=0.1,
)
print(run.conclusion.text)
[caveat.code for caveat in run.caveats]

# %% [markdown]
# ## The front, and the chosen model

# %% alt="Error against the gap in selection rates of the run's models, with intervals and the constant decision"
_ = run.front.plot("dp").set_title("people.csv")

# %% [markdown]
# ## The report
#
# `report.html` is one file that works offline: to click through, to print, to sign.

# %%
from pathlib import Path

run.report("report.html")
run.save("people-run")
sorted(path.name for path in Path("people-run").iterdir())

# %% [markdown]
# [How to read the report](../report.md) explains every part of it. From the command line the same folder appears
# beside your file.
#
# ## Decide about new people
#
# New rows need the columns of the inputs, not the sensitive ones.

# %%
new = people.drop(columns=["hired", "sex", "origin"]).head(4)
run.predict(new)

# %% [markdown]
# ```console
# apfex predict apfex-people new.csv                            # the model that was chosen
# apfex predict apfex-people new.csv --point 3 --out other.csv  # another one
# ```
#
# ## If your file is awkward
#
# | it has | what happens |
# |---|---|
# | missing values | in inputs they are fine; a missing sensitive value is a group of its own; rows without a label are left out, and counted |
# | numbers as sensitive columns | name ranges: `bins={"age": [25, 45, 65]}`, or `--bins age=25,45,65` |
# | a label in words, or of several values | `positive=` names the value, or the values, that a person would want |
# | semicolons, a decimal comma, another encoding | separator and comma are found and reported; `encoding=` names the encoding |
# | more rows than memory | a pattern of Parquet files is [read in chunks](../streams.md) |
#
# All rules are on [the page of the command line](../cli.md#files-that-can-be-read).
