"""Whether words give a label away: a bag-of-words classifier, tested on unseen tasks."""

from __future__ import annotations

from collections.abc import Sequence

FOLDS = 5
FEWEST = 20


def wording_auc(
    texts: Sequence[str], labels: Sequence[int], groups: Sequence[str]
) -> tuple[float | None, str]:
    """The held-out area under the ROC curve of a logistic regression on word counts."""
    if len(set(groups)) < FEWEST:
        return None, f"{len(set(groups))} tasks are too few (at least {FEWEST}): raise --tasks"
    try:
        from sklearn.feature_extraction.text import CountVectorizer  # noqa: PLC0415 - heavy, and an extra
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - heavy, and an extra
        from sklearn.metrics import roc_auc_score  # noqa: PLC0415 - heavy, and an extra
        from sklearn.model_selection import GroupKFold, cross_val_predict  # noqa: PLC0415 - heavy, and an extra
        from sklearn.pipeline import make_pipeline  # noqa: PLC0415 - heavy, and an extra
    except ImportError:
        return None, "scikit-learn is not installed"
    model = make_pipeline(
        CountVectorizer(binary=True, ngram_range=(1, 2), min_df=2),
        LogisticRegression(max_iter=1000),
    )
    scores = cross_val_predict(
        model, list(texts), list(labels), groups=list(groups), cv=GroupKFold(FOLDS),
        method="decision_function",
    )  # fmt: skip
    return float(roc_auc_score(list(labels), scores)), ""
