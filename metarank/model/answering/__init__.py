"""The answers of a fitted model: `answer.Answering` is their order."""
