"""What kernels over rows of a vocabulary share: launch plans, sums of exponentials, and the view of logits as rows."""
