"""What is wrong with printed numbers: one record each, so that a table can point at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

Kind = Literal[
    "constant", "mixture", "test set", "copy", "impossible", "implausible", "features", "attribute"
]


@final
@dataclass(frozen=True)
class Defect:
    """A defect of printed numbers.

    Parameters
    ----------
    mark : str
        What stands beside the number; the same letter and number belong together.
    kind : str
    sentence : str
        What was found, and from what it follows.
    disqualifies : bool
        Whether the number cannot be compared with. A test set of another size, or a gap whose
        attribute is not named, still leaves a number that somebody measured.
    """

    mark: str
    kind: Kind
    sentence: str
    disqualifies: bool = True


CONSTANT = Defect(
    "F1",
    "constant",
    "A constant predictor: all gaps are zero in every run, and the accuracy is the share of one "
    "class in the test rows.",
)
TWO_KINDS = Defect(
    "F2",
    "mixture",
    "Two kinds of runs in one mean: some constant runs and the others at one accuracy near the "
    "baseline's give this accuracy and, within .0015, its spread; the gaps are then means with "
    "zeros of constant runs among them.",
)
STILL_ACCURACY = Defect(
    "F9",
    "implausible",
    "An accuracy that is the same in all ten runs, that of a constant, beside gaps that differ "
    "from run to run.",
)
ROC_IS_SEARCHFAIR = Defect(
    "F6a",
    "copy",
    "On Adult, COMPAS, German and Heart the ROC column repeats SearchFair (Attr2) in all six "
    "numbers.",
)
BOTH_ATTRIBUTES = Defect(
    "F6b", "copy", "On COMPAS the columns APFEx (Attr1) and APFEx (Attr2) are the same."
)
MULTI_IS_ATTR1 = Defect(
    "F6c", "copy", "On Adult, M-MAMO (Multi) of Table 2 repeats M-MAMO (Attr1) of Table 1."
)
MULTI_GAPS_ARE_ATTR1 = Defect(
    "F6d",
    "copy",
    "On German, the DEO and DDP of M-MAMO (Multi) in Table 2 repeat those of M-MAMO (Attr1) in "
    "Table 1.",
)
SPREADS_TWICE = Defect(
    "F6e", "copy", "M-MAMO (Attr1) has the same three spreads on German and on COMPAS."
)
GAPS_TWICE = Defect(
    "F6f",
    "copy",
    "The DEO and DDP of M-MAMO (Multi, L_fairDP & L_fairTPR) on CelebA are those of APFEx (Multi) "
    "on COMPAS.",
)
SWAPPED = Defect(
    "F6g", "copy", "The baseline's DEO and DDP on CelebA change places between the tables."
)
IMPOSSIBLE_SPREAD = Defect(
    "F7a",
    "impossible",
    "No ten values of at least zero have this mean and this spread: their standard deviation is "
    "at most three times their mean.",
)
BELOW_CONSTANTS = Defect(
    "F7b", "implausible", "An accuracy below that of either constant predictor (.30 and .70)."
)
FAR_ABOVE = Defect("F7c", "implausible", "An accuracy 14 points above the paper's own baseline.")
LESS_FAIR_THAN_PLAIN = Defect(
    "F7d",
    "implausible",
    "A method that searches for the fairest model, with nearly twice the baseline's gap (.1819).",
)
OTHER_FEATURES = Defect(
    "F8",
    "features",
    "An accuracy above the baseline's .8330, as with capital gain and loss, which SearchFair's own "
    "loader keeps: the columns of the table seem to rest on different inputs.",
)
NO_ATTRIBUTE = Defect(
    "E5",
    "attribute",
    "One gap for a whole data set, the attribute not named, and reused in Table 2 beside gaps on "
    "the crossing.",
    disqualifies=False,
)
NOBODYS_DEO = Defect(
    "E5a",
    "attribute",
    "This DEO fits neither attribute nor their crossing: a plain network gives .06 to .34.",
    disqualifies=False,
)
MAMO_TEST_ROWS = Defect(
    "F3",
    "test set",
    "The constant rows' spread (.0012 to .0013) is that of 33,842 test rows, MAMO's split; 15% of "
    "the rows would give .0046.",
    disqualifies=False,
)
MAMO_TEST_ROWS_COMPAS = Defect(
    "F3",
    "test set",
    "The constant rows' spread (.0130) is that of 1,167 test rows, MAMO's split (.0131), rather "
    "than of 15% of the rows (.0151); alone this would not decide.",
    disqualifies=False,
)
HEART_TEST_ROWS = Defect(
    "F4",
    "test set",
    "The accuracies of MAMO and APFEx are multiples of 1/370 (ten runs, 37 test rows), those of "
    "the baseline and SearchFair of 1/320 (32 rows); 45 rows, which are 15%, fit none.",
    disqualifies=False,
)
GERMAN_TEST_ROWS = Defect(
    "F5",
    "test set",
    "A constant row without spread at .6850 means one fixed split of 200 test rows (137 of them), "
    "not stratified (that gives .7000) and not 15% (150 rows).",
    disqualifies=False,
)
ACCEPTED_ROWS = Defect(
    "R1",
    "test set",
    "Measured on the 70 test rows with the highest scores: .9429 is 66 of 70, and the loss of .06 "
    "is 4 of 70; no groups are involved.",
)
