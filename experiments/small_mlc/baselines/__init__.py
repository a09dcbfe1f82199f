"""The systems metarank is compared with: those of Yang & Gopal (2012), and what a user would pick today."""

from baselines.base import Baseline
from baselines.binary_svm import BinarySVM
from baselines.chain import ClassifierChainLR
from baselines.forests import ExtraTrees, RandomForest
from baselines.iblr import IBLR, IBLRPlus
from baselines.lightgbm_ovr import LightGBMOneVsRest
from baselines.logistic import LogisticOneVsRest
from baselines.ml_knn import MLkNN
from baselines.rank_svm import RankSVM
from baselines.rbf_svm import RBFSVM

__all__ = [
    "IBLR",
    "RBFSVM",
    "Baseline",
    "BinarySVM",
    "ClassifierChainLR",
    "ExtraTrees",
    "IBLRPlus",
    "LightGBMOneVsRest",
    "LogisticOneVsRest",
    "MLkNN",
    "RandomForest",
    "RankSVM",
]
