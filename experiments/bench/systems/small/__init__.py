"""The systems of Yang & Gopal (2012), and what a user would pick today, by name."""

from systems.small.linear import RBFSVM, BinarySVM, ClassifierChainLR, LogisticOneVsRest
from systems.small.neighbors import IBLR, IBLRPlus, MLkNN
from systems.small.rank_svm import RankSVM
from systems.small.rankers import PaperLambdaRank, PaperListNet, PaperLogistic, PaperRankSVM, PaperSVMMAP
from systems.small.trees import ExtraTrees, LightGBMOneVsRest, RandomForest

RANKERS = (PaperSVMMAP, PaperRankSVM, PaperLambdaRank, PaperListNet, PaperLogistic)
MARGINS = (BinarySVM, RankSVM, RBFSVM)
PROBABLE = (IBLR, IBLRPlus, MLkNN, LogisticOneVsRest, ClassifierChainLR)
TREES = (LightGBMOneVsRest, ExtraTrees, RandomForest)
KINDS = {kind.__name__: kind for kind in (*MARGINS, *PROBABLE, *TREES, *RANKERS)}
