"""What can go wrong while a checkpoint is found, read or converted."""


class CheckpointError(RuntimeError):
    """A checkpoint is missing or damaged; the message names the file and what to do."""


class UnsupportedCheckpointError(CheckpointError):
    """A well-formed GGUF file holds something the converter does not cover; the message names what it covers."""
