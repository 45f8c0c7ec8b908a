"""The first example of the README: the front of accuracy and fairness on Adult, sex x race."""

from apfex import APFExClassifier, load_dataset


def main() -> None:
    """Fetch the table, explore, print."""
    data = load_dataset("adult")
    clf = APFExClassifier(criteria=("dp", "tpr"), max_gap={"dp": 0.05}, random_state=0, verbose=1)
    clf.fit(data.X, data.y, sensitive_features=data.sensitive)
    print(clf.front_)
    print(f"predict uses point {clf.point_}: the most accurate one with a dp gap of at most 0.05")


if __name__ == "__main__":
    main()
