"""Proctor's own format: YAML or JSON with `cases`, or JSON Lines with one case per line.

A parsed document comes in and one `Suite` goes out (`reader.read_document`), or suites come in and text goes out
(`writer.write_text`). The loader of suites is the caller; `editing` changes cases in a file that exists, for
`proctor approve`.
"""
