"""``python -m vllm_ascend``: the command ``vllm-ascend``."""

from vllm_ascend.cli import app

if __name__ == "__main__":
    app(prog_name="vllm-ascend")
