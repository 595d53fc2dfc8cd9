"""Records what PyTorch's modules do: python record_modules.py > modules_recorded.json.

Numbers are rounded to seven digits.
"""

import json
import sys

import module_cases as cases
import module_scripts as scripts
import torch


def rounded(value):
    """Numbers with seven digits."""
    if isinstance(value, list):
        return [rounded(one) for one in value]
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return float(f"{value:.7g}") if isinstance(value, float) else value


def main():
    """Write all of it."""
    found = {}
    for made, shapes in cases.CASES:
        found[made] = rounded({**cases.described(torch, made), **cases.run(torch, made, shapes)})
    for made in cases.TEXTS:
        found[made] = cases.described(torch, made)
    for script in scripts.SCRIPTS:
        found[script.__name__] = script(torch)
    lines = ",\n".join(f" {json.dumps(made)}: {json.dumps(one)}" for made, one in found.items())
    sys.stdout.write("{\n" + lines + "\n}\n")


main()
