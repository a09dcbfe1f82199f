"""The languages whose words can be compared by their stems."""

from __future__ import annotations

AUTO = "auto"
# By its ISO 639-1 code, the name that Snowball has for a language.
LANGUAGES = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "et": "estonian", "eu": "basque", "fi": "finnish", "fr": "french", "ga": "irish",
    "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian",
    "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
    "yi": "yiddish",
}  # fmt: skip


def check_language(language: str | None, *, auto: bool = True) -> str | None:
    """The Snowball name of a language: "english" for "en", "EN" and "english"; None and "auto" as they are.

    Raises
    ------
    ValueError
        If it is not a language that can be stemmed.

    Examples
    --------
    >>> check_language("de")
    'german'
    """
    if language is None:
        return None
    name = str(language).lower()
    name = LANGUAGES.get(name, name)
    if name not in LANGUAGES.values() and not (auto and name == AUTO):
        or_auto = "'auto', " * auto
        raise ValueError(
            f"language must be None, {or_auto}one of {', '.join(sorted(LANGUAGES.values()))}, or a code such "
            f"as 'en', got {language!r:.80}"
        )
    return name
