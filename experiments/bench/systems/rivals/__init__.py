"""Methods that the papers compare with and that are no part of metarank, small, by name."""

from systems.rivals.annexml import AnnexML
from systems.rivals.base import Popularity
from systems.rivals.compressed_sensing import CompressedSensing
from systems.rivals.cplst import CPLST
from systems.rivals.cssp import CSSP
from systems.rivals.leml import LEML
from systems.rivals.lpsr import LPSR
from systems.rivals.proxml import ProXML
from systems.rivals.ranking_svm import RankingSVM
from systems.rivals.sleec import SLEEC
from systems.rivals.wsabie import WSABIE

EMBEDDINGS = (SLEEC, AnnexML, WSABIE, LEML, CPLST, CSSP, CompressedSensing)
KINDS = {kind.__name__: kind for kind in (Popularity, ProXML, LPSR, RankingSVM, *EMBEDDINGS)}
