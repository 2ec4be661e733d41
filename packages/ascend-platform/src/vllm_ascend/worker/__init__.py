"""The process that owns one NPU: device set-up, model runner, inputs of a step."""
