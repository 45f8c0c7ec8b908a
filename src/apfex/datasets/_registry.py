"""What there is: for each data set its story, its options and its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from apfex.datasets import _sources as sources


@final
@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a data set before it is loaded.

    Parameters
    ----------
    name, description, licence, citation, homepage : str
    label : str
        What label 1 means.
    favorable_label : int
        The outcome a person would want.
    options : mapping from option name to its allowed values, the default first
    files : tuple of records with name, size, sha256 and url
        All are needed.
    archives : tuple of records with the requirement and its members
        Copies on the package index, in the order in which they are tried.

    Examples
    --------
    >>> from apfex.datasets import list_datasets
    >>> {info.name: info.options for info in list_datasets()}["german"]
    {'foreign_worker': (False, True)}
    """

    name: str
    description: str
    licence: str
    citation: str
    homepage: str
    label: str
    favorable_label: int
    options: Mapping[str, tuple[str | bool, ...]]
    files: tuple[sources.DataFile, ...] = field(repr=False)
    archives: tuple[sources.Archive, ...] = field(repr=False)


_CC_BY = "CC BY 4.0"

ADULT = DatasetInfo(
    "adult",
    "UCI Adult (Census Income), US census of 1994, both parts: 48,842 adults. Label 1: income "
    "above 50,000 dollars a year. Sensitive: sex and race (White or not; all five levels with "
    "race='all'). columns='all' keeps every other column; 'mamo' drops education, fnlwgt, capital "
    "gain and capital loss and joins countries of at most 150 rows (Padh et al., 2021); "
    "'mamo+capital' keeps capital gain and loss.",
    _CC_BY,
    "B. Becker and R. Kohavi (1996). Adult. UCI Machine Learning Repository. doi:10.24432/C5XW20",
    "https://archive.ics.uci.edu/dataset/2/adult",
    label="income above 50,000 dollars a year",
    favorable_label=1,
    options={"columns": ("all", "mamo", "mamo+capital"), "race": ("binary", "all")},
    files=(sources.ADULT_DATA, sources.ADULT_TEST),
    archives=sources.ADULT_ARCHIVES,
)

COMPAS = DatasetInfo(
    "compas",
    "ProPublica COMPAS two-year recidivism, Broward County, Florida, 2013-2014: the 6,172 rows of "
    "ProPublica's filter less 5 without a charge text. Label 1: charged again within two years. "
    "Sensitive: race (Caucasian or other; race='three': African-American, Caucasian, other; 'all': "
    "six levels, some with a handful of rows) and sex. Names and birth dates are never read; "
    "scores and later events, which would leak the label, are never inputs. "
    "charge_description=True adds the charge's text (389 levels).",
    "No licence stated; built from public records.",
    "J. Angwin, J. Larson, S. Mattu and L. Kirchner (2016). Machine Bias. ProPublica.",
    "https://github.com/propublica/compas-analysis",
    label="charged again within two years",
    favorable_label=0,
    options={"race": ("binary", "three", "all"), "charge_description": (False, True)},
    files=(sources.COMPAS,),
    archives=sources.COMPAS_ARCHIVES,
)

GERMAN = DatasetInfo(
    "german",
    "UCI Statlog German Credit: 1,000 loan applicants. Label 1: good credit. Sensitive: age (over "
    "25 or not) and sex, read from the personal status, and, with foreign_worker=True, foreign "
    "worker, whose level 'no' has 37 rows. Age and personal status are no inputs unless "
    "include_sensitive=True.",
    _CC_BY,
    "H. Hofmann (1994). Statlog (German Credit Data). UCI Machine Learning Repository. "
    "doi:10.24432/C5NC77",
    "https://archive.ics.uci.edu/dataset/144/statlog+german+credit+data",
    label="good credit",
    favorable_label=1,
    options={"foreign_worker": (False, True)},
    files=(sources.GERMAN,),
    archives=sources.GERMAN_ARCHIVES,
)

HEART = DatasetInfo(
    "heart",
    "UCI Heart Disease, Cleveland Clinic: 297 patients without missing values (all 303 with "
    "rows='all'). Label 1: heart disease. Sensitive: age (55 and over or not) and sex; age and sex "
    "are no inputs unless include_sensitive=True.",
    _CC_BY,
    "A. Janosi, W. Steinbrunn, M. Pfisterer and R. Detrano (1989). Heart Disease. UCI Machine "
    "Learning Repository. doi:10.24432/C52P4X",
    "https://archive.ics.uci.edu/dataset/45/heart+disease",
    label="heart disease",
    favorable_label=0,
    options={"rows": ("complete", "all")},
    files=(sources.HEART,),
    archives=sources.HEART_ARCHIVES,
)

CELEBA = DatasetInfo(
    "celeba",
    "CelebA attribute table (load_images reads the images): 202,599 photographs. Label 1: Smiling. "
    "Sensitive: Male and black hair (hair='five': the colour if exactly one flag is set, otherwise "
    "Other). Inputs are the other attributes as -1 and 1; Male and Black_Hair are left out, the "
    "other hair flags only with hide_hair=True.",
    "Non-commercial research only; no part of it may be copied or passed on.",
    "Z. Liu, P. Luo, X. Wang and X. Tang (2015). Deep Learning Face Attributes in the Wild. ICCV.",
    "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html",
    label="Smiling",
    favorable_label=1,
    options={"hair": ("binary", "five"), "hide_hair": (False, True)},
    files=(sources.CELEBA,),
    archives=sources.CELEBA_ARCHIVES,
)

DATASETS: Mapping[str, DatasetInfo] = {
    info.name: info for info in (ADULT, CELEBA, COMPAS, GERMAN, HEART)
}
