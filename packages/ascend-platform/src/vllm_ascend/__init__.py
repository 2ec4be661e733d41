"""vLLM hardware plugin for Huawei Ascend NPUs."""
