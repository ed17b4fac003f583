"""Results in the forms of others: Every Eval Ever, and the evaluation results of Hugging Face."""
