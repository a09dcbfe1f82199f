"""`Savable`: what a person saves, describes and shares."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from metarank._util.typed_base import BaseEstimator
from metarank._util.version import __version__
from metarank.persist import folder
from metarank.persist.card import README, rendered
from metarank.persist.hub import hub
from metarank.persist.spec import Saved


class Savable(Saved, BaseEstimator):
    """Base of estimators with a folder of their own: a model, a shortlister, learned thresholds."""

    _tags: ClassVar[Sequence[str]] = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a folder, completely or not at all; `metarank.load` reads it.

        The folder's README.md is the model's `card`. It may be edited: of an earlier card only the part that
        metarank wrote is replaced.

        Raises
        ------
        ValueError
            If it is not fitted, or the folder holds anything other than a model.
        """
        check_is_fitted(self)
        folder.save(self, path, self.card())

    def card(self, *, html: bool = False) -> str:
        """The model card: what the model knows of itself, and what a person is to fill in.

        Markdown with the metadata that the Hugging Face hub reads, or a page of HTML. It says nothing that
        the model does not hold: what was measured on other rows is for a person to add.
        """
        check_is_fitted(self)
        about = self._about()
        return rendered(name=type(self).__name__, tags=self._tags, facts=self._facts(), **about, html=html)

    def push_to_hub(
        self, repo_id: str, *, private: bool | None = None, token: str | None = None, message: str = ""
    ) -> str:
        """Save to a repository of the Hugging Face hub, which is made if it is not there (extra ``hub``).

        ``metarank.load("hf://OWNER/NAME")`` reads it. Files of an earlier model go; of its card what a person
        wrote stays. Tested against a local stand-in for the hub, not against the hub itself.

        Parameters
        ----------
        repo_id : str
            OWNER/NAME.
        private : bool, optional
            Whether a new repository is private; by default as the owner has it.
        token : str, optional
            By default that of ``hf auth login``, or of the environment.
        message : str
            That of the commit.

        Returns
        -------
        str
            The address of the commit.
        """
        api: Any = hub().HfApi(token=token)
        api.create_repo(repo_id, private=private, exist_ok=True)
        with tempfile.TemporaryDirectory() as place:
            if api.file_exists(repo_id, README):
                shutil.copyfile(api.hf_hub_download(repo_id, README), Path(place) / README)
            self.save(place)
            commit = api.upload_folder(
                repo_id=repo_id,
                folder_path=place,
                commit_message=message or f"{type(self).__name__} of metarank {__version__}",
                delete_patterns=["*.npy", "*.json", "*.safetensors"],
            )
        return str(commit.commit_url)

    def _facts(self) -> dict[str, Any]:
        """What the model is, by name; a list where a fact has several lines."""
        examined = getattr(self, "position_propensity_", None)
        examined = () if examined is None else examined
        facts = {
            "features": getattr(self, "n_features_in_", None),
            "labels": getattr(self, "n_labels_", None),
            "objectives": ", ".join(getattr(self, "objective_names_", ())) or None,
            "scorer": type(self).__name__,
            **self.get_params(),
            "examined, by position": ", ".join(f"{share:.2f}" for share in examined[:20]) or None,
        }
        return {name: value for name, value in facts.items() if value is not None}

    def _about(self) -> dict[str, Any]:
        """What the template of cards needs beside the facts."""
        return {}
