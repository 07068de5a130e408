"""The pages of `proctor view`: runs, cases, comparisons and grading in a browser, served on this machine."""
