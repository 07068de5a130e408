"""Whether an answer does harm, gives secrets away, or lets itself be steered."""
